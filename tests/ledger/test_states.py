"""The table of moves and the SQL that makes them say the same."""

import sqlite3

import pytest

from memoryd.ledger import queries
from memoryd.ledger.states import MOVES, Status
from tests.ledger.moves import PARAMETERS, insert, outcomes, rows_touched

_SQL = queries.load("jobs")


def _writes_status_of_jobs(statement: str) -> bool:
    code = "\n".join(line for line in statement.splitlines() if not line.startswith("--"))
    return code.startswith(("UPDATE jobs", "INSERT INTO jobs"))


def test_the_table_names_every_statement_that_moves_a_job() -> None:
    assert {name for name, statement in _SQL.items() if _writes_status_of_jobs(statement)} == set(MOVES)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("name", [name for name in MOVES if name != "insert_job"])
def test_sql_moves_a_job_exactly_as_the_table_says(conn: sqlite3.Connection, name: str, status: Status) -> None:
    allowed = MOVES[name].ends if status in MOVES[name].starts else frozenset()

    assert outcomes(conn, name, status) == allowed


def test_a_new_job_is_pending(conn: sqlite3.Connection) -> None:
    conn.execute(_SQL["insert_job"], PARAMETERS)

    assert {Status(status) for (status,) in conn.execute("SELECT status FROM jobs")} == MOVES["insert_job"].ends


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
    insert(conn, Status.RUNNING, {})
    before = conn.execute("SELECT * FROM jobs").fetchall()

    touched = rows_touched(conn, name, PARAMETERS | wrong)

    assert (touched, conn.execute("SELECT * FROM jobs").fetchall()) == (0, before)


def test_every_move_of_a_holder_is_guarded_by_token_and_epoch() -> None:
    of_others = {"request_cancel", "raise_watermark", "record_crash"}
    of_holders = {name for name, move in MOVES.items() if Status.RUNNING in move.starts} - of_others

    assert {name for name in MOVES if "ownership_token = :token AND epoch = :epoch" in _SQL[name]} == of_holders
