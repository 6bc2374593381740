-- name: list_outputs
-- A batch by row number: every row is looked at once, however long it takes.
SELECT rowid AS id, raw_memory, rollout_summary, rollout_slug
FROM stage1_outputs WHERE rowid > :after ORDER BY rowid LIMIT :limit;

-- name: rewrite_output
-- The text alone: the row is of the same state of the session, used as often, and selected as before.
UPDATE stage1_outputs
SET raw_memory = :raw_memory, rollout_summary = :rollout_summary, rollout_slug = :rollout_slug
WHERE rowid = :id;

-- name: drop_stem
-- The name of the session's file was made from what the slug said.
UPDATE sessions SET stem = NULL
WHERE thread_id = (SELECT thread_id FROM stage1_outputs WHERE stage1_outputs.rowid = :id);

-- name: list_sessions
-- What discovery keeps of a session's own words.
SELECT rowid AS id, cwd, git_branch, originator, read_error
FROM sessions WHERE rowid > :after ORDER BY rowid LIMIT :limit;

-- name: rewrite_session
-- Not the path: by it the session is found again.
UPDATE sessions SET cwd = :cwd, git_branch = :git_branch, originator = :originator, read_error = :read_error
WHERE rowid = :id;

-- name: list_claims
-- Also those that no longer hold.
SELECT id, text, section, scope FROM claims WHERE id > :after ORDER BY id LIMIT :limit;

-- name: rewrite_claim
-- Two that differed in a secret alone are one claim from now on.
UPDATE OR REPLACE claims SET text = :text, section = :section, scope = :scope WHERE id = :id;

-- name: list_claim_texts
-- What claims said before.
SELECT id, text FROM claim_texts WHERE id > :after ORDER BY id LIMIT :limit;

-- name: rewrite_claim_text
-- Until when it said so stays.
UPDATE claim_texts SET text = :text WHERE id = :id;

-- name: list_job_errors
-- Why jobs wait or have failed.
SELECT rowid AS id, last_error FROM jobs WHERE rowid > :after ORDER BY rowid LIMIT :limit;

-- name: rewrite_job_error
-- The job itself stays as it is.
UPDATE jobs SET last_error = :last_error WHERE rowid = :id;

-- name: list_attempt_errors
-- What ended each run.
SELECT id, error FROM attempts WHERE id > :after ORDER BY id LIMIT :limit;

-- name: rewrite_attempt_error
-- The outcome of a run stands.
UPDATE attempts SET error = :error WHERE id = :id;

-- name: list_problems
-- Why files could not be read.
SELECT rowid AS id, problem FROM other_files WHERE rowid > :after ORDER BY rowid LIMIT :limit;

-- name: rewrite_problem
-- Not the path: by it the file is known.
UPDATE other_files SET problem = :problem WHERE rowid = :id;
