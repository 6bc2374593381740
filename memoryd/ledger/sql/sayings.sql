-- name: delete_sayings
-- An output's sayings are replaced with it.
DELETE FROM sayings WHERE thread_id = :thread_id;

-- name: insert_saying
-- One speaker for each digest; whoever writes has told them apart.
INSERT INTO sayings (thread_id, digest, said_by) VALUES (:thread_id, :digest, :said_by);

-- name: list_sayings
-- Of one output.
SELECT digest, said_by FROM sayings WHERE thread_id = :thread_id;
