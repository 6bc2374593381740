import asyncio
import platform
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.daemon.duty import Duty
from memoryd.daemon.pulse import (
    BEATS_PER_WATCHDOG,
    FORGIVEN_SECONDS,
    LATE_SECONDS,
    LONGEST_BEAT_SECONDS,
    LONGEST_START_SECONDS,
    Pulse,
)
from memoryd.daemon.vitals import MEGABYTE, Bounds, Usage, excesses, give_memory_back, spare_memory, usage
from tests.support.clock import FakeClock
from tests.support.log_lines import LogLines

CALM = Usage(50 * MEGABYTE, 20, 1000)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.setblocking(False)
        yield listener


@pytest.fixture
def duty(tmp_path: Path) -> Duty:
    return Duty(str(tmp_path / "notify"), ready=True)


def heard(manager: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return found


def a_pulse(duty: Duty, clock: FakeClock, has: Usage = CALM, doing: str = "watching") -> Pulse:
    return Pulse(duty, clock, lambda: doing, measure=lambda: has)


@pytest.mark.parametrize(
    ("watchdog", "every"), [(None, LONGEST_BEAT_SECONDS), (60.0, LONGEST_BEAT_SECONDS), (2.0, 2.0 / BEATS_PER_WATCHDOG)]
)
async def test_it_beats_several_times_within_the_patience_of_the_service_manager(
    duty: Duty, clock: FakeClock, manager: socket.socket, watchdog: float | None, every: float
) -> None:
    pulse = Pulse(duty, clock, lambda: "watching", watchdog_seconds=watchdog, measure=lambda: CALM)
    beating = asyncio.create_task(pulse.run())
    await clock.sleeping(1)
    await clock.advance(2 * every)
    beating.cancel()
    assert heard(manager) == ["WATCHDOG=1", "STATUS=watching", "WATCHDOG=1", "WATCHDOG=1"]


async def test_while_it_starts_it_asks_for_more_time_but_not_for_ever(clock: FakeClock, manager: socket.socket) -> None:
    duty = Duty(str(manager.getsockname()))
    pulse = a_pulse(duty, clock)
    pulse.beat(0.0)
    clock.freeze(LONGEST_START_SECONDS)
    pulse.beat(0.0)
    assert heard(manager) == ["WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000"]


async def test_a_loop_that_stood_still_is_told_of_and_forgiven_after_a_while(duty: Duty, clock: FakeClock) -> None:
    log = LogLines()
    pulse = a_pulse(duty, clock)
    beating = asyncio.create_task(pulse.run())
    await clock.sleeping(1)
    clock.freeze(LONGEST_BEAT_SECONDS + 3.2)
    await clock.advance(0)
    beating.cancel()
    (line,) = log.events("loop.delayed")
    assert line["seconds"] == pytest.approx(3.2)
    assert "3.2 seconds" in duty.troubles["loop_late"].message
    pulse.beat(LATE_SECONDS / 2)
    assert [trouble.id for trouble in duty.troubles_at(clock.monotonic() + FORGIVEN_SECONDS - 1)] == ["loop_late"]
    assert duty.troubles_at(clock.monotonic() + FORGIVEN_SECONDS) == []


async def test_a_soft_bound_degrades_health_once_and_a_hard_one_ends_the_daemon(duty: Duty, clock: FakeClock) -> None:
    log, bounds = LogLines(), Bounds()
    a_pulse(duty, clock, Usage(bounds.soft_bytes + MEGABYTE, 20, 1000)).beat(0.0)
    a_pulse(duty, clock, Usage(bounds.soft_bytes + MEGABYTE, 20, 1000)).beat(0.0)
    assert (list(duty.troubles), duty.exhausted) == (["memory_grown"], None)
    a_pulse(duty, clock, Usage(bounds.soft_bytes, 601, 1000)).beat(0.0)
    assert list(duty.troubles) == ["descriptors_grown"]
    assert [line["what"] for line in log.events("usage.exceeded")] == ["memory", "descriptors"]
    a_pulse(duty, clock, Usage(None, 901, 1000)).beat(0.0)
    assert duty.exhausted == "memoryd has 901 open descriptors, more than 900"
    assert duty.exhaustion.is_set()
    a_pulse(duty, clock).beat(0.0)
    assert duty.troubles == {}


async def test_a_fault_of_one_beat_is_told_of_and_the_next_comes(
    duty: Duty, clock: FakeClock, manager: socket.socket
) -> None:
    log = LogLines()

    def odd() -> Usage:
        raise ZeroDivisionError

    beating = asyncio.create_task(Pulse(duty, clock, lambda: "watching", measure=odd).run())
    await clock.sleeping(1)
    await clock.advance(LONGEST_BEAT_SECONDS)
    beating.cancel()
    assert [line["service"] for line in log.events("service.crashed")] == ["pulse", "pulse"]
    assert heard(manager).count("WATCHDOG=1") == 2


def test_this_process_is_measured_and_far_below_every_bound() -> None:
    has = usage()
    assert has.resident_bytes is not None
    assert has.resident_bytes > MEGABYTE
    assert has.descriptors is not None
    assert 2 < has.descriptors < has.descriptor_limit
    assert excesses(CALM, Bounds()) == []
    assert excesses(Usage(None, None, -1), Bounds()) == []


def test_memory_is_spared_where_the_c_library_can() -> None:
    """glibc can; elsewhere nothing happens."""
    assert spare_memory() is (platform.libc_ver()[0] == "glibc")
    give_memory_back()
