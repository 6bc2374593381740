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

-- name: find_newest_instant
-- From the ends of indexes and the last runs, not from all rows: every run of a job leaves one of these behind.
SELECT max(instant) FROM (
  SELECT max(at) AS instant FROM requests
  UNION ALL SELECT max(day) * 86400 FROM request_sums
  UNION ALL SELECT max(last_success_at) FROM jobs WHERE kind = 'memory_stage1' AND last_success_at IS NOT NULL
  UNION ALL SELECT max(last_success_at) FROM jobs
            WHERE kind = 'memory_consolidate_global' AND last_success_at IS NOT NULL
  UNION ALL SELECT max(decided_at) FROM publications
  UNION ALL SELECT max(max(started_at, coalesce(ended_at, 0)))
            FROM (SELECT started_at, ended_at FROM attempts ORDER BY id DESC LIMIT 1000)
);
