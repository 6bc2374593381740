-- name: insert_output
-- The first that a session taught.
INSERT INTO stage1_outputs (thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, generated_at)
VALUES (:thread_id, :source_updated_at, :raw_memory, :rollout_summary, :rollout_slug, :generated_at)
ON CONFLICT (thread_id) DO NOTHING;

-- name: replace_output
-- A later state of the session stays; usage and selection belong to the thread, not to the text.
UPDATE stage1_outputs
SET source_updated_at = :source_updated_at, raw_memory = :raw_memory, rollout_summary = :rollout_summary,
    rollout_slug = :rollout_slug, generated_at = :generated_at
WHERE thread_id = :thread_id AND source_updated_at <= :source_updated_at;

-- name: import_output
-- Another program's row as it stands there; how often a memory was used here is not forgotten for it.
INSERT INTO stage1_outputs (thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, generated_at,
                            usage_count, last_usage)
VALUES (:thread_id, :source_updated_at, :raw_memory, :rollout_summary, :rollout_slug, :generated_at, :usage_count,
        :last_usage)
ON CONFLICT (thread_id) DO UPDATE
SET source_updated_at = excluded.source_updated_at, raw_memory = excluded.raw_memory,
    rollout_summary = excluded.rollout_summary, rollout_slug = excluded.rollout_slug,
    generated_at = excluded.generated_at,
    usage_count = coalesce(stage1_outputs.usage_count, excluded.usage_count),
    last_usage = coalesce(stage1_outputs.last_usage, excluded.last_usage)
WHERE excluded.source_updated_at > stage1_outputs.source_updated_at;

-- name: find_any
-- A ledger that holds none has not learned anything yet.
SELECT EXISTS (SELECT 1 FROM stage1_outputs);

-- name: delete_output
-- The session teaches nothing any more.
DELETE FROM stage1_outputs WHERE thread_id = :thread_id;

-- name: select_for_consolidation
-- Ranked by use, cut, then given in thread-id order. Imported rows may lack their session. What may not be remembered,
-- what a rule leaves out by now, and what was taken back and has no earlier state in the folder, is no part of it.
SELECT * FROM (
  SELECT o.thread_id, o.source_updated_at AS updated_at, o.raw_memory, o.rollout_summary, o.rollout_slug,
         o.generated_at, coalesce(o.usage_count, 0) AS usage_count, o.last_usage, o.selected_for_phase2,
         o.selected_for_phase2_source_updated_at, s.agent, s.cwd, s.git_branch, s.path AS rollout_path, s.stem,
         s.started_at, h.standing_updated_at
  FROM stage1_outputs AS o LEFT JOIN sessions AS s ON s.thread_id = o.thread_id
       LEFT JOIN held_outputs AS h ON h.thread_id = o.thread_id AND h.source_updated_at = o.source_updated_at
  WHERE (h.thread_id IS NULL OR h.standing_updated_at IS NOT NULL)
    AND (trim(o.raw_memory) <> '' OR trim(o.rollout_summary) <> '')
    AND coalesce(s.remembers, 1) AND s.excluded IS NULL
    AND coalesce(o.last_usage, o.source_updated_at) >= :unused_before
  ORDER BY coalesce(o.usage_count, 0) DESC, coalesce(o.last_usage, o.source_updated_at) DESC,
           o.source_updated_at DESC, o.thread_id DESC
  LIMIT :limit
)
ORDER BY thread_id;

-- name: find_output
-- With what is known of its session.
SELECT o.thread_id, o.source_updated_at AS updated_at, o.raw_memory, o.rollout_summary, o.rollout_slug,
       o.generated_at, coalesce(o.usage_count, 0) AS usage_count, o.last_usage, o.selected_for_phase2,
       o.selected_for_phase2_source_updated_at, s.agent, s.cwd, s.git_branch, s.path AS rollout_path, s.stem,
       s.started_at
FROM stage1_outputs AS o LEFT JOIN sessions AS s ON s.thread_id = o.thread_id
WHERE o.thread_id = :thread_id;

-- name: list_selected
-- What the memory folder is made of.
SELECT o.thread_id, o.selected_for_phase2_source_updated_at AS source_updated_at, s.stem
FROM stage1_outputs AS o LEFT JOIN sessions AS s ON s.thread_id = o.thread_id
WHERE o.selected_for_phase2 = 1
ORDER BY o.thread_id;

-- name: clear_selection
-- Success rewrites the whole selection.
UPDATE stage1_outputs
SET selected_for_phase2 = 0, selected_for_phase2_source_updated_at = NULL
WHERE selected_for_phase2 = 1;

-- name: mark_selected
-- Only the very state that was consumed, or the one that stands in for a row that is kept out: a row replaced meanwhile
-- is new input.
UPDATE stage1_outputs
SET selected_for_phase2 = 1, selected_for_phase2_source_updated_at = :source_updated_at
WHERE thread_id = :thread_id
  AND (source_updated_at = :source_updated_at
       OR EXISTS (SELECT 1 FROM held_outputs AS h
                  WHERE h.thread_id = :thread_id AND h.standing_updated_at = :source_updated_at));

-- name: prune_outputs
-- A bounded number a pass, so that no transaction grows long.
DELETE FROM stage1_outputs WHERE thread_id IN (
  SELECT thread_id FROM stage1_outputs
  WHERE selected_for_phase2 = 0 AND coalesce(last_usage, source_updated_at) < :unused_before
  ORDER BY coalesce(last_usage, source_updated_at), thread_id
  LIMIT :limit
);

-- name: insert_usage_event
-- Only ids that are known count; the same message counts once, however many files repeat it.
INSERT INTO usage_events (thread_id, message_key, seen_at)
SELECT thread_id, :message_key, :now FROM stage1_outputs WHERE thread_id = :thread_id
ON CONFLICT DO NOTHING;

-- name: insert_unknown_citation
-- An id of no session that taught anything is counted, once for each message and place in it, and not kept.
INSERT INTO usage_events (thread_id, message_key, seen_at)
SELECT '', :message_key || '#' || :place, :now
WHERE NOT EXISTS (SELECT 1 FROM stage1_outputs WHERE thread_id = :thread_id)
ON CONFLICT DO NOTHING;

-- name: count_unknown_citations
-- Ids that were cited and are those of no session that taught anything.
SELECT count(*) FROM usage_events WHERE thread_id = '';

-- name: list_usage
-- How often the sessions that the memory is made of were used, by the stems of their files.
SELECT s.stem, coalesce(o.usage_count, 0), coalesce(o.last_usage, 0)
FROM stage1_outputs AS o JOIN sessions AS s ON s.thread_id = o.thread_id
WHERE o.selected_for_phase2 = 1 AND s.stem IS NOT NULL;

-- name: list_memories
-- What was learned, for a person to look at: the most used first, then the latest.
SELECT o.thread_id, s.agent, s.cwd, o.rollout_slug AS slug, o.rollout_summary AS summary, o.source_updated_at,
       coalesce(o.usage_count, 0) AS usage_count, o.last_usage, o.selected_for_phase2 AS is_selected,
       coalesce(s.remembers, 1) AND s.excluded IS NULL AS is_wanted, s.excluded, h.because AS held_because
FROM stage1_outputs AS o LEFT JOIN sessions AS s ON s.thread_id = o.thread_id
     LEFT JOIN held_outputs AS h ON h.thread_id = o.thread_id AND h.source_updated_at = o.source_updated_at
ORDER BY coalesce(o.usage_count, 0) DESC, coalesce(o.last_usage, o.source_updated_at) DESC,
         o.source_updated_at DESC, o.thread_id DESC;

-- name: count_usage
-- Does not enqueue: use changes the ranking of the next run, and asks for none.
UPDATE stage1_outputs
SET usage_count = coalesce(usage_count, 0) + 1, last_usage = max(coalesce(last_usage, 0), :now)
WHERE thread_id = :thread_id;
