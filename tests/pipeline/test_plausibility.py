"""May the wall clock be believed: tables of what the clocks said, and what is kept of it in the ledger."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.ledger import meta, outputs
from memoryd.ledger.database import Ledger
from memoryd.pipeline.plausibility import (
    STANDING_KEY,
    TRUST_SECONDS,
    Doubt,
    Look,
    Standing,
    clock_standing,
    look_at_clock,
    plausibility,
)
from tests.ledger.factories import claim, enqueue
from tests.support.clock import FakeClock

NOW = 1_800_000_000
HOUR = 3_600
DAY = 24 * HOUR


def a_look(wall: float = NOW, up: float = 1_000.0, boot: str = "a", *, counts_sleep: bool = True) -> Look:
    return Look(wall, up, boot, counts_sleep)


def believed(look: Look, *, tolerated: int = 0) -> Standing:
    return Standing(look, look, None, tolerated=tolerated)


LAST = a_look()
CASES: dict[str, tuple[Look | None, Look, int | None, Doubt | None]] = {
    "the first look at an empty ledger": (None, a_look(), None, None),
    "the first look, later than the ledger": (None, a_look(), NOW - 10, None),
    "the first look, a little earlier than the ledger": (None, a_look(), NOW + 100, None),
    "the first look, earlier than the ledger": (None, a_look(), NOW + 200, Doubt.BEHIND),
    "1970 at an empty ledger": (None, a_look(wall=60), None, Doubt.BEHIND),
    "an hour later": (LAST, a_look(NOW + HOUR, 1_000 + HOUR), NOW, None),
    "three hours back": (LAST, a_look(NOW - 3 * HOUR, 1_010), NOW - DAY, Doubt.BEHIND),
    "three hours back in another boot": (LAST, a_look(NOW - 3 * HOUR, 10, "b"), None, Doubt.BEHIND),
    "back by the correction of a time server": (LAST, a_look(NOW - 60, 1_010), NOW, None),
    "1970 in another boot": (LAST, a_look(30, 10, "b"), None, Doubt.BEHIND),
    "two days ahead": (LAST, a_look(NOW + 2 * DAY, 1_010), NOW, None),
    "31 days ahead": (LAST, a_look(NOW + 31 * DAY, 1_010), NOW, Doubt.JUMPED),
    "31 days ahead in another boot": (LAST, a_look(NOW + 31 * DAY, 10, "b"), NOW, Doubt.JUMPED),
    "29 days off": (LAST, a_look(NOW + 29 * DAY, 10, "b"), NOW, None),
    "asleep for 40 days": (LAST, a_look(NOW + 40 * DAY, 1_000 + 40 * DAY), NOW, None),
    "a boot that counts anew under the same name": (LAST, a_look(NOW + 31 * DAY, 10), NOW, Doubt.JUMPED),
}


@pytest.mark.parametrize("case", CASES)
def test_a_clock_is_in_doubt_when_it_is_behind_what_is_stored_or_jumped_by_more_than_30_days(case: str) -> None:
    before, look, newest, doubt = CASES[case]

    standing = plausibility(None if before is None else believed(before), look, newest)

    assert standing.doubt == doubt
    assert standing.last == look
    assert standing.believed == (look if doubt is None else before)


def test_a_clock_that_is_set_right_is_believed_at_once() -> None:
    """A machine without a battery starts in 1970, until the network tells the time."""
    in_1970 = plausibility(believed(LAST), a_look(30, 10, "b"), NOW)
    assert in_1970.doubt is Doubt.BEHIND

    right = plausibility(in_1970, a_look(NOW + DAY, 70, "b"), NOW)

    assert (right.doubt, right.believed) == (None, a_look(NOW + DAY, 70, "b"))


def let_pass(standing: Standing, newest: int | None, hours: int, *, first: Look) -> Standing:
    for hour in range(1, hours + 1):
        look = replace(first, wall=first.wall + hour * HOUR, up=first.up + hour * HOUR)
        standing = plausibility(standing, look, newest)
    return standing


@pytest.mark.parametrize("off", [-40 * DAY, 40 * DAY, -3 * DAY])
def test_after_24_hours_in_agreement_the_clock_is_believed_against_the_ledger(off: float) -> None:
    jumped = a_look(NOW + off, 1_010)
    standing = plausibility(believed(LAST), jumped, NOW)
    assert standing.doubt is not None

    almost = let_pass(standing, NOW, 23, first=jumped)
    assert (almost.doubt, almost.agreed_seconds, almost.judged_at) == (standing.doubt, 23 * HOUR, NOW)
    trusted = let_pass(standing, NOW, 24, first=jumped)
    later = let_pass(standing, NOW, 30, first=jumped)

    assert trusted.doubt is None
    assert later.doubt is None
    assert later.judged_at == later.last.wall


def test_agreement_counts_across_boots_but_not_while_the_machine_is_off() -> None:
    jumped = a_look(NOW - 40 * DAY, 1_010)
    standing = let_pass(plausibility(believed(LAST), jumped, NOW), NOW, 20, first=jumped)

    booted = a_look(standing.last.wall + 100 * HOUR, 5.0, "b")
    standing = plausibility(standing, booted, NOW)
    assert standing.agreed_seconds == 20 * HOUR

    assert let_pass(standing, NOW, 3, first=booted).doubt is Doubt.BEHIND
    assert let_pass(standing, NOW, 4, first=booted).doubt is None


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_clock_that_moves_again_is_counted_anew(step: float) -> None:
    jumped = a_look(NOW - 40 * DAY, 1_010)
    standing = let_pass(plausibility(believed(LAST), jumped, NOW), NOW, 20, first=jumped)

    moved = replace(standing.last, wall=standing.last.wall + step)

    assert plausibility(standing, moved, NOW).agreed_seconds == 0


def test_where_sleep_is_not_counted_the_wall_clock_may_gain_on_the_other() -> None:
    jumped = a_look(NOW - 40 * DAY, 1_010, counts_sleep=False)
    standing = plausibility(believed(LAST), jumped, NOW)

    woken = replace(jumped, wall=jumped.wall + 9 * HOUR, up=jumped.up + HOUR)

    assert plausibility(standing, woken, NOW).agreed_seconds == HOUR


def test_1970_is_never_believed_however_long_it_lasts() -> None:
    in_1970 = a_look(60, 10, "b")
    standing = plausibility(believed(LAST), in_1970, NOW)
    assert let_pass(standing, NOW, 100, first=in_1970).doubt is Doubt.BEHIND


def test_instants_that_a_wrong_clock_wrote_are_tolerated_and_newer_ones_are_not() -> None:
    standing = believed(LAST, tolerated=NOW + 300 * DAY)
    look = a_look(NOW + HOUR, 1_000 + HOUR)

    assert plausibility(standing, look, NOW + 300 * DAY).doubt is None
    assert plausibility(standing, look, NOW + 301 * DAY).doubt is Doubt.BEHIND


def test_ages_are_judged_by_the_last_believed_instant() -> None:
    standing = plausibility(believed(LAST), a_look(NOW + 400 * DAY, 1_010), NOW)
    assert standing.judged_at == NOW
    first_of_all = plausibility(None, a_look(60), None)
    assert first_of_all.judged_at == 60


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=float(NOW))


async def test_the_standing_is_kept_from_start_to_start(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "ledger.sqlite3"
    async with await Ledger.open(path, clock=clock) as ledger:
        assert (await look_at_clock(ledger, clock)).doubt is None
    clock.reboot()
    clock.jump(40 * DAY)

    async with await Ledger.open(path, clock=clock) as ledger:
        assert (await look_at_clock(ledger, clock)).doubt is Doubt.JUMPED
        await clock.advance(TRUST_SECONDS)
        assert (await clock_standing(ledger, clock)).doubt is None
        assert (await look_at_clock(ledger, clock)).doubt is None


async def test_looking_keeps_nothing(tmp_path: Path, clock: FakeClock) -> None:
    async with await Ledger.open(tmp_path / "ledger.sqlite3", clock=clock) as ledger:
        await clock_standing(ledger, clock)
        assert await ledger.read(meta.get, STANDING_KEY) is None


@pytest.mark.parametrize("kept", ["", "[]", "7", '{"last": 1}', '{"last": {"wall": 1}, "believed": null}'])
async def test_a_standing_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, clock: FakeClock, kept: str) -> None:
    async with await Ledger.open(tmp_path / "ledger.sqlite3", clock=clock) as ledger:
        await ledger.write(meta.put, STANDING_KEY, kept)
        assert (await clock_standing(ledger, clock)).doubt is None


async def test_the_newest_instant_is_that_of_a_run_and_not_of_a_session(tmp_path: Path, clock: FakeClock) -> None:
    async with await Ledger.open(tmp_path / "ledger.sqlite3", clock=clock) as ledger:
        assert await ledger.read(meta.newest_instant) is None
        await ledger.write(enqueue, "t", now=clock.now())
        await ledger.write(_store, "t", NOW + 500)
        assert await ledger.read(meta.newest_instant) is None
        await ledger.write(claim, now=NOW + 77)
        assert await ledger.read(meta.newest_instant) == NOW + 77


def _store(conn: sqlite3.Connection, thread: str, at: int) -> None:
    outputs.store(conn, outputs.NewOutput(thread, at, "raw", "summary", None), now=NOW)
