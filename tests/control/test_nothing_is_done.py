"""The situations in which memoryd does nothing: `explain` and `status` name the reason of each, and its time (I5)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.control.console import moment
from memoryd.daemon import control_socket
from memoryd.daemon.house import open_house
from memoryd.errors import ModelUnavailable, Overloaded, RateLimited, Unreachable
from memoryd.ledger import facts, jobs, meta, sessions, spend
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from memoryd.llm.breaker import Breaker
from memoryd.llm.gate_state import GateState, written_state
from memoryd.llm.limits import LimitSnapshot, LimitWindow
from memoryd.pipeline.discover import Discovery
from tests.control.conftest import CONFIG, THREAD, Shell
from tests.ledger.factories import OTHER, claim

HOUR = 3600.0
DAY = 24 * HOUR
PROVIDER = """\
[extract]
model = "m"

[limits]
backfill = "{backfill}"
requests_per_day = 1

[providers.here]
kind = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
"""
WELL: dict[str, object] = {"paused": None, "since": None}
PAUSED_AT = 1_795_000_000.0
FULL: dict[str, object] = {"paused": "cannot write: database or disk is full", "since": PAUSED_AT}


def now() -> float:
    return SystemClock().now()


def with_model(shell: Shell, backfill: str = "recent") -> None:
    """Configure a provider; nobody is asked, since nothing runs jobs here."""
    settings = CONFIG.format(codex=shell.codex).replace("[consolidate]", '[consolidate]\nmodel = "m"')
    shell.home.config_file.write_text(settings + PROVIDER.format(backfill=backfill))


def scanned(shell: Shell, **session: Any) -> sessions.SessionRow:
    """Record a session and let it be found and enqueued, as a daemon's scan does; nobody takes the job."""
    shell.record(**session)

    async def scan() -> None:
        environ = config.environ()
        settings = config.load(shell.home.path, environ=environ)
        async with open_house(settings, clock=SystemClock(), environ=environ, role="test") as context:
            await Discovery(context).run_once()

    asyncio.run(scan())
    row: sessions.SessionRow = shell.write(sessions.get_exact, THREAD)
    return row


def ready_at(shell: Shell, kind: JobKind, key: str) -> float:
    row = shell.write(jobs.find, kind, key)
    return float(row.ready_at)


def too_fresh(shell: Shell) -> list[float]:
    return [scanned(shell, idle_hours=1).updated_at + 6 * HOUR]


def excluded(shell: Shell) -> list[float]:
    scanned(shell, source="exec")
    return []


def consent(shell: Shell) -> list[float]:
    with_model(shell, backfill="ask")
    scanned(shell)
    return [float(shell.write(meta.get, meta.FIRST_START))]


def budget(shell: Shell) -> list[float]:
    with_model(shell)
    scanned(shell)
    shell.write(
        spend.reserve,
        now=now(),
        purpose=spend.Purpose("memory_stage1", "x"),
        provider="here",
        model="m",
        estimated_tokens=1,
        estimated_cost=0.0,
        caps=spend.Caps(500, 5_000_000),
    )
    return [(now() // DAY + 1) * DAY]


def gate(shell: Shell, state: GateState) -> None:
    with_model(shell)
    scanned(shell)
    kept = written_state(state, SystemClock())
    shell.write(facts.put, "here", "", facts.Fact.GATE, kept, now=now())


def paused(shell: Shell, cause: ModelUnavailable | None) -> list[float]:
    until = round(now() + 2 * HOUR)
    gate(shell, GateState(paused_until=SystemClock().monotonic() + until - now(), paused_by=cause))
    return [until]


def quota(shell: Shell) -> list[float]:
    return paused(shell, RateLimited("here answered 429: the week is used up"))


def overloaded(shell: Shell) -> list[float]:
    return paused(shell, Overloaded("here answered 503: come back later"))


def pause_of_an_older_memoryd(shell: Shell) -> list[float]:
    return paused(shell, None)


def limit_nearly_used(shell: Shell) -> list[float]:
    until = round(now() + 2 * HOUR)
    gate(shell, GateState(snapshot=LimitSnapshot((LimitWindow("weekly", 92.0, until),), now())))
    return [until]


def provider_down(shell: Shell) -> list[float]:
    at = round(now() + 50)
    failure = Unreachable("here cannot be reached: connection refused", remedy="check the network and base_url")
    gate(shell, GateState(breakers={"m": Breaker(failure, 2, SystemClock().monotonic() + at - now())}))
    return [at]


def disk(shell: Shell) -> list[float]:
    scanned(shell)
    return [PAUSED_AT]


def lock(shell: Shell) -> list[float]:
    scanned(shell)
    return []


def consolidating(shell: Shell, **waits: str) -> float:
    """Extract a session, whose consolidation then waits; return until when."""
    settings = CONFIG.format(codex=shell.codex)
    for name, length in waits.items():
        settings = settings.replace(f'{name} = "0s"', f'{name} = "{length}"')
    shell.home.config_file.write_text(settings)
    shell.record()
    assert shell("sync").code == 0
    return ready_at(shell, JobKind.CONSOLIDATE, GLOBAL_KEY)


def min_interval(shell: Shell) -> list[float]:
    shell.record(thread_id=OTHER)
    assert shell("sync", "--now").code == 0
    return [consolidating(shell, min_interval="30m")]


def debounce(shell: Shell) -> list[float]:
    return [consolidating(shell, debounce="2m")]


def dead_job(shell: Shell) -> list[float]:
    scanned(shell)
    lease = shell.write(claim, now=now(), only=THREAD, max_attempts=1)
    shell.write(jobs.fail, lease, now=now(), retry_at=now(), error="the reply is no JSON", error_class="MalformedReply")
    return [float(shell.write(jobs.find, JobKind.STAGE1, THREAD).finished_at)]


def no_new_input(shell: Shell) -> list[float]:
    shell.record()
    assert shell("sync", "--now").code == 0
    return [float(shell.write(jobs.find, JobKind.STAGE1, THREAD).finished_at)]


@dataclass(frozen=True)
class Case:
    """One situation: how it comes about, returning the instants that are to be named, and the words of both."""

    make: Callable[[Shell], list[float]]
    explained: tuple[str, ...]
    status: tuple[str, ...]
    todo: str
    daemon: dict[str, object] | None = None
    """What a daemon that runs says of its health; None: all is well."""


CASES = [
    Case(
        too_fresh,
        ("not extracted (too_fresh): its last record is younger than discover.min_idle", "it is due then"),
        ("nothing is due before", "1 session  the first is due", "too_fresh"),
        "`memoryd sync --now` does not wait",
    ),
    Case(
        excluded,
        ("not extracted (noninteractive)", "until the session or a setting changes; no time ends that"),
        ("left out, until the session or a setting changes", "1 noninteractive", "no new input"),
        f"`memoryd sessions set-mode {THREAD} enabled`",
    ),
    Case(
        consent,
        ("not extracted (consent)", "nothing before you agree: it was recorded before memoryd's first start, since"),
        ("until you agree", "consent: recorded before memoryd's first start", "first start"),
        "`memoryd sync --backfill recent`",
    ),
    Case(
        budget,
        ("it is due, but request not sent: limits.requests_per_day = 1 would be passed", "(budget), until"),
        ("does nothing  budget: request not sent: limits.requests_per_day = 1", "requests  1 of 1"),
        "wait for the next UTC day or raise limits.requests_per_day",
    ),
    Case(
        quota,
        ("it is due, but the provider here is left alone: here answered 429: the week is used up (quota), until",),
        (
            "does nothing  quota: the provider here is left alone",
            "provider here is left alone: here answered 429: the week is used up, until",
        ),
        "it is asked again by itself",
    ),
    Case(
        overloaded,
        ("it is due, but the provider here is left alone: here answered 503: come back later (provider_overloaded)",),
        ("does nothing  provider_overloaded: the provider here is left alone", "503: come back later, until"),
        "it is asked again by itself",
    ),
    Case(
        pause_of_an_older_memoryd,
        ("it is due, but the provider here is left alone: it wants a pause (quota), until",),
        ("does nothing  quota: the provider here is left alone: it wants a pause, until",),
        "it is asked again by itself",
    ),
    Case(
        limit_nearly_used,
        ("the provider here is left alone: its weekly limit is 92 % used (limits.min_remaining_percent = 25) (quota)",),
        ("does nothing  quota: the provider here is left alone", "its weekly limit is 92 % used"),
        "lower limits.min_remaining_percent",
    ),
    Case(
        provider_down,
        ("it is due, but the provider here", "connection refused (provider_unreachable), until"),
        ("does nothing  provider_unreachable: the provider here", "connection refused, until"),
        "check the network and base_url",
    ),
    Case(
        disk,
        ("it is due, but work is paused: cannot write: database or disk is full (disk), since",),
        ("does nothing  disk: work is paused: cannot write: database or disk is full, since",),
        "memoryd tries again every 30 seconds",
        FULL,
    ),
    Case(
        lock,
        (
            "it is due, but process",
            "(`memoryd sync`) holds the lock, and nobody else may write meanwhile (lock), since",
        ),
        ("memoryd 0.1.0: not running", "does nothing  lock: process", "(`memoryd sync`) holds the lock", "since 20"),
        "wait for it to end, or end it: kill ",
    ),
    Case(
        min_interval,
        ("what it taught goes into the memory folder: min_interval: the last consolidation was less than", "until"),
        ("nothing is due before", "the consolidation of the memory folder  until", "min_interval: the last"),
        "`memoryd sync --now` does not wait for it",
    ),
    Case(
        debounce,
        ("what it taught goes into the memory folder: debounce: more sessions may follow soon", "until"),
        ("nothing is due before", "the consolidation of the memory folder  until", "debounce: more sessions"),
        "`memoryd sync --now` does not wait for it",
    ),
    Case(
        dead_job,
        ("not extracted (out_of_attempts)", "nothing, until you ask for it: every try failed, since"),
        ("1 out of attempts", f"session {THREAD} is out of attempts: the reply is no JSON"),
        f"`memoryd jobs retry {THREAD}`",
    ),
    Case(
        no_new_input,
        ("extracted (covered)", "it is read again when something is recorded in it: no new input, since"),
        ("does nothing  no new input since", "the sessions folders are looked at every 1 min"),
        "nothing",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.make.__name__)
def test_doing_nothing_has_a_reason_and_a_time(shell: Shell, case: Case) -> None:
    times = case.make(shell)

    async def answer(_request: control_socket.Request, _tell: control_socket.Tell) -> dict[str, object]:
        return case.daemon or WELL

    held = shell.held("sync") if case.make is lock else shell.held("daemon", answer)
    with held:
        explained, status = shell("explain", THREAD), shell("status")
    assert (explained.code, explained.err, status.err) == (0, "", "")
    for said, words in ((explained.out, case.explained), (status.out, case.status)):
        for word in words:
            assert word in said
        for instant in times:
            assert f"{moment(instant)} (" in said, "the time, absolute and relative"
    assert case.todo in explained.out


def test_a_memoryd_that_does_not_run_is_the_first_thing_to_be_named(shell: Shell) -> None:
    scanned(shell)
    explained, status = shell("explain", THREAD), shell("status")
    assert "it is due, but no memoryd runs (not_running)" in explained.out
    assert "does nothing  not_running: no memoryd runs; `memoryd run` starts it" in status.out
    assert "ready         1 job is taken by the next pass" in status.out
