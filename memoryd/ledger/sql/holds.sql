-- name: hold_output
-- The very state that stands in the row; a later one is new input.
INSERT INTO held_outputs (thread_id, source_updated_at, standing_updated_at, because, held_at)
SELECT thread_id, source_updated_at, :standing_updated_at, :because, :now FROM stage1_outputs
WHERE thread_id = :thread_id AND source_updated_at = :source_updated_at
ON CONFLICT (thread_id) DO UPDATE
SET source_updated_at = excluded.source_updated_at, standing_updated_at = excluded.standing_updated_at,
    because = excluded.because, held_at = excluded.held_at;

-- name: let_go
-- What was taken back is wanted again.
DELETE FROM held_outputs WHERE thread_id = :thread_id;

-- name: list_held
-- Only what still is as it was when it was taken back.
SELECT h.thread_id, h.source_updated_at, h.standing_updated_at, h.because, h.held_at
FROM held_outputs AS h JOIN stage1_outputs AS o
  ON o.thread_id = h.thread_id AND o.source_updated_at = h.source_updated_at
ORDER BY h.thread_id;

-- name: list_remembered
-- The states that could be selected, whatever their age.
SELECT o.thread_id, o.source_updated_at
FROM stage1_outputs AS o LEFT JOIN sessions AS s ON s.thread_id = o.thread_id
WHERE coalesce(s.remembers, 1) AND s.excluded IS NULL
ORDER BY o.thread_id;

-- name: mark_standing
-- The folder holds this session at an earlier state than the row does.
UPDATE stage1_outputs
SET selected_for_phase2 = 1, selected_for_phase2_source_updated_at = :source_updated_at
WHERE thread_id = :thread_id;
