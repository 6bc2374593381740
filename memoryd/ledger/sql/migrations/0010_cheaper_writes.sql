-- A claim and the end of a run cost less: a CHECK with an IN of more than two values makes a table of them at each write,
-- and the index of successes was a page more to write for each job, to be read only when a person asks.
ALTER TABLE jobs RENAME TO jobs_before;

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

INSERT INTO jobs SELECT * FROM jobs_before;

DROP TABLE jobs_before;

CREATE INDEX jobs_published ON jobs (kind, status, retry_at, lease_until);

CREATE INDEX jobs_ready ON jobs (kind, ready_at, job_key) WHERE status = 'pending';

ALTER TABLE attempts RENAME TO attempts_before;

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

INSERT INTO attempts SELECT * FROM attempts_before;

DROP TABLE attempts_before;

CREATE INDEX attempts_job ON attempts (kind, job_key, id);

PRAGMA user_version = 10;
