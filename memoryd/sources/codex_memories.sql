-- name: list_outputs
-- The published columns; a text that nobody could have written stays where it is.
SELECT thread_id, source_updated_at,
       CASE WHEN length(raw_memory) <= :most_characters THEN raw_memory END,
       CASE WHEN length(rollout_summary) <= :most_characters THEN rollout_summary END,
       substr(rollout_slug, 1, 1000), generated_at, usage_count, last_usage, selected_for_phase2,
       selected_for_phase2_source_updated_at
FROM stage1_outputs
WHERE thread_id > :after
ORDER BY thread_id
LIMIT :page;

-- name: list_threads
-- What Codex knows of the sessions that its memory is made of.
SELECT id, substr(rollout_path, 1, 4096), substr(cwd, 1, 4096), substr(git_branch, 1, 1000)
FROM threads
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: list_modes
-- Its own word about remembering them; earlier versions of the table have no such column.
SELECT id, memory_mode
FROM threads
WHERE id IN (SELECT value FROM json_each(:ids));
