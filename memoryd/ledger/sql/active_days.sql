-- name: list_active_days
-- The newest first, as far back as an unused memory is kept; a day that a wrong clock put into the future is none yet.
SELECT day FROM active_days WHERE day <= :today ORDER BY day DESC LIMIT :limit;

-- name: count_active_days
-- Those that begin after an instant.
SELECT count(*) FROM active_days WHERE day > :since AND day <= :today;
