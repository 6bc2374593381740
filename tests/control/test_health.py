"""What status says of the ledger's file, the disk and the clock."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.control import health
from memoryd.daemon import control_socket
from memoryd.ledger import meta, rebuilding
from memoryd.ledger.database import Ledger
from memoryd.pipeline.plausibility import look_at_clock
from memoryd.workspace.layout import Home, prepare
from tests.control.conftest import Shell
from tests.pipeline.test_consolidate import FIRST, remember, run
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in

DAY = 86_400.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


def test_a_network_file_system_is_named(home: Home) -> None:
    (finding,) = health.of_place(home, "22 1 0:21 / / rw - nfs4 server:/export rw\n")
    assert (finding.id, finding.severity) == ("ledger_misplaced", "warning")
    assert "nfs4" in finding.message
    assert health.of_place(home, "") == []


def test_a_ledger_that_was_set_aside_is_told_for_as_long_as_it_lies_there(home: Home) -> None:
    assert health.of_rebuilding(home) == []
    home.ledger_file.write_bytes(os.urandom(5000))
    rebuilt = rebuilding.rebuild(home.ledger_file, problem="page 3 is broken", now=1_700_000_000)
    (finding,) = health.of_rebuilding(home)
    assert finding.severity == "error"
    assert "page 3 is broken" in finding.message
    assert "consent" in finding.message
    assert str(rebuilt.folder) in finding.remedy


async def test_a_clock_in_doubt_is_told_with_what_to_do(home: Home, clock: FakeClock) -> None:
    async with await Ledger.open(home.ledger_file, clock=clock) as ledger:
        await look_at_clock(ledger, clock)
        assert await health.of_clock(ledger, clock) == []
        clock.jump(40 * DAY)
        (ahead,) = await health.of_clock(ledger, clock)
        assert "more than 30 days after" in ahead.message
        clock.jump(-80 * DAY)
        (behind,) = await health.of_clock(ledger, clock)
        assert "earlier than what the ledger holds" in behind.message
        assert (behind.id, "doctor" in behind.remedy) == ("clock_implausible", False)
        assert "24 hours" in behind.remedy


@pytest.mark.parametrize("paused", [None, "cannot write to the ledger: database or disk is full"])
async def test_a_paused_daemon_says_why(home: Home, paused: str | None) -> None:
    async def answer(request: control_socket.Request, tell: control_socket.Tell) -> dict[str, object]:
        assert request == {"do": "health"}
        return {"paused": paused, "since": 1.0}

    async with control_socket.serve(home.socket, answer):
        found = health.of_blocked(await health.blocked_by_disk(home, asks_daemon=True))

    assert [finding.id for finding in found] == ([] if paused is None else ["storage_paused"])
    assert all(str(paused) in finding.message and finding.remedy for finding in found)


async def test_a_daemon_that_does_not_answer_keeps_nobody_waiting(home: Home) -> None:
    async def answer(request: control_socket.Request, tell: control_socket.Tell) -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    assert await health.blocked_by_disk(home, asks_daemon=True) == []
    async with control_socket.serve(home.socket, answer):
        assert await health.blocked_by_disk(home, asks_daemon=True, answer_seconds=0.05) == []
        (silent,) = await health.of_daemon(home, answer_seconds=0.05)
    assert (silent.id, silent.severity) == ("daemon_silent", "error")
    assert await health.of_daemon(home) == []


async def test_what_a_daemon_says_of_itself_is_a_finding(home: Home) -> None:
    trouble = {"id": "memory_grown", "severity": "warning", "message": "it has much", "remedy": "report it"}

    async def answer(request: control_socket.Request, tell: control_socket.Tell) -> dict[str, object]:
        return {"paused": None, "since": None, "troubles": [trouble | {"of": "another version"}, "and this"]}

    async with control_socket.serve(home.socket, answer):
        assert await health.of_daemon(home) == [health.Finding(**trouble)]


def test_status_of_a_damaged_ledger_is_a_finding_and_not_a_failure(shell: Shell) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    shell.home.ledger_file.write_bytes(os.urandom(9000))
    said = shell("status", "--json")
    assert said.code == 1
    assert [item["id"] for item in said.json["health"]] == ["ledger_damaged"]


def test_status_of_a_ledger_that_is_held_alone_says_so(shell: Shell) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    shell.write(meta.put, "colour", "green")
    with closing(sqlite3.connect(shell.home.ledger_file, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("PRAGMA journal_mode = DELETE")
        holder.execute("BEGIN EXCLUSIVE")
        said = shell("status", "--json")
    assert [item["id"] for item in said.json["health"]] == ["ledger_held"]


async def test_a_memory_folder_that_was_deleted_is_told_until_it_is_back(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await health.of_folder(context.ledger, context.home) == []
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        assert await health.of_folder(context.ledger, context.home) == []
        context.home.memories.rename(tmp_path / "away")
        (finding,) = await health.of_folder(context.ledger, context.home)
        assert (finding.id, finding.severity) == ("folder_missing", "warning")
        assert "was deleted" in finding.message
        (tmp_path / "away").rename(context.home.memories)
        assert await health.of_folder(context.ledger, context.home) == []
