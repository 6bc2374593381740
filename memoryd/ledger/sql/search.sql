-- name: list_files
-- What the index was made of: whoever refreshes it reads only what differs.
SELECT path, size, mtime_ns FROM search_files;

-- name: find_file
-- As it was when its entries were made.
SELECT size, mtime_ns FROM search_files WHERE path = :path;

-- name: put_file
-- Its entries are up to date with this state.
INSERT INTO search_files (path, size, mtime_ns) VALUES (:path, :size, :mtime_ns)
ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns;

-- name: delete_file
-- It is gone, and its entries are.
DELETE FROM search_files WHERE path = :path;

-- name: list_entries_of
-- What a file's entries are now, to be compared with what they are to be.
SELECT id, digest, line, end_line FROM search_entries WHERE path = :path ORDER BY line, id;

-- name: insert_entry
-- Its words follow under the same number.
INSERT INTO search_entries
  (path, line, end_line, kind, scope, mark, section, threads, updated_at, opening, rows_digest, digest)
VALUES (:path, :line, :end_line, :kind, :scope, :mark, :section, :threads, :updated_at, :opening, :rows_digest, :digest)
RETURNING id;

-- name: insert_words
-- The words of an entry.
INSERT INTO search_words (rowid, text, context, handles, place) VALUES (:id, :text, :context, :handles, :place);

-- name: move_entry
-- The same words, on another line.
UPDATE search_entries SET line = :line, end_line = :end_line WHERE id = :id;

-- name: delete_entry
-- It stands in the file no more.
DELETE FROM search_entries WHERE id = :id;

-- name: delete_words
-- Of an entry that goes. The words stay in the index's older segments until these are merged: see rebuild_words.
DELETE FROM search_words WHERE rowid = :id;

-- name: rebuild_words
-- Writes the index anew from what stands: no segment keeps a word of what was deleted.
INSERT INTO search_words (search_words) VALUES ('rebuild');

-- name: find_any_entry
-- Whether there is anything to find.
SELECT EXISTS (SELECT 1 FROM search_entries);

-- name: list_scopes
-- The directories that entries hold in, found by steps from each to the next: there are far fewer than entries.
WITH RECURSIVE steps (scope) AS (
  SELECT min(scope) FROM search_entries
  UNION ALL
  SELECT (SELECT min(e.scope) FROM search_entries AS e WHERE e.scope > steps.scope) FROM steps
  WHERE steps.scope IS NOT NULL
)
SELECT scope FROM steps WHERE scope IS NOT NULL;

-- name: count_matches
-- In how many entries a word stands: what stands in most of them tells little.
SELECT count(*) FROM search_words WHERE search_words MATCH :words;

-- name: rank_matches
-- The best matches by their words alone. The headings above count as what is shown does: a statement seldom repeats what
-- it is about. Parts of identifiers repeat what is there already, and count half.
SELECT rowid, bm25(search_words, 1.0, 1.0, 0.5, 0.0) AS score FROM search_words
WHERE search_words MATCH :words
ORDER BY score LIMIT :limit;

-- name: rank_recent_matches
-- The same among what is not older than an instant; what is of no known time is older.
SELECT w.rowid, bm25(search_words, 1.0, 1.0, 0.5, 0.0) AS score
FROM search_words AS w JOIN search_entries AS e ON e.id = w.rowid
WHERE search_words MATCH :words AND e.updated_at >= :since
ORDER BY score LIMIT :limit;

-- name: list_found
-- All that is known of the entries with these numbers, their words aside.
SELECT e.id, e.path, e.line, e.end_line, e.kind, e.scope, e.mark, e.section, e.threads, e.updated_at, e.opening,
       e.rows_digest
FROM json_each(:ids) AS wanted JOIN search_entries AS e ON e.id = wanted.value;

-- name: find_text
-- What is shown of an entry.
SELECT text FROM search_words WHERE rowid = :id;

-- name: list_usage_of
-- How often sessions were cited.
SELECT thread_id, usage_count FROM stage1_outputs
WHERE thread_id IN (SELECT value FROM json_each(:threads)) AND usage_count > 0;

-- name: list_valid_from
-- Since when the handbook's statements stand, and where they hold: a person's own line has no session that tells.
SELECT section, text, scope, valid_from FROM claims WHERE invalidated_at IS NULL;
