-- name: delete_sayings
-- An output's sayings are replaced with it.
DELETE FROM sayings WHERE thread_id = :thread_id;

-- name: insert_saying
-- The same words twice are one saying.
INSERT INTO sayings (thread_id, digest, said_by) VALUES (:thread_id, :digest, :said_by) ON CONFLICT DO NOTHING;

-- name: list_sayings
-- Of one output.
SELECT digest, said_by FROM sayings WHERE thread_id = :thread_id;
