-- name: insert_request
-- Before it is sent: a kill between sending and settling leaves a row that counts as estimated.
INSERT INTO requests (at, kind, job_key, attempt_id, reference, provider, model, estimated_tokens, estimated_cost)
VALUES (:now, :kind, :job_key, :attempt_id, :reference, :provider, :model, :estimated_tokens, :estimated_cost)
RETURNING id;

-- name: settle_request
-- Once.
UPDATE requests
SET settled_at = :now, outcome = :outcome, tokens_in = :tokens_in, tokens_out = :tokens_out,
    tokens_cached = :tokens_cached, cost = :cost, duration_ms = :duration_ms
WHERE id = :id AND settled_at IS NULL
RETURNING *;

-- name: sum_since
-- Through the index on time. What a wrong clock put into the future counts too: rather too careful.
SELECT count(*),
       coalesce(sum(CASE WHEN tokens_in IS NULL AND tokens_out IS NULL THEN estimated_tokens
                    ELSE coalesce(tokens_in, 0) + coalesce(tokens_out, 0) END), 0),
       coalesce(sum(coalesce(cost, estimated_cost)), 0.0)
FROM requests
WHERE at >= :midnight;

-- name: list_of_attempt
-- The steps of one run.
SELECT * FROM requests WHERE attempt_id = :attempt_id ORDER BY id;
