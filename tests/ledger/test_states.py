"""The table of moves and the SQL that makes them say the same."""

import sqlite3

import pytest

from memoryd.ledger import queries
from memoryd.ledger.states import MOVES, JobKind, Status
from tests.ledger.factories import THREAD

_SQL = queries.load("jobs")

_ROWS: dict[Status, dict[str, object]] = {
    Status.PENDING: {"ready_at": 90},
    Status.RUNNING: {
        "ready_at": 300,
        "lease_until": 300,
        "lease_seconds": 180,
        "ownership_token": "t",
        "worker_id": "w",
        "started_at": 90,
    },
    Status.DONE: {"last_success_watermark": 10},
    Status.ERROR: {"retry_remaining": 0, "last_error": "it broke"},
}

_PARAMETERS: dict[str, object] = {
    "kind": JobKind.STAGE1,
    "job_key": THREAD,
    "token": "t",
    "epoch": 0,
    "now": 100,
    "only": None,
    "started_at": 100,
    "finished_at": 100,
    "worker_id": "w",
    "lease_until": 280,
    "lease_seconds": 180,
    "max_attempts": 3,
    "watermark": 11,
    "covered_watermark": 10,
    "met": False,
    "input_watermark": 10,
    "ready_at": 100,
    "retry_at": None,
    "reason": "backoff",
    "error": "it broke",
    "fingerprint": "f",
    "enqueued_at": 100,
    "enqueue_reason": "session",
    "reasons": '["debounce"]',
    "begun_after": 999,
}

_VARIANTS: tuple[dict[str, object], ...] = ({}, {"retry_remaining": 1}, {"input_watermark": 11})


def _insert(conn: sqlite3.Connection, status: Status, variant: dict[str, object]) -> None:
    row: dict[str, object] = {
        "kind": JobKind.STAGE1,
        "job_key": THREAD,
        "status": status,
        "retry_remaining": 3,
        "input_watermark": 10,
    }
    row |= variant
    row |= _ROWS[status]
    if status is Status.DONE:
        row["last_success_watermark"] = row["input_watermark"]
    columns = ", ".join(row)
    marks = ", ".join(f":{name}" for name in row)
    conn.execute(f"INSERT INTO jobs ({columns}) VALUES ({marks})", row)


def _parameters(name: str, status: Status) -> dict[str, object]:
    parameters = dict(_PARAMETERS)
    if name == "claim_job":
        parameters["token"] = "new"
    if name == "renew_lease":
        parameters["lease_until"] = 280
    if name in {"expedite_jobs", "mend_waits"} and status is Status.PENDING:
        parameters["now"] = 80
    return parameters


def _outcomes(conn: sqlite3.Connection, name: str, status: Status) -> set[Status]:
    """Run one move on rows of one status; return in which statuses the rows ended that it touched."""
    ends: set[Status] = set()
    for variant in _VARIANTS:
        conn.execute("DELETE FROM jobs")
        _insert(conn, status, variant)
        if name == "expedite_jobs" and status is Status.PENDING:
            conn.execute("UPDATE jobs SET wait_reason = 'debounce'")
        if name == "mend_waits":
            conn.execute("UPDATE jobs SET enqueued_at = 1000")
        touched = conn.execute(_SQL[name], _parameters(name, status)).fetchall()
        after = Status(conn.execute("SELECT status FROM jobs").fetchone()[0])
        if touched:
            ends.add(after)
        else:
            assert after is status
    return ends


def _writes_status_of_jobs(statement: str) -> bool:
    code = "\n".join(line for line in statement.splitlines() if not line.startswith("--"))
    return code.startswith(("UPDATE jobs", "INSERT INTO jobs")) and "RETURNING" in code


def test_the_table_names_every_statement_that_moves_a_job() -> None:
    assert {name for name, statement in _SQL.items() if _writes_status_of_jobs(statement)} == set(MOVES)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("name", [name for name in MOVES if name != "insert_job"])
def test_sql_moves_a_job_exactly_as_the_table_says(conn: sqlite3.Connection, name: str, status: Status) -> None:
    allowed = MOVES[name].ends if status in MOVES[name].starts else frozenset()

    assert _outcomes(conn, name, status) == allowed


def test_a_new_job_is_pending(conn: sqlite3.Connection) -> None:
    row = conn.execute(_SQL["insert_job"], _PARAMETERS).fetchone()

    assert {Status(row[2])} == MOVES["insert_job"].ends


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (name, wrong)
        for name in MOVES
        if "ownership_token = :token AND epoch" in _SQL[name]
        for wrong in ({"token": "x"}, {"epoch": 9})
    ],
)
def test_a_holder_with_another_token_or_epoch_moves_nothing(
    conn: sqlite3.Connection, name: str, wrong: dict[str, object]
) -> None:
    _insert(conn, Status.RUNNING, {})
    before = conn.execute("SELECT * FROM jobs").fetchall()

    touched = conn.execute(_SQL[name], _PARAMETERS | wrong).fetchall()

    assert (touched, conn.execute("SELECT * FROM jobs").fetchall()) == ([], before)


def test_every_move_of_a_holder_is_guarded_by_token_and_epoch() -> None:
    of_others = {"request_cancel", "raise_watermark", "record_crash"}
    of_holders = {name for name, move in MOVES.items() if Status.RUNNING in move.starts} - of_others

    assert {name for name in MOVES if "ownership_token = :token AND epoch = :epoch" in _SQL[name]} == of_holders
