-- The moves of states.py. A holder's move is guarded by its token and epoch; the status needs no guard of its own there,
-- since only a running row has a token (a CHECK of the schema).

-- name: find_job
-- By primary key.
SELECT * FROM jobs WHERE kind = :kind AND job_key = :job_key;

-- name: find_standing
-- What an enqueue looks at: every session that ends asks for a consolidation.
SELECT status, ready_at, retry_at, wait_reason, input_watermark, enqueued_at, last_success_at
FROM jobs WHERE kind = :kind AND job_key = :job_key;

-- name: list_leased
-- The few rows that a claim must look at: are their leases live?
SELECT kind, job_key, worker_id, ownership_token, epoch, started_at, lease_until, lease_seconds, crash_count, attempt_id
FROM jobs WHERE kind = :kind AND status = 'running';

-- name: claim_job
-- Oldest ready first; the partial index holds only what is not finished. A new token and a larger epoch shut out every
-- earlier holder: a token that is drawn twice (a machine restored from a snapshot repeats its randomness) still has
-- another epoch. Settings lowered meanwhile take hold here.
UPDATE jobs
SET status = 'running', worker_id = :worker_id, ownership_token = :token, epoch = epoch + 1,
    started_at = :started_at, finished_at = NULL, lease_until = :lease_until, lease_seconds = :lease_seconds,
    ready_at = :lease_until, retry_at = NULL, wait_reason = NULL, enqueued_at = NULL, cancel_requested = 0,
    retry_remaining = min(retry_remaining, max(:max_attempts, 1)),
    fingerprint = :fingerprint, attempt_id = (SELECT coalesce(max(id), 0) + 1 FROM attempts)
WHERE kind = :kind AND job_key = (
  SELECT job_key FROM jobs
  WHERE kind = :kind AND ready_at <= :now AND status = 'pending' AND (:only IS NULL OR job_key = :only)
  ORDER BY ready_at, job_key
  LIMIT 1
)
RETURNING job_key, ownership_token, epoch, input_watermark, lease_until, retry_remaining, attempt_id, crash_count;

-- name: record_crash
-- A lease that is over: the run ended without a word. No attempt is taken. The row was
-- read in this very transaction, so that its token says enough.
UPDATE jobs
SET status = 'pending', ownership_token = NULL, lease_until = NULL, finished_at = :finished_at,
    crash_count = crash_count + 1, cancel_requested = 0,
    ready_at = :ready_at, wait_reason = :reason, retry_at = CASE WHEN :reason IS NULL THEN NULL ELSE :ready_at END
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token
RETURNING *;

-- name: renew_lease
-- The holder is alive.
UPDATE jobs
SET lease_until = :lease_until, lease_seconds = :lease_seconds, ready_at = :lease_until
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token AND epoch = :epoch
RETURNING *;

-- name: find_held
-- Does this holder still hold the job?
SELECT * FROM jobs
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token AND epoch = :epoch;

-- name: request_cancel
-- The holder hears of it at its next heartbeat.
UPDATE jobs SET cancel_requested = 1
WHERE kind = :kind AND job_key = :job_key AND status = 'running'
RETURNING *;

-- name: complete_job
-- Done: nothing was enqueued while it ran. What only waiting jobs have needs no clearing.
UPDATE jobs
SET status = 'done', ownership_token = NULL, lease_until = NULL, finished_at = :finished_at,
    last_success_at = :finished_at, last_success_watermark = input_watermark, last_error = NULL, crash_count = 0,
    cancel_requested = 0, enqueued_at = NULL, ready_at = NULL
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token AND epoch = :epoch
  AND input_watermark <= :covered_watermark;

-- name: complete_and_reopen
-- Done up to :covered_watermark; what was enqueued while it ran makes it pending again. That there is such input is known
-- from complete_job, in this very transaction.
UPDATE jobs
SET status = 'pending', ownership_token = NULL, lease_until = NULL, finished_at = :finished_at,
    last_success_at = :finished_at, last_success_watermark = :covered_watermark, last_error = NULL, crash_count = 0,
    cancel_requested = 0, ready_at = :ready_at, wait_reason = :reason
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token AND epoch = :epoch;

-- name: cover_newer
-- What was enqueued while it ran is what was read. The run has just been completed, in this very transaction.
UPDATE jobs
SET status = 'done', last_success_watermark = input_watermark, enqueued_at = NULL, ready_at = NULL, wait_reason = NULL
WHERE kind = :kind AND job_key = :job_key AND status = 'pending'
RETURNING status;

-- name: defer_job
-- Not the job's fault: no attempt is taken, and the reason is kept.
UPDATE jobs
SET status = 'pending', ownership_token = NULL, lease_until = NULL, finished_at = :finished_at, last_error = :error,
    retry_at = :ready_at, ready_at = :ready_at, wait_reason = :reason, cancel_requested = 0
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token AND epoch = :epoch
RETURNING *;

-- name: fail_job
-- Takes an attempt, unless newer input has come meanwhile: that has its own attempts, which nothing has tried yet.
-- Without attempts left the job is dead until somebody or something revives it.
UPDATE jobs
SET status = CASE WHEN input_watermark > :input_watermark OR retry_remaining > 1 THEN 'pending' ELSE 'error' END,
    retry_remaining = CASE WHEN input_watermark > :input_watermark THEN retry_remaining ELSE retry_remaining - 1 END,
    ready_at = CASE WHEN input_watermark > :input_watermark OR retry_remaining > 1 THEN :ready_at END,
    retry_at = CASE WHEN input_watermark > :input_watermark OR retry_remaining > 1 THEN :ready_at END,
    wait_reason = CASE WHEN input_watermark > :input_watermark OR retry_remaining > 1 THEN :reason END,
    ownership_token = NULL, lease_until = NULL, finished_at = :finished_at, last_error = :error, cancel_requested = 0
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token AND epoch = :epoch
RETURNING *;

-- name: release_job
-- Given back untouched: claimable at once.
UPDATE jobs
SET status = 'pending', ownership_token = NULL, lease_until = NULL, finished_at = :finished_at,
    ready_at = :ready_at, retry_at = NULL, wait_reason = NULL, cancel_requested = 0
WHERE kind = :kind AND job_key = :job_key AND ownership_token = :token AND epoch = :epoch
RETURNING *;

-- name: insert_job
-- The first time that there is something to do.
INSERT INTO jobs (kind, job_key, status, retry_remaining, input_watermark, ready_at, wait_reason, enqueued_at,
                  enqueue_reason)
VALUES (:kind, :job_key, 'pending', :max_attempts, :watermark, :ready_at, :reason, :enqueued_at, :enqueue_reason);

-- name: reopen_job
-- New input: attempts are full again, crashes at the old watermark are forgotten. What it waits for is the caller's
-- decision.
UPDATE jobs
SET status = 'pending', input_watermark = :watermark, retry_remaining = max(retry_remaining, :max_attempts),
    crash_count = 0, ready_at = :ready_at, retry_at = :retry_at, wait_reason = :reason,
    enqueued_at = coalesce(enqueued_at, :enqueued_at), enqueue_reason = :enqueue_reason
WHERE kind = :kind AND job_key = :job_key AND status IN ('pending', 'done', 'error');

-- name: raise_watermark
-- New input while it runs: the lease is left alone, the end of the run sees the larger watermark.
UPDATE jobs
SET input_watermark = :watermark, retry_remaining = max(retry_remaining, :max_attempts), crash_count = 0,
    enqueued_at = coalesce(enqueued_at, :enqueued_at), enqueue_reason = :enqueue_reason
WHERE kind = :kind AND job_key = :job_key AND status = 'running';

-- name: raise_waiting
-- New input that changes nothing about the wait: no index is touched, which matters when hundreds of sessions end.
UPDATE jobs
SET input_watermark = :watermark, retry_remaining = max(retry_remaining, :max_attempts), crash_count = 0,
    enqueued_at = coalesce(enqueued_at, :enqueued_at), enqueue_reason = :enqueue_reason
WHERE kind = :kind AND job_key = :job_key AND status = 'pending';

-- name: revive_job
-- A person wants it tried now, whatever it waits for or died of.
UPDATE jobs
SET status = 'pending', ready_at = :ready_at, retry_at = NULL, wait_reason = NULL, crash_count = 0,
    retry_remaining = max(retry_remaining, :max_attempts)
WHERE kind = :kind AND job_key = :job_key AND status IN ('pending', 'error')
RETURNING *;

-- name: revive_outdated_jobs
-- What died under another program, model or prompt may live under this one.
UPDATE jobs
SET status = 'pending', ready_at = :ready_at, retry_at = NULL, wait_reason = NULL, crash_count = 0,
    retry_remaining = max(retry_remaining, :max_attempts)
WHERE kind = :kind AND status = 'error' AND fingerprint IS NOT :fingerprint
RETURNING *;

-- name: revive_dead_jobs
-- All that is out of attempts.
UPDATE jobs
SET status = 'pending', ready_at = :ready_at, retry_at = NULL, wait_reason = NULL, crash_count = 0,
    retry_remaining = max(retry_remaining, :max_attempts)
WHERE kind = :kind AND status = 'error'
RETURNING *;

-- name: expedite_jobs
-- :reasons is a JSON array of wait reasons that do not hold now. Only a pending row has one (a CHECK of the schema); to
-- say so finds it by the index of pending rows.
UPDATE jobs
SET ready_at = :ready_at, retry_at = NULL, wait_reason = NULL
WHERE kind = :kind AND ready_at > :now AND status = 'pending' AND wait_reason IN (SELECT value FROM json_each(:reasons))
RETURNING *;

-- name: mend_waits
-- A wait that begins after :begun_after was set by a clock that was wrong then, or is wrong now.
UPDATE jobs
SET ready_at = :ready_at, retry_at = NULL, wait_reason = NULL
WHERE kind = :kind AND ready_at > :now AND status = 'pending'
  AND max(coalesce(finished_at, 0), coalesce(enqueued_at, 0)) > :begun_after
RETURNING *;

-- name: find_next_ready
-- The first entry of the partial index, and the ends of the few leases.
SELECT min(ready_at) FROM (
  SELECT min(ready_at) AS ready_at FROM jobs WHERE kind = :kind AND status = 'pending'
  UNION ALL SELECT min(lease_until) FROM jobs WHERE kind = :kind AND status = 'running'
);

-- name: count_ready
-- From the partial index.
SELECT count(*) FROM jobs WHERE kind = :kind AND ready_at <= :now AND status = 'pending';

-- name: find_last_success
-- For people: a walk through the rows of a kind, since an index would be a page more to write for every job.
SELECT max(last_success_at) FROM jobs WHERE kind = :kind;

-- name: count_jobs
-- Read from the published index alone.
SELECT kind, status, count(*) FROM jobs GROUP BY kind, status;

-- name: list_waiting
-- Pending and not yet ready.
SELECT * FROM jobs WHERE status = 'pending' AND ready_at > :now ORDER BY ready_at, kind, job_key LIMIT :limit;

-- name: list_running
-- All leases.
SELECT * FROM jobs
WHERE kind IN ('memory_stage1', 'memory_consolidate_global') AND status = 'running'
ORDER BY started_at, kind, job_key;

-- name: list_jobs
-- What needs attention first: dead, running, waiting, then what finished last.
SELECT * FROM jobs
WHERE (:kind IS NULL OR kind = :kind) AND (:status IS NULL OR status = :status)
ORDER BY CASE status WHEN 'error' THEN 0 WHEN 'running' THEN 1 WHEN 'pending' THEN 2 ELSE 3 END,
         ready_at, finished_at DESC, kind, job_key
LIMIT :limit;
