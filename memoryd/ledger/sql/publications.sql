-- name: insert_publication
-- The unique index on 'decided' refuses a second decision while one is not in place.
INSERT INTO publications (commit_id, base_id, state, attempt_id, decided_at)
VALUES (:commit_id, :base_id, 'decided', :attempt_id, :now)
RETURNING id;

-- name: find_pending
-- At most one.
SELECT * FROM publications WHERE state = 'decided';

-- name: mark_published
-- Idempotent, as putting in place is.
UPDATE publications SET state = 'published', published_at = :now WHERE id = :id AND state = 'decided';

-- name: find_latest
-- The last row of the table.
SELECT * FROM publications ORDER BY id DESC LIMIT 1;
