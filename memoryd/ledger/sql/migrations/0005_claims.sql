-- A claim says who wrote it, why it was closed, what took its place, and what it said before; and of each output it is
-- kept who spoke the words of its preference signals.
ALTER TABLE claims ADD COLUMN author TEXT NOT NULL DEFAULT 'memoryd';
ALTER TABLE claims ADD COLUMN closed_because TEXT;
ALTER TABLE claims ADD COLUMN successor_id INTEGER REFERENCES claims (id) ON DELETE SET NULL;

CREATE INDEX claims_successor ON claims (successor_id) WHERE successor_id IS NOT NULL;

CREATE TABLE claim_texts (
  id INTEGER PRIMARY KEY,
  claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE,
  text TEXT NOT NULL,
  status TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT;

CREATE INDEX claim_texts_claim ON claim_texts (claim_id);

CREATE TABLE sayings (
  thread_id TEXT NOT NULL REFERENCES stage1_outputs (thread_id) ON DELETE CASCADE,
  digest BLOB NOT NULL,
  said_by TEXT NOT NULL,
  PRIMARY KEY (thread_id, digest),
  CHECK (said_by IN ('human', 'tool'))
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 5;
