"""SQL in files: every statement is named, explained, prepared, used, and no hot one scans."""

import sqlite3
from importlib.resources import files

import pytest

from memoryd.ledger import queries
from tests.ledger.plans import parameters_of, plan_of

SUBJECTS = sorted(
    entry.name.removesuffix(".sql")
    for entry in files("memoryd.ledger").joinpath("sql").iterdir()
    if entry.name.endswith(".sql") and entry.name != "schema.sql"
)
STATEMENTS = [(subject, name) for subject in SUBJECTS for name in queries.load(subject)]

HOT = [
    ("jobs", "list_leased"),
    ("jobs", "claim_job"),
    ("jobs", "record_crash"),
    ("jobs", "renew_lease"),
    ("jobs", "find_held"),
    ("jobs", "complete_job"),
    ("jobs", "complete_and_reopen"),
    ("jobs", "defer_job"),
    ("jobs", "fail_job"),
    ("jobs", "release_job"),
    ("jobs", "reopen_job"),
    ("jobs", "raise_watermark"),
    ("jobs", "raise_waiting"),
    ("jobs", "find_job"),
    ("jobs", "find_standing"),
    ("jobs", "find_next_ready"),
    ("jobs", "count_ready"),
    ("jobs", "mend_waits"),
    ("attempts", "end_attempt"),
    ("attempts", "add_request"),
    ("attempts", "list_attempts"),
    ("sessions", "list_due"),
    ("sessions", "find_session"),
    ("sessions", "find_by_path"),
    ("sessions", "keep_former_file"),
    ("sessions", "count_excluded"),
    ("sessions", "record_queued"),
    ("sessions", "record_covered"),
    ("spend", "sum_since"),
    ("spend", "settle_request"),
    ("outputs", "mark_selected"),
    ("outputs", "count_usage"),
    ("publications", "find_pending"),
]


def _code(statement: str) -> str:
    return "\n".join(line for line in statement.splitlines() if not line.startswith("--"))


@pytest.mark.parametrize(("subject", "name"), STATEMENTS)
def test_every_statement_says_why_and_is_one_statement(subject: str, name: str) -> None:
    body = queries.load(subject)[name]

    assert body.startswith("-- ")
    assert sqlite3.complete_statement(body)
    assert _code(body).rstrip().count(";") == 1
    assert "?" not in _code(body)


@pytest.mark.parametrize(("subject", "name"), [pair for pair in STATEMENTS if pair[0] != "connection"])
def test_every_statement_fits_the_schema(conn: sqlite3.Connection, subject: str, name: str) -> None:
    statement = queries.load(subject)[name]

    assert conn.execute("EXPLAIN " + statement, parameters_of(statement)).fetchall()


@pytest.mark.parametrize(("subject", "name"), STATEMENTS)
def test_every_statement_is_used(subject: str, name: str) -> None:
    code = "".join(
        entry.read_text(encoding="utf-8")
        for entry in files("memoryd.ledger").iterdir()
        if entry.name.endswith(".py") and entry.name != "states.py"
    )

    assert f'"{name}"' in code


@pytest.mark.parametrize(("subject", "name"), HOT)
def test_no_hot_query_scans_a_table(conn: sqlite3.Connection, subject: str, name: str) -> None:
    plan = plan_of(conn, subject, name)

    assert plan
    assert [step for step in plan if step.startswith("SCAN")] == []


def test_a_claim_reads_only_the_index_of_what_is_not_finished(conn: sqlite3.Connection) -> None:
    plan = plan_of(conn, "jobs", "claim_job")

    assert "SEARCH jobs USING INDEX jobs_ready (kind=? AND ready_at<?)" in plan
    assert "SEARCH attempts" in plan  # the last row of a table, not all of them


def test_what_is_due_is_read_from_the_index_of_open_sessions(conn: sqlite3.Connection) -> None:
    plan = plan_of(conn, "sessions", "list_due")

    assert plan == ["SEARCH sessions USING INDEX sessions_open (updated_at>? AND updated_at<?)"]


def test_statements_cannot_be_changed_by_who_loads_them() -> None:
    with pytest.raises(TypeError):
        queries.load("jobs")["find_job"] = "SELECT 1"  # type: ignore[index]  # that is what is tested


def test_a_file_without_names_is_refused() -> None:
    with pytest.raises(ValueError, match="a name of its own"):
        queries.load("schema")
