-- name: list_valid
-- What stands in the handbook.
SELECT * FROM claims WHERE invalidated_at IS NULL ORDER BY id;

-- name: list_of_thread
-- Closed ones too: history answers from them.
SELECT c.* FROM claim_threads AS t JOIN claims AS c ON c.id = t.claim_id WHERE t.thread_id = :thread_id ORDER BY c.id;

-- name: insert_claim
-- Valid from the decision that brought it.
INSERT INTO claims (text, section, scope, status, valid_from)
VALUES (:text, :section, :scope, :status, :now)
RETURNING id;

-- name: invalidate_claim
-- Closed, not erased. Only valid ones are looked at, in this very transaction.
UPDATE claims SET invalidated_at = :now WHERE id = :id;

-- name: set_claim_status
-- Evidence may have become better or worse.
UPDATE claims SET status = :status WHERE id = :id;

-- name: delete_claim_threads
-- The evidence is rewritten with the claim.
DELETE FROM claim_threads WHERE claim_id = :claim_id;

-- name: insert_claim_thread
-- One supporting session.
INSERT INTO claim_threads (claim_id, thread_id) VALUES (:claim_id, :thread_id);

-- name: list_claim_threads
-- In thread-id order.
SELECT thread_id FROM claim_threads WHERE claim_id = :claim_id ORDER BY thread_id;
