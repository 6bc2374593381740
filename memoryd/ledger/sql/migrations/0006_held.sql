-- What a person took back or refused stays out until it changes; results that wait for a person's word.
CREATE TABLE held_outputs (
  thread_id TEXT PRIMARY KEY REFERENCES stage1_outputs (thread_id) ON DELETE CASCADE,
  source_updated_at INTEGER NOT NULL,
  standing_updated_at INTEGER,
  because TEXT NOT NULL,
  held_at INTEGER NOT NULL,
  CHECK (because IN ('undone', 'rejected'))
) STRICT, WITHOUT ROWID;

CREATE TABLE proposals (
  id INTEGER PRIMARY KEY,
  commit_id TEXT NOT NULL,
  base_id TEXT,
  accepted_id TEXT,
  inputs TEXT NOT NULL,
  state TEXT NOT NULL,
  attempt_id INTEGER,
  made_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK (state IN ('waiting', 'accepted', 'rejected', 'superseded')),
  CHECK ((state = 'waiting') = (ended_at IS NULL))
) STRICT;

CREATE UNIQUE INDEX proposals_waiting ON proposals (state) WHERE state = 'waiting';

PRAGMA user_version = 6;
