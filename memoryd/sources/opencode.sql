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
-- One page in the agent's own order. A message of the user carries the diffs of its turn: a big one is cut to what is
-- asked of it, here, before its text is built.
SELECT id, time_created,
       CASE WHEN length(CAST(data AS BLOB)) <= :most_bytes THEN data
            WHEN json_valid(data) THEN json_object(
              'role', json_extract(data, '$.role'),
              'mode', json_extract(data, '$.mode'),
              'agent', json_extract(data, '$.agent'),
              'finish', json_extract(data, '$.finish'),
              'summary', json(CASE json_type(data, '$.summary') WHEN 'true' THEN 'true' ELSE 'false' END),
              'time', json_object('created', json_extract(data, '$.time.created')),
              'path', json_object('cwd', json_extract(data, '$.path.cwd')))
       END
FROM message
WHERE session_id = :session_id AND (time_created, id) > (:after_time, :after_id)
ORDER BY time_created, id
LIMIT :page;

-- name: list_parts
-- One page from a part of a message on, across messages: a message has three parts or so. What is too big (a file as
-- base64) stays where it is, and `cut_part` asks for its edges.
SELECT message.id, part.id, CASE WHEN length(CAST(part.data AS BLOB)) <= :most_bytes THEN part.data END
FROM message CROSS JOIN part ON part.message_id = message.id
WHERE message.session_id = :session_id
  AND (message.time_created, message.id) >= (:from_time, :from_id)
  AND (message.id > :from_id OR message.time_created > :from_time OR part.id > :after_part)
ORDER BY message.time_created, message.id, part.id
LIMIT :page;

-- name: cut_part
-- A big part without data URLs, its texts cut; NULL when it is no JSON.
SELECT CASE WHEN json_valid(data) THEN json_object(
         'type', json_extract(data, '$.type'),
         'text', substr(json_extract(data, '$.text'), 1, :most_characters),
         'synthetic', json(CASE json_type(data, '$.synthetic') WHEN 'true' THEN 'true' ELSE 'false' END),
         'ignored', json(CASE json_type(data, '$.ignored') WHEN 'true' THEN 'true' ELSE 'false' END),
         'time', json_object('start', json_extract(data, '$.time.start')),
         'mime', json_extract(data, '$.mime'),
         'tool', json_extract(data, '$.tool'),
         'callID', json_extract(data, '$.callID'),
         'state', json_object(
           'status', json_extract(data, '$.state.status'),
           'input', json(CASE json_type(data, '$.state.input.command')
             WHEN 'text' THEN json_object('command', substr(json_extract(data, '$.state.input.command'), 1, :most_characters))
             ELSE json_quote(substr(json_extract(data, '$.state.input'), 1, :most_characters)) END),
           'output', substr(json_extract(data, '$.state.output'), 1, :most_characters),
           'error', substr(json_extract(data, '$.state.error'), 1, :most_characters),
           'metadata', json_object('exit', json_extract(data, '$.state.metadata.exit')),
           'time', json_object('start', json_extract(data, '$.state.time.start'),
                               'end', json_extract(data, '$.state.time.end'))))
       END
FROM part
WHERE id = :part_id;
