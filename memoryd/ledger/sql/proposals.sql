-- name: insert_proposal
-- The unique index on 'waiting' refuses a second one.
INSERT INTO proposals (commit_id, base_id, accepted_id, inputs, state, attempt_id, made_at)
VALUES (:commit_id, :base_id, :accepted_id, :inputs, 'waiting', :attempt_id, :now)
RETURNING id;

-- name: end_waiting
-- Whatever is published or proposed makes what waits out of date.
UPDATE proposals SET state = 'superseded', ended_at = :now WHERE state = 'waiting';

-- name: end_proposal
-- A person's word on the one that waits.
UPDATE proposals SET state = :state, ended_at = :now WHERE id = :id AND state = 'waiting' RETURNING *;

-- name: find_waiting
-- At most one.
SELECT * FROM proposals WHERE state = 'waiting';

-- name: find_latest_ended
-- What a person said last.
SELECT * FROM proposals WHERE state <> 'waiting' ORDER BY id DESC LIMIT 1;

-- name: find_proposal
-- By its number.
SELECT * FROM proposals WHERE id = :id;

-- name: list_proposals
-- Newest first.
SELECT * FROM proposals ORDER BY id DESC LIMIT :limit;
