-- The truth about the ledger's tables. The migrations reach exactly this; a test compares.
-- Every *_at is epoch seconds UTC. CHECK constraints repeat the invariants of states.py.

-- Small facts about the ledger itself, such as the first start.
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

-- One row per thing to do. The columns up to last_success_watermark are the published ones; ours follow.
--   ready_at         when somebody may claim it: a wait's end, or a lease's end; NULL when there is nothing to wait for
--   wait_reason      why it waits, NULL when it is claimable at once
--   epoch            grows with every claim, so that a late holder is known
--   lease_seconds    how long the present lease was when taken: one further in the future was written by a wrong clock
--   crash_count      runs at this watermark that ended without a word
--   enqueued_at      first enqueue since the last claim, for the debounce
--   enqueue_reason   what asked for it last
-- A CHECK that allows more than two values names them one by one: for an IN, SQLite makes a table at each write.
CREATE TABLE jobs (
  kind TEXT NOT NULL,
  job_key TEXT NOT NULL,
  status TEXT NOT NULL,
  worker_id TEXT,
  ownership_token TEXT,
  started_at INTEGER,
  finished_at INTEGER,
  lease_until INTEGER,
  retry_at INTEGER,
  retry_remaining INTEGER NOT NULL,
  last_error TEXT,
  input_watermark INTEGER,
  last_success_watermark INTEGER,
  ready_at INTEGER,
  wait_reason TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  lease_seconds REAL,
  crash_count INTEGER NOT NULL DEFAULT 0,
  enqueued_at INTEGER,
  enqueue_reason TEXT,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  attempt_id INTEGER,
  last_success_at INTEGER,
  fingerprint TEXT,
  PRIMARY KEY (kind, job_key),
  CHECK (status = 'pending' OR status = 'running' OR status = 'done' OR status = 'error'),
  CHECK (input_watermark IS NOT NULL),
  CHECK (last_success_watermark IS NULL OR last_success_watermark <= input_watermark),
  CHECK (cancel_requested IN (0, 1)),
  CHECK (epoch >= 0 AND crash_count >= 0 AND retry_remaining >= 0),
  CHECK ((status = 'running') = (ownership_token IS NOT NULL)),
  CHECK ((status = 'running') = (lease_until IS NOT NULL)),
  CHECK (status <> 'running' OR (worker_id IS NOT NULL AND started_at IS NOT NULL AND coalesce(lease_seconds, 0) > 0)),
  CHECK (status <> 'running' OR ready_at = lease_until),
  CHECK ((ready_at IS NULL) = (status IN ('done', 'error'))),
  CHECK (retry_at IS NULL OR (status = 'pending' AND retry_at = ready_at AND wait_reason IS NOT NULL)),
  CHECK (wait_reason IS NULL OR status = 'pending'),
  CHECK (status NOT IN ('pending', 'running') OR retry_remaining > 0),
  CHECK (status <> 'done' OR last_success_watermark IS input_watermark),
  CHECK (status <> 'error' OR (last_error IS NOT NULL AND retry_remaining = 0))
) STRICT;

-- The published index, for whoever reads the table as the reference does.
CREATE INDEX jobs_published ON jobs (kind, status, retry_at, lease_until);

-- A claim costs the same with 100,000 finished rows as with none. Leases are found in the published index: each index
-- more is a page more that a claim, a heartbeat and an end must write.
CREATE INDEX jobs_ready ON jobs (kind, ready_at, job_key) WHERE status = 'pending';

-- One row per run of a job. outcome is NULL while it runs.
CREATE TABLE attempts (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  job_key TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  input_watermark INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  duration_ms INTEGER,
  outcome TEXT,
  error_class TEXT,
  error TEXT,
  provider TEXT,
  model TEXT,
  fingerprint TEXT,
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  tokens_cached INTEGER NOT NULL DEFAULT 0,
  cost REAL NOT NULL DEFAULT 0,
  requests INTEGER NOT NULL DEFAULT 0,
  CHECK (outcome = 'done' OR outcome = 'nothing' OR outcome = 'deferred' OR outcome = 'failed' OR outcome = 'released'
         OR outcome = 'crashed'),
  CHECK ((outcome IS NULL) = (ended_at IS NULL))
) STRICT;

CREATE INDEX attempts_job ON attempts (kind, job_key, id);

-- One row per HTTP request to a model; reserved before it is sent, settled after. Unsettled ones count as estimated.
CREATE TABLE requests (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  job_key TEXT NOT NULL,
  attempt_id INTEGER,
  reference TEXT,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  estimated_tokens INTEGER NOT NULL,
  estimated_cost REAL NOT NULL,
  settled_at INTEGER,
  outcome TEXT,
  tokens_in INTEGER,
  tokens_out INTEGER,
  tokens_cached INTEGER,
  cost REAL,
  duration_ms INTEGER,
  tokens_reasoning INTEGER,
  CHECK ((settled_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE INDEX requests_at ON requests (at);

CREATE INDEX requests_attempt ON requests (attempt_id);

-- What requests of long ago took, summed up by UTC day (since 1970), stage and model, so that their rows can go. job_key
-- is empty for sessions: of each of them a row a day would stay for ever. outcome pending: nobody settled it.
CREATE TABLE request_sums (
  day INTEGER NOT NULL,
  kind TEXT NOT NULL,
  job_key TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  outcome TEXT NOT NULL,
  requests INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  tokens_cached INTEGER NOT NULL,
  tokens_reasoning INTEGER NOT NULL,
  cost REAL NOT NULL,
  duration_ms INTEGER NOT NULL,
  PRIMARY KEY (day, kind, job_key, provider, model, outcome)
) STRICT, WITHOUT ROWID;

-- What discovery knows of each recorded session.
--   memory_mode   as the agent says; user_mode is the person's own choice and wins; polluted_at is our own finding
--   covered_*     time of the last record and bytes of the records that were extracted
--   queued_*      the same pair as it was when the session was enqueued last
--   remembers     may this session be part of memory
--   is_open       does this session hold something that is neither extracted nor enqueued
--   lineage       equal for sessions that may hold copies of each other's rows
--   seniority     which of them is older: start and last record at first sight, and the same ever after
--   finding       why reading it gave no evidence (no_human_message, no_items, vanished); falls when the session changes
CREATE TABLE sessions (
  thread_id TEXT PRIMARY KEY,
  agent TEXT NOT NULL,
  path TEXT NOT NULL,
  cwd TEXT,
  git_branch TEXT,
  parent_id TEXT,
  kind TEXT NOT NULL,
  originator TEXT,
  started_at INTEGER,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  record_bytes INTEGER NOT NULL,
  memory_mode TEXT NOT NULL DEFAULT 'enabled',
  user_mode TEXT,
  polluted_at INTEGER,
  excluded TEXT,
  covered_updated_at INTEGER,
  covered_bytes INTEGER,
  queued_updated_at INTEGER,
  queued_bytes INTEGER,
  first_seen_at INTEGER NOT NULL,
  read_error TEXT,
  stem TEXT,
  remembers INTEGER NOT NULL GENERATED ALWAYS AS (
    CASE user_mode WHEN 'enabled' THEN 1 WHEN 'disabled' THEN 0
    ELSE memory_mode = 'enabled' AND polluted_at IS NULL END
  ) VIRTUAL,
  is_open INTEGER NOT NULL GENERATED ALWAYS AS (
    excluded IS NULL
    AND remembers
    AND (updated_at IS NOT covered_updated_at OR record_bytes IS NOT covered_bytes)
    AND (updated_at IS NOT queued_updated_at OR record_bytes IS NOT queued_bytes)
  ) VIRTUAL,
  ephemeral INTEGER NOT NULL DEFAULT 0 CHECK (ephemeral IN (0, 1)),
  lineage TEXT,
  seniority TEXT,
  finding TEXT,
  CHECK (memory_mode IN ('enabled', 'disabled', 'polluted')),
  CHECK (user_mode IN ('enabled', 'disabled', 'no-recall')),
  CHECK ((covered_updated_at IS NULL) = (covered_bytes IS NULL)),
  CHECK ((queued_updated_at IS NULL) = (queued_bytes IS NULL))
) STRICT;

CREATE INDEX sessions_open ON sessions (updated_at, thread_id) WHERE is_open;

CREATE INDEX sessions_path ON sessions (path);

CREATE INDEX sessions_excluded ON sessions (excluded) WHERE excluded IS NOT NULL;

CREATE INDEX sessions_lineage ON sessions (lineage) WHERE lineage IS NOT NULL;

CREATE INDEX sessions_finding ON sessions (finding) WHERE finding IS NOT NULL;

-- Files that were looked at and are no session's file: second copies, and what could not be read.
CREATE TABLE other_files (
  path TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  thread_id TEXT,
  problem TEXT,
  seen_at INTEGER NOT NULL,
  agent TEXT
) STRICT;

-- What a session taught: one row per session that taught something. The published columns.
CREATE TABLE stage1_outputs (
  thread_id TEXT PRIMARY KEY,
  source_updated_at INTEGER NOT NULL,
  raw_memory TEXT NOT NULL,
  rollout_summary TEXT NOT NULL,
  rollout_slug TEXT,
  generated_at INTEGER NOT NULL,
  usage_count INTEGER,
  last_usage INTEGER,
  selected_for_phase2 INTEGER NOT NULL DEFAULT 0,
  selected_for_phase2_source_updated_at INTEGER,
  CHECK (selected_for_phase2 IN (0, 1))
) STRICT;

CREATE INDEX stage1_outputs_source ON stage1_outputs (source_updated_at DESC, thread_id DESC);

-- Days (since 1970, UTC) on which any session was recorded, so that what nobody uses ages only while agents are used.
CREATE TABLE active_days (
  day INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER sessions_day AFTER INSERT ON sessions BEGIN
  INSERT INTO active_days (day) SELECT new.updated_at / 86400
  WHERE NOT EXISTS (SELECT 1 FROM active_days WHERE day = new.updated_at / 86400);
END;

CREATE TRIGGER sessions_later_day AFTER UPDATE OF updated_at ON sessions BEGIN
  INSERT INTO active_days (day) SELECT new.updated_at / 86400
  WHERE NOT EXISTS (SELECT 1 FROM active_days WHERE day = new.updated_at / 86400);
END;

CREATE TRIGGER stage1_outputs_day AFTER INSERT ON stage1_outputs BEGIN
  INSERT INTO active_days (day) SELECT new.source_updated_at / 86400
  WHERE NOT EXISTS (SELECT 1 FROM active_days WHERE day = new.source_updated_at / 86400);
END;

-- One row per citation seen, so that a resumed, copied or forked session counts once.
CREATE TABLE usage_events (
  thread_id TEXT NOT NULL,
  message_key TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (thread_id, message_key)
) STRICT, WITHOUT ROWID;

-- What has been decided and is being put in place: commit and base are git object ids; no base: it was empty.
CREATE TABLE publications (
  id INTEGER PRIMARY KEY,
  commit_id TEXT NOT NULL,
  base_id TEXT,
  state TEXT NOT NULL,
  attempt_id INTEGER,
  decided_at INTEGER NOT NULL,
  published_at INTEGER,
  CHECK (state IN ('decided', 'published')),
  CHECK ((state = 'published') = (published_at IS NOT NULL))
) STRICT;

-- Nobody decides anew while something decided is not in place.
CREATE UNIQUE INDEX publications_pending ON publications (state) WHERE state = 'decided';

-- States of outputs that a person took back (undo) or refused (review): they stay out of the memory until their session
-- grows. standing_updated_at: the earlier state that stands in the folder instead; NULL: none does.
CREATE TABLE held_outputs (
  thread_id TEXT PRIMARY KEY REFERENCES stage1_outputs (thread_id) ON DELETE CASCADE,
  source_updated_at INTEGER NOT NULL,
  standing_updated_at INTEGER,
  because TEXT NOT NULL,
  held_at INTEGER NOT NULL,
  CHECK (because IN ('undone', 'rejected'))
) STRICT, WITHOUT ROWID;

-- Accepted results that wait for a person's word (consolidate.review = "manual"). base_id and accepted_id: what the run
-- staged, and what was published then; inputs: a digest of what it was made from, so that the same is not made twice.
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

-- The newest proposal is the one that can be accepted.
CREATE UNIQUE INDEX proposals_waiting ON proposals (state) WHERE state = 'waiting';

-- Provenance: what the handbook says, since when, and until when.
CREATE TABLE claims (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL,
  section TEXT NOT NULL,
  scope TEXT NOT NULL,
  status TEXT NOT NULL,
  valid_from INTEGER NOT NULL,
  invalidated_at INTEGER,
  author TEXT NOT NULL DEFAULT 'memoryd',
  closed_because TEXT,
  successor_id INTEGER REFERENCES claims (id) ON DELETE SET NULL
) STRICT;

-- For the deletion of what took a claim's place.
CREATE INDEX claims_successor ON claims (successor_id) WHERE successor_id IS NOT NULL;

-- One valid claim of the same words in the same place.
CREATE UNIQUE INDEX claims_valid ON claims (scope, section, text) WHERE invalidated_at IS NULL;

CREATE TABLE claim_threads (
  claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE,
  thread_id TEXT NOT NULL,
  PRIMARY KEY (claim_id, thread_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_threads_thread ON claim_threads (thread_id);

-- What a claim said before it was reworded, or how it was marked, until when; oldest first. threads: a JSON list of the
-- sessions that supported it then, with which the text is forgotten.
CREATE TABLE claim_texts (
  id INTEGER PRIMARY KEY,
  claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE,
  text TEXT NOT NULL,
  status TEXT NOT NULL,
  until INTEGER NOT NULL,
  threads TEXT NOT NULL DEFAULT '[]'
) STRICT;

CREATE INDEX claim_texts_claim ON claim_texts (claim_id);

-- Who spoke the words of an output's preference signals, as digests of three words in a row; they go with the output.
CREATE TABLE sayings (
  thread_id TEXT NOT NULL REFERENCES stage1_outputs (thread_id) ON DELETE CASCADE,
  digest BLOB NOT NULL,
  said_by TEXT NOT NULL,
  PRIMARY KEY (thread_id, digest),
  CHECK (said_by IN ('human', 'tool'))
) STRICT, WITHOUT ROWID;

-- What was learned about a model: bytes per token, the rung of the structured-output ladder.
CREATE TABLE model_facts (
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  learned_at INTEGER NOT NULL,
  PRIMARY KEY (provider, model, key)
) STRICT, WITHOUT ROWID;

-- What search finds, a row for each piece of a file of the memory folder; its words stand under the same number in
-- search_words.
--   scope       the directory it holds in, or `global`
--   mark        how well a bullet is founded; NULL for what is no bullet
--   opening     a checksum of its first line; digest: of all that the row was made from, the place in the file aside;
--               rows_digest: of its lines, by which they are found again in a file that was changed since
--   threads     a JSON list of the sessions behind it
--   updated_at  when those were recorded last
CREATE TABLE search_entries (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  mark TEXT,
  section TEXT,
  threads TEXT NOT NULL,
  updated_at INTEGER,
  opening INTEGER NOT NULL,
  rows_digest TEXT NOT NULL,
  digest TEXT NOT NULL,
  CHECK (kind IN ('bullet', 'task', 'summary', 'skill')),
  CHECK (line >= 1 AND end_line >= line),
  CHECK (mark IS NULL OR kind = 'bullet')
) STRICT;

CREATE INDEX search_entries_path ON search_entries (path);

CREATE INDEX search_entries_scope ON search_entries (scope);

-- The files that the entries were made of, as they were then; equal size and time: nobody touched them since.
CREATE TABLE search_files (
  path TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- text: what is shown; context: the headings and keywords that it stands under; handles: its identifiers in their parts,
-- and pairs of characters for scripts that put no space between words; place: kind, mark and scope, a word each, so that
-- a search in one project looks at no other.
CREATE VIRTUAL TABLE search_words USING fts5 (
  text, context, handles, place, tokenize = 'porter unicode61 remove_diacritics 2'
);

PRAGMA application_id = 1835363684;
PRAGMA user_version = 11;
