-- name: forget_session
-- The row stays, so that nobody extracts the session again; of its words nothing does. Its path is how it is found.
UPDATE sessions
SET excluded = 'forgotten', cwd = NULL, git_branch = NULL, originator = NULL, read_error = NULL, finding = NULL,
    stem = NULL, covered_updated_at = NULL, covered_bytes = NULL, queued_updated_at = NULL, queued_bytes = NULL
WHERE thread_id = :thread_id;

-- name: delete_output
-- Who spoke its words (sayings) goes with it.
DELETE FROM stage1_outputs WHERE thread_id = :thread_id;

-- name: delete_usage
-- Citations of what is gone.
DELETE FROM usage_events WHERE thread_id = :thread_id;

-- name: delete_idle_job
-- A job that runs is asked to stop first, and goes afterwards.
DELETE FROM jobs WHERE kind = 'memory_stage1' AND job_key = :thread_id AND status <> 'running';

-- name: delete_job
-- Whoever still holds it finds its lease lost.
DELETE FROM jobs WHERE kind = 'memory_stage1' AND job_key = :thread_id;

-- name: clear_attempt_errors
-- A refusal may quote what it refused.
UPDATE attempts SET error = NULL WHERE kind = :kind AND job_key = :job_key;

-- name: clear_job_error
-- Complaints about a result quote it. A dead job must say why it is dead.
UPDATE jobs SET last_error = CASE status WHEN 'error' THEN :instead END
WHERE kind = :kind AND job_key = :job_key;

-- name: delete_lonely_claims
-- Claims, closed ones too, that sessions support, all of which are among those that go.
DELETE FROM claims
WHERE id IN (SELECT claim_id FROM claim_threads)
  AND id NOT IN (SELECT claim_id FROM claim_threads WHERE thread_id NOT IN (SELECT value FROM json_each(:threads)));

-- name: delete_shared_claims
-- Whatever else supports them.
DELETE FROM claims
WHERE id IN (SELECT claim_id FROM claim_threads WHERE thread_id IN (SELECT value FROM json_each(:threads)));

-- name: withdraw_support
-- What others support stays, on their evidence.
DELETE FROM claim_threads WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: delete_published
-- The commits that they name are gone with the history.
DELETE FROM publications WHERE state = 'published';

-- name: delete_all_publications
-- Also what was decided: the folder that it was decided for is gone.
DELETE FROM publications;

-- name: delete_all_outputs
-- Everything that was learned.
DELETE FROM stage1_outputs;

-- name: delete_all_usage
-- How often it was used.
DELETE FROM usage_events;

-- name: delete_all_claims
-- What it said, and when.
DELETE FROM claims;

-- name: delete_all_jobs
-- What was to be done; whoever holds one finds its lease lost.
DELETE FROM jobs;

-- name: clear_all_attempt_errors
-- The runs stay, as requests do: what was spent is accounted for. What they said goes.
UPDATE attempts SET error = NULL;

-- name: clear_all_problems
-- What reading files said.
UPDATE other_files SET problem = 'unreadable' WHERE problem <> 'copy';

-- name: settle_all_sessions
-- As if everything that is there had been extracted: only what comes after it is due. File names made of slugs go.
UPDATE sessions
SET covered_updated_at = updated_at, covered_bytes = record_bytes, queued_updated_at = NULL, queued_bytes = NULL,
    stem = NULL, read_error = NULL;

-- name: reopen_all_sessions
-- As if nothing had been extracted yet. What was forgotten is left out all the same.
UPDATE sessions
SET covered_updated_at = NULL, covered_bytes = NULL, queued_updated_at = NULL, queued_bytes = NULL,
    stem = NULL, read_error = NULL, finding = NULL;

-- name: delete_imports
-- What was imported is gone with all the rest, and can be imported again (meta.IMPORTED).
DELETE FROM meta WHERE key GLOB 'imported:*';

-- name: delete_meta
-- A fact that no longer holds.
DELETE FROM meta WHERE key = :key;

-- name: delete_proposals
-- Results that waited for a person, or did: what they were made from has gone.
DELETE FROM proposals;
