-- name: put_fact
-- The latest knowledge stands.
INSERT INTO model_facts (provider, model, key, value, learned_at)
VALUES (:provider, :model, :key, :value, :now)
ON CONFLICT (provider, model, key) DO UPDATE SET value = excluded.value, learned_at = excluded.learned_at;

-- name: find_fact
-- By primary key.
SELECT value FROM model_facts WHERE provider = :provider AND model = :model AND key = :key;
