-- name: insert_request
-- Before it is sent: a kill between sending and settling leaves a row that counts as estimated.
INSERT INTO requests (at, kind, job_key, attempt_id, reference, provider, model, estimated_tokens, estimated_cost)
VALUES (:now, :kind, :job_key, :attempt_id, :reference, :provider, :model, :estimated_tokens, :estimated_cost)
RETURNING id;

-- name: settle_request
-- Once.
UPDATE requests
SET settled_at = :now, outcome = :outcome, tokens_in = :tokens_in, tokens_out = :tokens_out,
    tokens_cached = :tokens_cached, cost = :cost, duration_ms = :duration_ms, tokens_reasoning = :tokens_reasoning
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

-- name: sum_of_attempt
-- What one run has taken or reserved so far, through the index on runs.
SELECT count(*),
       coalesce(sum(CASE WHEN tokens_in IS NULL AND tokens_out IS NULL THEN estimated_tokens
                    ELSE coalesce(tokens_in, 0) + coalesce(tokens_out, 0) END), 0)
FROM requests
WHERE attempt_id = :attempt_id;

-- name: sum_requests
-- Through the index on time, and from the sums of what is older. UTC days, as the caps count them, in their order; else
-- what took most first.
SELECT label,
       sum(requests) AS requests, sum(estimated) AS estimated, sum(tokens) AS tokens, sum(tokens_in) AS tokens_in,
       sum(tokens_out) AS tokens_out, sum(tokens_cached) AS tokens_cached, sum(tokens_reasoning) AS tokens_reasoning,
       sum(cost) AS cost, sum(duration_ms) AS duration_ms, json_group_object(outcome, requests) AS outcomes
FROM (
  SELECT label, outcome, sum(requests) AS requests, sum(estimated) AS estimated, sum(tokens) AS tokens,
         sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out, sum(tokens_cached) AS tokens_cached,
         sum(tokens_reasoning) AS tokens_reasoning, sum(cost) AS cost, sum(duration_ms) AS duration_ms
  FROM (
    SELECT CASE :by WHEN 'day' THEN date(at, 'unixepoch') WHEN 'job' THEN kind || ' ' || job_key
                ELSE provider || ' ' || model END AS label,
           coalesce(outcome, 'pending') AS outcome, 1 AS requests,
           tokens_in IS NULL AND tokens_out IS NULL AS estimated,
           CASE WHEN tokens_in IS NULL AND tokens_out IS NULL THEN estimated_tokens
                ELSE coalesce(tokens_in, 0) + coalesce(tokens_out, 0) END AS tokens,
           coalesce(tokens_in, 0) AS tokens_in, coalesce(tokens_out, 0) AS tokens_out,
           coalesce(tokens_cached, 0) AS tokens_cached, coalesce(tokens_reasoning, 0) AS tokens_reasoning,
           coalesce(cost, estimated_cost) AS cost, coalesce(duration_ms, 0) AS duration_ms
    FROM requests
    WHERE at >= :since
    UNION ALL
    SELECT CASE :by WHEN 'day' THEN date(day * 86400, 'unixepoch')
                    WHEN 'job' THEN kind || ' ' || CASE job_key WHEN '' THEN '(older sessions)' ELSE job_key END
                    ELSE provider || ' ' || model END,
           outcome, requests, estimated, tokens, tokens_in, tokens_out, tokens_cached, tokens_reasoning, cost, duration_ms
    FROM request_sums
    WHERE day * 86400 >= :since
  )
  GROUP BY label, outcome
)
GROUP BY label
ORDER BY CASE :by WHEN 'day' THEN 0 ELSE -sum(tokens) END, label;
