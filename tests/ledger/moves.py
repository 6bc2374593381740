"""Every move of a job's row, tried on a row of every status."""

import sqlite3

from memoryd.ledger import queries
from memoryd.ledger.states import JobKind, Status
from tests.ledger.factories import THREAD

_SQL = queries.load("jobs")

ROWS: dict[Status, dict[str, object]] = {
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

PARAMETERS: dict[str, object] = {
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

VARIANTS: tuple[dict[str, object], ...] = ({}, {"retry_remaining": 1}, {"input_watermark": 11})


def insert(conn: sqlite3.Connection, status: Status, variant: dict[str, object]) -> None:
    row: dict[str, object] = {
        "kind": JobKind.STAGE1,
        "job_key": THREAD,
        "status": status,
        "retry_remaining": 3,
        "input_watermark": 10,
    }
    row |= variant
    row |= ROWS[status]
    if status is Status.DONE:
        row["last_success_watermark"] = row["input_watermark"]
    columns = ", ".join(row)
    marks = ", ".join(f":{name}" for name in row)
    conn.execute(f"INSERT INTO jobs ({columns}) VALUES ({marks})", row)


def _parameters(name: str, status: Status) -> dict[str, object]:
    parameters = dict(PARAMETERS)
    if name == "claim_job":
        parameters["token"] = "new"
    if name == "renew_lease":
        parameters["lease_until"] = 280
    if name in {"expedite_jobs", "mend_waits"} and status is Status.PENDING:
        parameters["now"] = 80
    return parameters


def rows_touched(conn: sqlite3.Connection, name: str, parameters: dict[str, object]) -> int:
    """Run one statement on jobs; return how many rows it has written, or read."""
    cursor = conn.execute(_SQL[name], parameters)
    rows = cursor.fetchall()
    return len(rows) or max(cursor.rowcount, 0)


def outcomes(conn: sqlite3.Connection, name: str, status: Status) -> set[Status]:
    """Run one move on rows of one status; return in which statuses the rows ended that it touched."""
    ends: set[Status] = set()
    for variant in VARIANTS:
        conn.execute("DELETE FROM jobs")
        insert(conn, status, variant)
        if name == "expedite_jobs" and status is Status.PENDING:
            conn.execute("UPDATE jobs SET wait_reason = 'debounce'")
        if name == "mend_waits":
            conn.execute("UPDATE jobs SET enqueued_at = 1000")
        touched = rows_touched(conn, name, _parameters(name, status))
        after = Status(conn.execute("SELECT status FROM jobs").fetchone()[0])
        if touched:
            ends.add(after)
        else:
            assert after is status
    return ends
