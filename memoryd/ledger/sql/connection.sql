-- name: begin_write
-- Takes the write lock at once: a deferred one that writes later fails with SQLITE_BUSY_SNAPSHOT, whatever the timeout.
BEGIN IMMEDIATE;

-- name: begin_read
-- One snapshot for all queries of a function.
BEGIN DEFERRED;

-- name: commit
-- The whole function or nothing.
COMMIT;

-- name: rollback
-- After any error, and after every read.
ROLLBACK;

-- name: journal_wal
-- Readers do not wait for the writer. The answer must be checked: it may stay what it was.
PRAGMA journal_mode = WAL;

-- name: journal_delete
-- For network file systems, where the shared memory of a WAL does not work.
PRAGMA journal_mode = DELETE;

-- name: locking_exclusive
-- Goes with it: locks of such file systems are not to be trusted with a second process.
PRAGMA locking_mode = EXCLUSIVE;

-- name: synchronous
-- What was acknowledged survives a power cut.
PRAGMA synchronous = FULL;

-- name: fullfsync
-- On macOS only this reaches the disk; elsewhere it does nothing.
PRAGMA fullfsync = ON;

-- name: busy_timeout
-- Milliseconds to wait for a reader that checkpoints or a command that holds the lock briefly.
PRAGMA busy_timeout = 5000;

-- name: foreign_keys
-- Off by default.
PRAGMA foreign_keys = ON;

-- name: trusted_schema
-- A file from elsewhere runs no functions of ours.
PRAGMA trusted_schema = OFF;

-- name: wal_autocheckpoint
-- 16 MiB in pages of 2 KiB: a checkpoint costs two waits for the disk, and the more commits it gathers, the more of them have
-- written the same pages. What was committed is as safe in the WAL.
PRAGMA wal_autocheckpoint = 8000;

-- name: journal_size_limit
-- 20 MiB, a little more than what is checkpointed at: a WAL that grew once because of a reader is cut again, and in the
-- ordinary way it is written over in place, since syncing a file that grows costs several times as much.
PRAGMA journal_size_limit = 20971520;

-- name: temp_store
-- Sorting leaves no files behind.
PRAGMA temp_store = MEMORY;

-- name: application_id
-- Whose file is it?
PRAGMA application_id;

-- name: user_version
-- Which migration was the last?
PRAGMA user_version;

-- name: count_objects
-- An empty file is a new ledger; a file with tables of somebody else is not ours.
SELECT count(*) FROM sqlite_schema;

-- name: page_count
-- Size in pages.
PRAGMA page_count;

-- name: small_pages
-- For a new file; it stays what it was in one that is there. A job's moves touch many pages and little of each, and a
-- commit writes whole pages.
PRAGMA page_size = 2048;

-- name: page_size
-- Bytes of a page.
PRAGMA page_size;

-- name: quick_check
-- All but the comparison of indexes with tables.
PRAGMA quick_check;

-- name: vacuum_into
-- The whole database as of one instant, the log included, into an empty file, outside of any transaction.
VACUUM INTO :target;

-- name: checkpoint
-- Takes the log into the file and cuts it to nothing. An open reader may prevent either: the first column says 1 then.
PRAGMA wal_checkpoint(TRUNCATE);

-- name: busy_timeout_none
-- For the checkpoint, which can as well come later: nobody waits for a reader.
PRAGMA busy_timeout = 0;

-- name: secure_delete
-- What is replaced because nobody may see it is overwritten with zeros, in the page and in pages that become free.
PRAGMA secure_delete = ON;
