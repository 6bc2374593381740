"""Remove any one guard from the SQL, and a history or a written schedule goes wrong.

A few random histories come first, then the written schedules, then many more histories. `python -m
tests.ledger.test_guards_are_needed` prints, for each guard, what noticed that it was gone.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.ledger import queries
from tests.ledger.directed.every import SCHEDULES, schema
from tests.ledger.guards import Guard, copy_without, find_guards
from tests.ledger.simulation import run_schedule
from tests.ledger.site import Site

FEW = range(8)
MANY = range(8, 100)
GUARDS = find_guards()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("histories")) as opened:
        yield opened


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_without_this_guard_something_goes_wrong(guard: Guard, site: Site, tmp_path: Path) -> None:
    assert what_notices(guard, site, tmp_path / "sql") is not None


def test_with_all_guards_nothing_goes_wrong(site: Site, conn: sqlite3.Connection) -> None:
    for seed in FEW:
        run_schedule(seed, site)


@pytest.mark.parametrize(
    ("name", "number"),
    [("claim_job", 6), ("renew_lease", 4), ("complete_job", 5), ("fail_job", 8), ("expedite_jobs", 4)],
)
def test_the_guards_of_a_statement_are_all_found(name: str, number: int) -> None:
    found = [guard for guard in GUARDS if (guard.subject, guard.statement) == ("jobs", name)]

    assert len(found) == number, [str(guard) for guard in found]


def test_a_guard_is_taken_out_of_a_copy_alone(tmp_path: Path) -> None:
    guard = next(guard for guard in GUARDS if guard.condition == "ownership_token = :token")
    before = queries.load("jobs")[guard.statement]

    with queries.reading_from(copy_without(guard, tmp_path / "sql")):
        changed = queries.load("jobs")[guard.statement]

    assert changed == before.replace("ownership_token = :token", "1")
    assert queries.load("jobs")[guard.statement] == before


def what_notices(guard: Guard, site: Site, folder: Path) -> str | None:
    """Say what goes wrong without this guard; None: nothing."""
    with queries.reading_from(copy_without(guard, folder)):
        return _in_a_history(site, FEW) or _in_a_written_schedule() or _in_a_history(site, MANY)


def _in_a_history(site: Site, seeds: range) -> str | None:
    for seed in seeds:
        try:
            run_schedule(seed, site)
        except Exception as error:
            return f"history {seed}: {type(error).__name__} {error}"
    return None


def _in_a_written_schedule() -> str | None:
    for name, schedule in SCHEDULES.items():
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
            schema(conn)
            try:
                schedule(conn)
            except Exception as error:
                return f"{name}: {type(error).__name__} {error}"
    return None


def main() -> int:
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder, Site(Path(folder)) as site:
        for number, guard in enumerate(GUARDS):
            notice = what_notices(guard, site, Path(folder) / str(number))
            unnoticed += notice is None
            print(f"{guard}\n    {'NOTHING' if notice is None else notice.splitlines()[0][:160]}")
    print(f"{len(GUARDS)} guards, {unnoticed} that nothing misses")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
