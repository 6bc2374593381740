-- name: find_meta
-- By primary key.
SELECT value FROM meta WHERE key = :key;

-- name: put_meta
-- The latest value stands.
INSERT INTO meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: put_meta_once
-- The first value stands.
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING;
