-- name: list_sessions
-- Small on purpose: asked whenever the store has changed. The counts come from the statements below.
SELECT id, time_updated FROM session;

-- name: newest_rows
-- Row numbers only grow (but for VACUUM), so the next look need not count what it has counted.
SELECT (SELECT max(rowid) FROM message), (SELECT max(rowid) FROM part);

-- name: count_rows_of_all
-- The first look at a store; both halves run over an index and read no row.
SELECT session_id, count(*) FROM message GROUP BY session_id
UNION ALL
SELECT session_id, count(*) FROM part GROUP BY session_id;

-- name: list_grown_sessions
-- A turn adds messages and parts long before it touches its session's own row.
SELECT session_id FROM message WHERE rowid > :newest_message
UNION
SELECT session_id FROM part WHERE rowid > :newest_part;

-- name: count_rows
-- What `list_sessions` does not say: together with time_updated it tells whether a session has changed.
SELECT (SELECT count(*) FROM message WHERE session_id = :session_id)
     + (SELECT count(*) FROM part WHERE session_id = :session_id);

-- name: get_session
-- The row and nothing of its summaries, which hold whole files.
SELECT parent_id, directory, permission, revert, time_created, time_updated FROM session WHERE id = :session_id;

-- name: list_messages
-- One page of places in the agent's own order. Older stores have no index that gives it: so the page is long, and what
-- has to be sorted is short.
SELECT rowid, id, time_created
FROM message
WHERE session_id = :session_id AND (time_created, id) > (:after_time, :after_id)
ORDER BY time_created, id
LIMIT :page;

-- name: get_messages
-- Some messages in the given order. A message of the user carries the diffs of its turn: a big one stays where it is,
-- and `get_message` fetches it alone. A place may meanwhile be another session's.
SELECT message.id, message.time_created, CASE WHEN length(CAST(data AS BLOB)) <= :most_bytes THEN data END
FROM json_each(:places) AS wanted CROSS JOIN message ON message.rowid = wanted.value
WHERE message.session_id = :session_id
ORDER BY wanted.key
LIMIT json_array_length(:places);

-- name: get_message
-- One big message. SQLite's own JSON functions would take many times its size, and its time: it is cut by the decoder.
SELECT data FROM message WHERE id = :id AND length(CAST(data AS BLOB)) <= :most_bytes LIMIT 1;

-- name: list_parts
-- One page of the parts of some messages, each with the place of its message among them, from a part of the first on: a
-- message has three parts or so. What is sorted are places, not rows with all that is in them. What is big (a file as
-- base64) stays where it is, and `get_part` fetches it alone.
SELECT
    chosen.message, ifnull(part.id, ''),
    CASE WHEN typeof(data) IN ('text', 'blob') AND length(CAST(data AS BLOB)) <= :most_bytes THEN data END
FROM (
    SELECT wanted.key AS message, part.rowid AS place
    FROM json_each(:ids) AS wanted CROSS JOIN part ON part.message_id = wanted.value
    WHERE wanted.key > 0 OR part.id > :after_part
    ORDER BY wanted.key, part.id
    LIMIT :page
) AS chosen CROSS JOIN part ON part.rowid = chosen.place
LIMIT :page;

-- name: get_part
-- One big part.
SELECT data FROM part WHERE id = :id AND length(CAST(data AS BLOB)) <= :most_bytes LIMIT 1;
