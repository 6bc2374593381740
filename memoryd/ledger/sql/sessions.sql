-- name: list_files
-- A whole scan on purpose: discovery compares all of it with the file system, once per pass.
SELECT path, size, mtime_ns FROM other_files
UNION ALL
SELECT path, size, mtime_ns FROM sessions;

-- name: keep_former_file
-- Before another file of the session takes over, its present one becomes a known copy.
INSERT INTO other_files (path, size, mtime_ns, thread_id, problem, seen_at, agent)
SELECT path, size, mtime_ns, thread_id, 'copy', :now, agent FROM sessions
WHERE thread_id = :thread_id AND path <> :path
  AND (:updated_at, :record_bytes) >= (updated_at, record_bytes)
ON CONFLICT (path) DO UPDATE
SET size = excluded.size, mtime_ns = excluded.mtime_ns, thread_id = excluded.thread_id, problem = excluded.problem,
    seen_at = excluded.seen_at, agent = excluded.agent;

-- name: drop_other_file
-- The file is a session's own now.
DELETE FROM other_files WHERE path = :path;

-- name: upsert_session
-- No row back: another file of the session reaches further, and stays. The same file may also reach less far.
-- seniority is set once; what reading found holds for the very records that were read. Of a forgotten session no words
-- are kept.
INSERT INTO sessions (thread_id, agent, path, cwd, git_branch, parent_id, kind, originator, started_at, size, mtime_ns,
                      updated_at, record_bytes, memory_mode, read_error, first_seen_at, ephemeral, lineage, seniority)
VALUES (:thread_id, :agent, :path, :cwd, :git_branch, :parent_id, :kind, :originator, :started_at, :size, :mtime_ns,
        :updated_at, :record_bytes, :memory_mode, :read_error, :now, :ephemeral, :lineage,
        printf('%012d.%012d', coalesce(:started_at, :updated_at), :updated_at))
ON CONFLICT (thread_id) DO UPDATE
SET agent = excluded.agent, path = excluded.path,
    cwd = CASE WHEN sessions.excluded IS NOT 'forgotten' THEN excluded.cwd END,
    git_branch = CASE WHEN sessions.excluded IS NOT 'forgotten' THEN excluded.git_branch END,
    originator = CASE WHEN sessions.excluded IS NOT 'forgotten' THEN excluded.originator END,
    parent_id = excluded.parent_id, kind = excluded.kind,
    started_at = excluded.started_at, size = excluded.size, mtime_ns = excluded.mtime_ns,
    updated_at = excluded.updated_at, record_bytes = excluded.record_bytes, memory_mode = excluded.memory_mode,
    read_error = CASE WHEN sessions.excluded IS NOT 'forgotten' THEN excluded.read_error END,
    ephemeral = excluded.ephemeral, lineage = excluded.lineage,
    finding = CASE WHEN (excluded.updated_at, excluded.record_bytes) = (sessions.updated_at, sessions.record_bytes)
              THEN sessions.finding END
WHERE sessions.path = excluded.path
   OR (excluded.updated_at, excluded.record_bytes) >= (sessions.updated_at, sessions.record_bytes)
RETURNING *;

-- name: upsert_other_file
-- Known by size and time of change, so that it is not read again.
INSERT INTO other_files (path, size, mtime_ns, thread_id, problem, seen_at, agent)
VALUES (:path, :size, :mtime_ns, :thread_id, :problem, :now, :agent)
ON CONFLICT (path) DO UPDATE
SET size = excluded.size, mtime_ns = excluded.mtime_ns, thread_id = excluded.thread_id, problem = excluded.problem,
    seen_at = excluded.seen_at, agent = excluded.agent;

-- name: list_copies
-- Other files of the same session: twins, archived copies, the same id in another agent's folders.
SELECT path, agent FROM other_files WHERE thread_id = :thread_id ORDER BY path;

-- name: list_family
-- Sessions that may hold each other's rows, and the parent that is named; the oldest first.
SELECT * FROM sessions
WHERE agent = :agent AND (lineage = :lineage OR thread_id = :parent_id)
ORDER BY seniority, thread_id;

-- name: list_problems
-- What could not be read as a session.
SELECT path, problem FROM other_files
WHERE problem IS NOT NULL AND problem <> 'copy'
ORDER BY seen_at DESC, path
LIMIT :limit;

-- name: list_due
-- Through the partial index on open sessions: what is covered or enqueued costs nothing.
SELECT * FROM sessions
WHERE is_open AND updated_at <= :idle_before AND updated_at >= :newest_from
ORDER BY updated_at DESC, thread_id DESC
LIMIT :limit;

-- name: find_session
-- By primary key.
SELECT * FROM sessions WHERE thread_id = :thread_id;

-- name: list_by_prefix
-- For people: an id may be cut, and the agent's name in front of it left out. A scan, and rare.
SELECT * FROM sessions
WHERE substr(thread_id, 1, length(:prefix)) = :prefix OR substr(thread_id, length(agent) + 2, length(:prefix)) = :prefix
ORDER BY thread_id
LIMIT :limit;

-- name: find_by_path
-- The session's own file first, then copies.
SELECT * FROM sessions
WHERE path = :path OR thread_id = (SELECT thread_id FROM other_files WHERE path = :path)
ORDER BY path = :path DESC, updated_at DESC
LIMIT 1;

-- name: list_sessions
-- For people.
SELECT * FROM sessions ORDER BY updated_at DESC, thread_id LIMIT :limit;

-- name: list_left_out
-- For people: those that one rule, or one finding, keeps out.
SELECT * FROM sessions WHERE coalesce(excluded, finding) = :reason ORDER BY updated_at DESC, thread_id LIMIT :limit;

-- name: set_excluded
-- Discovery decides anew at each look; it never brings back what a person had forgotten.
UPDATE sessions SET excluded = :reason
WHERE thread_id = :thread_id AND excluded IS NOT :forgotten;

-- name: forget_queued
-- A rule that was lifted leaves the session due again, unless it was extracted as it is.
UPDATE sessions SET queued_updated_at = NULL, queued_bytes = NULL WHERE thread_id = :thread_id;

-- name: count_excluded
-- From the partial indexes. What a rule leaves out is counted under the rule, whatever reading found before.
SELECT excluded, count(*) FROM sessions WHERE excluded IS NOT NULL GROUP BY excluded
UNION ALL
SELECT finding, count(*) FROM sessions WHERE finding IS NOT NULL AND excluded IS NULL GROUP BY finding;

-- name: set_finding
-- Only of the state that was read: the file may have grown since.
UPDATE sessions SET finding = :finding
WHERE thread_id = :thread_id AND (updated_at, record_bytes) = (:updated_at, :record_bytes);

-- name: list_vanished
-- Few, through the partial index: discovery looks for them at each scan.
SELECT path FROM sessions WHERE finding = 'vanished';

-- name: forget_finding
-- The file is back.
UPDATE sessions SET finding = NULL WHERE thread_id = :thread_id;

-- name: set_memory_mode
-- The agent's last word, which may stand further from the end of the file than discovery looks.
UPDATE sessions SET memory_mode = :memory_mode WHERE thread_id = :thread_id;

-- name: set_user_mode
-- `enabled` also lifts what excluded or polluted it. What was forgotten is looked at again: its words are not known.
UPDATE sessions
SET user_mode = :mode,
    finding = CASE WHEN :mode = 'enabled' AND excluded = 'forgotten' THEN 'vanished' ELSE finding END,
    excluded = CASE WHEN :mode = 'enabled' THEN NULL ELSE excluded END,
    polluted_at = CASE WHEN :mode = 'enabled' THEN NULL ELSE polluted_at END
WHERE thread_id = :thread_id;

-- name: list_without_recall
-- Sessions that are given nothing when they are resumed.
SELECT thread_id FROM sessions WHERE user_mode = 'no-recall' ORDER BY thread_id;

-- name: mark_polluted
-- The first time stands.
UPDATE sessions SET polluted_at = coalesce(polluted_at, :now) WHERE thread_id = :thread_id;

-- name: fix_stem
-- The first name stands, so that a session that is regenerated overwrites its file.
UPDATE sessions SET stem = coalesce(stem, :stem) WHERE thread_id = :thread_id RETURNING stem;

-- name: record_queued
-- The pair that the job's present watermark stands for.
UPDATE sessions SET queued_updated_at = :updated_at, queued_bytes = :record_bytes WHERE thread_id = :thread_id;

-- name: find_queued
-- Is this the state that was enqueued last?
SELECT 1 FROM sessions
WHERE thread_id = :thread_id AND queued_updated_at = :updated_at AND queued_bytes = :record_bytes;

-- name: record_covered
-- When the pair is also what is known of the file, an older enqueued pair is forgotten: the file may return to it. When
-- the job is done, nothing is enqueued any more: what is known of the file and not covered is due at the next scan, which
-- looks at the file first, so that knowledge that was merely old asks for nothing.
UPDATE sessions
SET covered_updated_at = :updated_at, covered_bytes = :record_bytes,
    queued_updated_at = CASE WHEN updated_at = :updated_at AND record_bytes = :record_bytes THEN :updated_at
                        WHEN (SELECT status FROM jobs WHERE kind = 'memory_stage1' AND job_key = :thread_id) <> 'done'
                        THEN queued_updated_at END,
    queued_bytes = CASE WHEN updated_at = :updated_at AND record_bytes = :record_bytes THEN :record_bytes
                   WHEN (SELECT status FROM jobs WHERE kind = 'memory_stage1' AND job_key = :thread_id) <> 'done'
                   THEN queued_bytes END
WHERE thread_id = :thread_id;

-- name: find_selection
-- Has the session an output, and is that part of the memory folder?
SELECT selected_for_phase2 FROM stage1_outputs WHERE thread_id = :thread_id;
