"""schema.sql is the truth: the migrations reach it, and its constraints refuse what states.py forbids."""

import re
import sqlite3
from contextlib import closing

import pytest

from memoryd.ledger import migrations, queries
from memoryd.ledger.states import JobKind
from tests.ledger.factories import THREAD


def _shape(connection: sqlite3.Connection) -> tuple[list[object], object, object]:
    """What there is, but for line breaks: a column that was added stands on the line of the one before it."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    objects: list[object] = [
        (*names, re.sub(r"\s+", " ", re.sub(r"\s*([(),])\s*", r"\1", sql or ""))) for *names, sql in rows
    ]
    application_id = connection.execute("PRAGMA application_id").fetchone()
    return objects, application_id, connection.execute("PRAGMA user_version").fetchone()


def test_the_migrations_reach_the_schema(conn: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as migrated:
        for migration in migrations.shipped():
            for statement in migrations.statements(migration.sql):
                migrated.execute(statement)

        assert _shape(migrated) == _shape(conn)


def test_each_migration_sets_its_own_version() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as migrated:
        for migration in migrations.shipped():
            migrated.executescript(migration.sql)

            assert migrated.execute("PRAGMA user_version").fetchone() == (migration.version,)


def test_the_schema_carries_the_application_id(conn: sqlite3.Connection) -> None:
    assert conn.execute("PRAGMA application_id").fetchone() == (migrations.APPLICATION_ID,)


def test_every_table_is_strict(conn: sqlite3.Connection) -> None:
    lax = conn.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND NOT strict")

    assert [name for (name,) in lax if not name.startswith("sqlite_")] == []


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (
            "stage1_outputs",
            """thread_id source_updated_at raw_memory rollout_summary rollout_slug generated_at usage_count last_usage
            selected_for_phase2 selected_for_phase2_source_updated_at""",
        ),
        (
            "jobs",
            """kind job_key status worker_id ownership_token started_at finished_at lease_until retry_at
            retry_remaining last_error input_watermark last_success_watermark""",
        ),
    ],
)
def test_the_published_columns_come_first_and_verbatim(conn: sqlite3.Connection, table: str, columns: str) -> None:
    names = [row[0] for row in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))]

    assert names[: len(columns.split())] == columns.split()


_PENDING = {"status": "pending", "ready_at": 5}
_RUNNING = {
    "status": "running",
    "ready_at": 9,
    "lease_until": 9,
    "lease_seconds": 4.0,
    "ownership_token": "t",
    "worker_id": "w",
    "started_at": 5,
}
_DONE = {"status": "done", "last_success_watermark": 10}
_ERROR = {"status": "error", "last_error": "it broke", "retry_remaining": 0}


def _insert(conn: sqlite3.Connection, row: dict[str, object]) -> None:
    whole = {"kind": JobKind.STAGE1, "job_key": THREAD, "retry_remaining": 3, "input_watermark": 10} | row
    marks = ", ".join(f":{name}" for name in whole)
    conn.execute(f"INSERT INTO jobs ({', '.join(whole)}) VALUES ({marks})", whole)


@pytest.mark.parametrize("row", [_PENDING, _RUNNING, _DONE, _ERROR])
def test_a_row_of_each_status_is_accepted(conn: sqlite3.Connection, row: dict[str, object]) -> None:
    _insert(conn, row)

    assert conn.execute("SELECT status FROM jobs").fetchall() == [(row["status"],)]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(_PENDING | {"status": "asleep"}, id="unknown status"),
        pytest.param(_PENDING | {"ready_at": None}, id="pending without ready_at"),
        pytest.param(_PENDING | {"retry_remaining": 0}, id="pending without attempts"),
        pytest.param(_PENDING | {"ownership_token": "t"}, id="pending with a token"),
        pytest.param(_PENDING | {"lease_until": 9}, id="pending with a lease"),
        pytest.param(_PENDING | {"retry_at": 5}, id="a retry without a reason"),
        pytest.param(_PENDING | {"retry_at": 6, "wait_reason": "backoff"}, id="a retry that is not the wait"),
        pytest.param(_PENDING | {"input_watermark": None}, id="nothing to cover"),
        pytest.param(_PENDING | {"last_success_watermark": 11}, id="success beyond the input"),
        pytest.param(_PENDING | {"cancel_requested": 2}, id="half a cancellation"),
        pytest.param(_RUNNING | {"ownership_token": None}, id="running without a token"),
        pytest.param(_RUNNING | {"lease_until": None}, id="running without a lease"),
        pytest.param(_RUNNING | {"ready_at": 8}, id="running and ready before the lease ends"),
        pytest.param(_RUNNING | {"worker_id": None}, id="running without a worker"),
        pytest.param(_RUNNING | {"started_at": None}, id="running without a start"),
        pytest.param(_RUNNING | {"lease_seconds": None}, id="running with a lease of unknown length"),
        pytest.param(_RUNNING | {"wait_reason": "backoff"}, id="running and waiting"),
        pytest.param(_DONE | {"ready_at": 5}, id="done and ready"),
        pytest.param(_DONE | {"last_success_watermark": 9}, id="done short of the input"),
        pytest.param(_DONE | {"last_success_watermark": None}, id="done without a success"),
        pytest.param(_ERROR | {"ready_at": 5}, id="dead and ready"),
        pytest.param(_ERROR | {"last_error": None}, id="dead without a reason"),
        pytest.param(_ERROR | {"retry_remaining": 1}, id="dead with attempts left"),
    ],
)
def test_a_row_that_breaks_an_invariant_is_refused(conn: sqlite3.Connection, row: dict[str, object]) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        _insert(conn, row)


def test_jobs_and_their_runs_outlive_the_migration_that_makes_their_tables_anew() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        for migration in migrations.shipped():
            if migration.version == 10:
                for row in (_PENDING, _RUNNING, _DONE, _ERROR):
                    _insert(conn, row | {"job_key": row["status"]})
                conn.execute(
                    "INSERT INTO attempts (id, kind, job_key, epoch, worker_id, input_watermark, started_at, cost)"
                    " SELECT rowid + 40, kind, job_key, 7, 'w', 10, 5, 0.5 FROM jobs"
                )
                before = [conn.execute(f"SELECT * FROM {table}").fetchall() for table in ("jobs", "attempts")]
            conn.executescript(migration.sql)

        assert [conn.execute(f"SELECT * FROM {table}").fetchall() for table in ("jobs", "attempts")] == before
        assert [len(rows) for rows in before] == [4, 4]


def test_a_shipped_migration_is_a_file_of_its_own() -> None:
    assert [migration.version for migration in migrations.shipped()] == list(range(1, 12))
    assert migrations.shipped()[0].sql == queries.read("migrations/0001_initial.sql")
    assert migrations.shipped()[1].sql == queries.read("migrations/0002_lineage.sql")
