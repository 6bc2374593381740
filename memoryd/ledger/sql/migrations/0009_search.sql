-- What search finds, a row for each piece of a file of the memory folder; its words stand under the same number in
-- search_words.
--   scope       the directory it holds in, or `global`
--   mark        how well a bullet is founded; NULL for what is no bullet
--   opening     a checksum of its first line; digest: of all that the row was made from, the place in the file aside;
--               rows_digest: of its lines, by which they are found again in a file that was changed since
--   threads     a JSON list of the sessions behind it
--   updated_at  when those were recorded last
CREATE TABLE search_entries (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  mark TEXT,
  section TEXT,
  threads TEXT NOT NULL,
  updated_at INTEGER,
  opening INTEGER NOT NULL,
  rows_digest TEXT NOT NULL,
  digest TEXT NOT NULL,
  CHECK (kind IN ('bullet', 'task', 'summary', 'skill')),
  CHECK (line >= 1 AND end_line >= line),
  CHECK (mark IS NULL OR kind = 'bullet')
) STRICT;

CREATE INDEX search_entries_path ON search_entries (path);

CREATE INDEX search_entries_scope ON search_entries (scope);

-- The files that the entries were made of, as they were then; equal size and time: nobody touched them since.
CREATE TABLE search_files (
  path TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- text: what is shown; context: the headings and keywords that it stands under; handles: its identifiers in their parts,
-- and pairs of characters for scripts that put no space between words; place: kind, mark and scope, a word each, so that
-- a search in one project looks at no other.
CREATE VIRTUAL TABLE search_words USING fts5 (
  text, context, handles, place, tokenize = 'porter unicode61 remove_diacritics 2'
);

PRAGMA user_version = 9;
