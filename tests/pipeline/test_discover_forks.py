"""Rows that several sessions hold belong to the oldest of them that may be remembered, else to nobody."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.daemon.worker import Worker
from memoryd.ledger import sessions
from memoryd.ledger.sessions import UserMode
from memoryd.ledger.states import JobKind
from memoryd.llm.question import Question, UserTurn
from memoryd.pipeline.context import Agent, Context
from memoryd.pipeline.discover import Discovery, choose_mode
from memoryd.pipeline.extract import extract
from tests.support.clock import FakeClock
from tests.support.forks import ForkingReader
from tests.support.house import Answering, a_house, settings_in
from tests.support.sessions import a_rollout

PARENT = "0194f5a6-89ab-7cde-8123-456789abcdef"
FORK = "01a226ab-5fe7-707c-80dd-7a6d93907104"
FAMILY = {"originator": "family"}
REPLY = '{"rollout_summary": "# It.", "rollout_slug": "it", "raw_memory": "it"}'


def a_fork_of(path: Path, now: float, said: str = "Only in the fork.") -> Path:
    """Write a session that begins with the rows of another, its ids rewritten, and goes on by itself."""
    own = a_rollout(path.parents[4], now=now, idle_hours=6.5, turns=[said], thread_id=FORK, meta=FAMILY)
    mine, theirs = own.read_text().splitlines(), path.read_text().splitlines()
    own.write_text("".join(f"{line}\n" for line in (mine[0], *theirs[1:], *mine[1:])))
    os.utime(own, (now - 6.5 * 3600,) * 2)
    return own


@asynccontextmanager
async def a_family(folder: Path, clock: FakeClock) -> AsyncIterator[tuple[Context, ForkingReader, Answering, Path]]:
    parent = a_rollout(folder / "codex", now=clock.now(), turns=["In both."], thread_id=PARENT, meta=FAMILY)
    a_fork_of(parent, clock.now())
    client, reader = Answering(lambda _question: REPLY), ForkingReader()
    async with a_house(settings_in(folder, limits__backfill="recent"), clock, client=client) as house:
        yield replace(house, agents={"codex": Agent(reader, house.agents["codex"].homes)}), reader, client, parent


async def extract_all(context: Context) -> list[str]:
    """Run discovery and every job that it finds; return the outcome of each."""
    await Discovery(context).run_once()
    endings = []
    worker = Worker(context, kind=JobKind.STAGE1, run=extract, worker_id="test")
    while (done := await worker.run_once()) is not None:
        endings.append(done.reason or done.ending.value)
    return endings


def asked(client: Answering) -> dict[str, str]:
    """What was sent of each session."""
    return {
        thread: _text(question) for question in client.asked for thread in (PARENT, FORK) if thread in _text(question)
    }


def _text(question: Question) -> str:
    return "".join(turn.text for turn in question.turns if isinstance(turn, UserTurn))


async def test_a_fork_contributes_only_what_is_its_own(tmp_path: Path, clock: FakeClock) -> None:
    async with a_family(tmp_path, clock) as (context, _reader, client, _parent):
        assert await extract_all(context) == [Ending.REMEMBERED.value] * 2

    sent = asked(client)
    assert "In both." in sent[PARENT]
    assert "In both." not in sent[FORK]
    assert "Only in the fork." in sent[FORK]


async def test_a_sessions_relatives_are_the_older_ones_alone(tmp_path: Path, clock: FakeClock) -> None:
    async with a_family(tmp_path, clock) as (context, reader, _client, parent):
        await extract_all(context)

    assert sorted(reader.relatives) == [[], [str(parent)]]


@pytest.mark.parametrize("vanished", [False, True])
@pytest.mark.parametrize("withheld", ["disabled", "polluted", "forgotten"])
async def test_what_a_fork_shares_with_a_session_that_is_withheld_is_nobodys(
    tmp_path: Path, clock: FakeClock, withheld: str, *, vanished: bool
) -> None:
    """It does not come back through the fork, even where the file that would tell is gone."""
    async with a_family(tmp_path, clock) as (context, _reader, client, parent):
        await Discovery(context).run_once()
        match withheld:
            case "disabled":
                await choose_mode(context, PARENT, UserMode.DISABLED)
            case "polluted":
                await context.ledger.write(sessions.mark_polluted, PARENT, clock.now())
            case _:
                await context.ledger.write(sessions.set_excluded, PARENT, sessions.FORGOTTEN)
        if vanished:
            parent.unlink()

        await extract_all(context)

    sent = asked(client)
    assert list(sent) == [FORK]
    assert "In both." not in sent[FORK]
    assert "Only in the fork." in sent[FORK]


async def test_where_the_older_file_is_gone_its_rows_are_the_next_ones(tmp_path: Path, clock: FakeClock) -> None:
    async with a_family(tmp_path, clock) as (context, _reader, client, parent):
        await Discovery(context).run_once()
        parent.unlink()

        await extract_all(context)

    assert "In both." in asked(client)[FORK]


async def test_a_withheld_session_that_cannot_be_read_is_as_good_as_gone(tmp_path: Path, clock: FakeClock) -> None:
    async with a_family(tmp_path, clock) as (context, _reader, client, parent):
        await Discovery(context).run_once()
        await choose_mode(context, PARENT, UserMode.DISABLED)
        parent.write_text("rubbish\n" * 99)

        await extract_all(context)

    assert "In both." not in asked(client)[FORK]
