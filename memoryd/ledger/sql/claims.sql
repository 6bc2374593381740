-- name: list_valid
-- What stands in the handbook.
SELECT * FROM claims WHERE invalidated_at IS NULL ORDER BY id;

-- name: list_all
-- Closed ones too, newest first: history answers from them.
SELECT * FROM claims ORDER BY id DESC LIMIT :limit;

-- name: find_claim
-- One, whether it stands or not.
SELECT * FROM claims WHERE id = :id;

-- name: list_predecessors
-- The claims whose place one has taken.
SELECT * FROM claims WHERE successor_id = :id ORDER BY id;

-- name: list_of_thread
-- Closed ones too: history answers from them.
SELECT c.* FROM claim_threads AS t JOIN claims AS c ON c.id = t.claim_id WHERE t.thread_id = :thread_id ORDER BY c.id;

-- name: insert_claim
-- Valid from the decision that brought it.
INSERT INTO claims (text, section, scope, status, author, valid_from)
VALUES (:text, :section, :scope, :status, :author, :now)
RETURNING id;

-- name: close_claim
-- Closed, not erased. Only valid ones are looked at, in this very transaction.
UPDATE claims SET invalidated_at = :now, closed_because = :because WHERE id = :id;

-- name: set_successor
-- Known once the new claims have their ids.
UPDATE claims SET successor_id = :successor_id WHERE id = :id;

-- name: rewrite_claim
-- The same claim in other words, with better or worse evidence, or seen to hold elsewhere too.
UPDATE claims SET text = :text, scope = :scope, status = :status, author = :author WHERE id = :id;

-- name: insert_earlier_text
-- What it said until now, and on whose evidence.
INSERT INTO claim_texts (claim_id, text, status, until, threads)
SELECT id, text, status, :now, :threads FROM claims WHERE id = :id;

-- name: delete_earlier_texts
-- Also of claims that rest on other sessions by now.
DELETE FROM claim_texts
WHERE EXISTS (
  SELECT 1 FROM json_each(claim_texts.threads) AS supporting
  WHERE supporting.value IN (SELECT value FROM json_each(:threads))
);

-- name: delete_claims
-- Closed or not: a purge has taken their words out.
DELETE FROM claims WHERE id IN (SELECT value FROM json_each(:ids));

-- name: delete_earlier_texts_of
-- What they say now stays.
DELETE FROM claim_texts WHERE claim_id IN (SELECT value FROM json_each(:ids));

-- name: list_earlier_texts
-- Oldest first.
SELECT text, status, until FROM claim_texts WHERE claim_id = :claim_id ORDER BY id;

-- name: list_all_earlier_texts
-- So that a claim is found by what it said before.
SELECT claim_id, text FROM claim_texts ORDER BY id DESC LIMIT :limit;

-- name: delete_claim_threads
-- The evidence is rewritten with the claim.
DELETE FROM claim_threads WHERE claim_id = :claim_id;

-- name: insert_claim_thread
-- One supporting session.
INSERT INTO claim_threads (claim_id, thread_id) VALUES (:claim_id, :thread_id);

-- name: list_claim_threads
-- In thread-id order.
SELECT thread_id FROM claim_threads WHERE claim_id = :claim_id ORDER BY thread_id;

-- name: list_valid_threads
-- The evidence of all that stands, at once.
SELECT t.claim_id, t.thread_id
FROM claims AS c JOIN claim_threads AS t ON t.claim_id = c.id
WHERE c.invalidated_at IS NULL
ORDER BY t.claim_id, t.thread_id;
