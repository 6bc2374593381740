-- Forks that share rows with other sessions, exclusions that are found by reading, and which agent a copy is of.
ALTER TABLE sessions ADD COLUMN ephemeral INTEGER NOT NULL DEFAULT 0 CHECK (ephemeral IN (0, 1));
ALTER TABLE sessions ADD COLUMN lineage TEXT;
ALTER TABLE sessions ADD COLUMN seniority TEXT;
ALTER TABLE sessions ADD COLUMN finding TEXT;
ALTER TABLE other_files ADD COLUMN agent TEXT;

UPDATE sessions SET seniority = printf('%012d.%012d', coalesce(started_at, updated_at), updated_at);

CREATE INDEX sessions_lineage ON sessions (lineage) WHERE lineage IS NOT NULL;

CREATE INDEX sessions_finding ON sessions (finding) WHERE finding IS NOT NULL;

PRAGMA user_version = 2;
