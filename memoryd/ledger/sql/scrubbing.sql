-- name: vacuum
-- Rewrites the whole file: no free page, and no gap in a page, keeps what was there.
VACUUM;
