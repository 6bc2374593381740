-- name: insert_attempt
-- The run that the claim has just begun, under the id that it gave it. What died of a version, a model or a prompt can be
-- found again by its fingerprint.
INSERT INTO attempts (id, kind, job_key, epoch, worker_id, input_watermark, started_at, provider, model, fingerprint)
VALUES (:id, :kind, :job_key, :epoch, :worker_id, :input_watermark, :started_at, :provider, :model, :fingerprint);

-- name: end_attempt
-- The first outcome stands.
UPDATE attempts
SET ended_at = :now, duration_ms = :duration_ms, outcome = :outcome, error_class = :error_class, error = :error
WHERE id = :id AND outcome IS NULL;

-- name: add_request
-- The sums of a run grow with each settled request; all requests of a run go to one model.
UPDATE attempts
SET provider = :provider, model = :model, requests = requests + 1,
    tokens_in = tokens_in + :tokens_in, tokens_out = tokens_out + :tokens_out,
    tokens_cached = tokens_cached + :tokens_cached, cost = cost + :cost
WHERE id = :id;

-- name: list_attempts
-- The newest runs of one job.
SELECT * FROM attempts WHERE kind = :kind AND job_key = :job_key ORDER BY id DESC LIMIT :limit;
