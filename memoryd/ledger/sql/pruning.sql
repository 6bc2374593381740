-- name: sum_up_requests
-- The oldest rows, added to the sums of their day. What it takes is what delete_summed deletes in the same transaction.
INSERT INTO request_sums (day, kind, job_key, provider, model, outcome, requests, estimated, tokens, tokens_in,
                          tokens_out, tokens_cached, tokens_reasoning, cost, duration_ms)
SELECT at / 86400, kind, CASE kind WHEN 'memory_stage1' THEN '' ELSE job_key END, provider, model,
       coalesce(outcome, 'pending'), count(*), sum(tokens_in IS NULL AND tokens_out IS NULL),
       sum(CASE WHEN tokens_in IS NULL AND tokens_out IS NULL THEN estimated_tokens
           ELSE coalesce(tokens_in, 0) + coalesce(tokens_out, 0) END),
       sum(coalesce(tokens_in, 0)), sum(coalesce(tokens_out, 0)), sum(coalesce(tokens_cached, 0)),
       sum(coalesce(tokens_reasoning, 0)), sum(coalesce(cost, estimated_cost)), sum(coalesce(duration_ms, 0))
FROM requests
WHERE id IN (SELECT id FROM requests WHERE at < :before ORDER BY at, id LIMIT :limit)
GROUP BY 1, 2, 3, 4, 5, 6
ON CONFLICT (day, kind, job_key, provider, model, outcome) DO UPDATE
SET requests = requests + excluded.requests, estimated = estimated + excluded.estimated,
    tokens = tokens + excluded.tokens, tokens_in = tokens_in + excluded.tokens_in,
    tokens_out = tokens_out + excluded.tokens_out, tokens_cached = tokens_cached + excluded.tokens_cached,
    tokens_reasoning = tokens_reasoning + excluded.tokens_reasoning, cost = cost + excluded.cost,
    duration_ms = duration_ms + excluded.duration_ms;

-- name: delete_summed
-- Through the index on time.
DELETE FROM requests WHERE id IN (SELECT id FROM requests WHERE at < :before ORDER BY at, id LIMIT :limit);

-- name: list_crowded_jobs
-- Once a day, from the index alone: jobs that had more runs than are shown, and runs of jobs that are gone.
SELECT a.kind, a.job_key, j.kind IS NULL AS is_gone
FROM (SELECT kind, job_key, count(*) AS runs FROM attempts GROUP BY kind, job_key) AS a
LEFT JOIN jobs AS j ON j.kind = a.kind AND j.job_key = a.job_key
WHERE a.runs > :kept OR j.kind IS NULL
ORDER BY a.kind, a.job_key;

-- name: list_old_runs
-- Oldest first; of a job that is there the newest are kept. The last row of all stays: the next number follows it.
SELECT id, started_at, outcome = 'done' AS is_done
FROM attempts
WHERE kind = :kind AND job_key = :job_key AND started_at < :before AND outcome IS NOT NULL
  AND id < (SELECT max(id) FROM attempts)
  AND id NOT IN (SELECT id FROM attempts WHERE kind = :kind AND job_key = :job_key ORDER BY id DESC LIMIT :kept)
ORDER BY id
LIMIT :limit;

-- name: list_written_at
-- When what is remembered was written: the run that took it in is named beside it.
SELECT generated_at FROM stage1_outputs;

-- name: delete_runs
-- By primary key.
DELETE FROM attempts WHERE id IN (SELECT value FROM json_each(:ids));
