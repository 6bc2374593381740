-- name: put_fact
-- The latest knowledge stands.
INSERT INTO model_facts (provider, model, key, value, learned_at)
VALUES (:provider, :model, :key, :value, :now)
ON CONFLICT (provider, model, key) DO UPDATE SET value = excluded.value, learned_at = excluded.learned_at;

-- name: find_fact
-- By primary key.
SELECT value FROM model_facts WHERE provider = :provider AND model = :model AND key = :key;

-- name: put_newer_fact
-- learned_at is when it was true; sessions are read in any order, and what is older than the known says nothing.
INSERT INTO model_facts (provider, model, key, value, learned_at)
VALUES (:provider, :model, :key, :value, :now)
ON CONFLICT (provider, model, key) DO UPDATE SET value = excluded.value, learned_at = excluded.learned_at
WHERE excluded.learned_at >= model_facts.learned_at;

-- name: list_facts
-- By the primary key's beginning.
SELECT model, value FROM model_facts WHERE provider = :provider AND key = :key ORDER BY learned_at DESC, model;
