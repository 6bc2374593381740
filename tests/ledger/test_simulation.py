"""Two thousand histories of several daemons with kills, clock steps and lost answers; a failure names its seed."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.ledger import queries
from memoryd.ledger.turns import WRITE, transact
from tests.ledger.faults import AnswerLost, Fault, Killed, Trouble
from tests.ledger.guards import copy_without, find_guards
from tests.ledger.simulation import Schedule, run_schedule
from tests.ledger.site import Site

SCHEDULES = 2000
PARTS = 8


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("part", range(PARTS))
def test_i1_i2_i5_every_history_keeps_the_invariants_and_comes_to_rest(site: Site, part: int) -> None:
    for seed in range(part, SCHEDULES, PARTS):
        run_schedule(seed, site)


def test_one_seed_is_one_history(site: Site) -> None:
    first, second, third = (_steps(site, seed) for seed in (7, 7, 8))

    assert first == second != third


def _steps(site: Site, seed: int) -> list[str]:
    steps: list[str] = []
    schedule = Schedule(seed, site, log=steps.append)
    schedule.run()
    return [*steps, *(f"{name}: {rows}" for name, rows in schedule.tables().items())]


def test_the_seed_of_a_history_that_goes_wrong_is_named(site: Site, tmp_path: Path) -> None:
    guard = next(guard for guard in find_guards() if str(guard) == "jobs.claim_job: ready_at <= :now (removed)")

    with queries.reading_from(copy_without(guard, tmp_path / "sql")), pytest.raises(AssertionError) as failure:
        _run_all(site, range(50))

    assert any("python -m tests.ledger.simulation --schedules 1 --seed" in note for note in failure.value.__notes__)


def _run_all(site: Site, seeds: range) -> None:
    for seed in seeds:
        run_schedule(seed, site)


@pytest.mark.parametrize("at", range(6))
def test_a_kill_before_a_statement_leaves_nothing_of_the_transaction(site: Site, at: int) -> None:
    conn = site.take()
    conn.arm(Fault(Trouble.KILL, at))

    with pytest.raises(Killed):
        transact(conn, WRITE, _write_four_rows)
    conn.close()

    assert site.reader.execute("SELECT count(*) FROM meta").fetchone() == (0,)


def test_a_lost_answer_leaves_all_of_the_transaction(site: Site) -> None:
    conn = site.take()
    conn.arm(Fault(Trouble.ANSWER_LOST))

    with pytest.raises(AnswerLost):
        transact(conn, WRITE, _write_four_rows)
    conn.close()

    assert site.reader.execute("SELECT count(*) FROM meta").fetchone() == (4,)


def _write_four_rows(conn: sqlite3.Connection) -> None:
    for number in range(4):
        conn.execute("INSERT INTO meta VALUES (?, 'v')", (f"k{number}",))
