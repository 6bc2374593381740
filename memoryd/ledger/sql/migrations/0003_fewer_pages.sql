-- Leases are found in the published index: each index more is a page more that a claim, a heartbeat and an end write.
DROP INDEX jobs_leased;

DROP INDEX jobs_ready;

CREATE INDEX jobs_ready ON jobs (kind, ready_at, job_key) WHERE status = 'pending';

PRAGMA user_version = 3;
