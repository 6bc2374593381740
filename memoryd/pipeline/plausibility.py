"""May the wall clock be believed? What forgets by age asks here first, since a clock that jumped makes all things old.

Believed is a clock that is not earlier than what the ledger holds, and that has not jumped by more than 30 days since
it was believed last. Once in doubt it is believed again when that no longer holds (somebody set it right), or when it
has agreed with the time since boot for 24 hours: then it is the ledger that was written by a wrong clock.
"""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from sqlite3 import Connection
from typing import Final

from memoryd.clock import Clock, Uptime
from memoryd.ledger import meta
from memoryd.ledger.database import Ledger

SLACK_SECONDS: Final = 120.0
"""Corrections of network time and the whole seconds of the ledger stay below this."""
LONGEST_JUMP_SECONDS: Final = 30 * 86_400.0
TRUST_SECONDS: Final = 24 * 3_600.0
"""So much uptime in agreement makes a clock believed, whatever the ledger says."""
EARLIEST: Final = 1_672_531_200
"""2023-01-01: no clock that is right says less; a machine without a battery starts in 1970."""
STANDING_KEY: Final = "clock"


class Doubt(StrEnum):
    """Why the wall clock is not believed."""

    BEHIND = "behind"
    JUMPED = "jumped"


@dataclass(frozen=True, slots=True)
class Look:
    """What the clocks said at one instant: `wall` in epoch seconds, `up` in seconds since that `boot`."""

    wall: float
    up: float
    boot: str
    counts_sleep: bool

    @classmethod
    def at(cls, clock: Clock) -> "Look":
        """Look at a clock now."""
        uptime: Uptime = clock.uptime()
        return cls(clock.now(), uptime.seconds, uptime.boot, uptime.counts_sleep)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of the wall clock at its last look.

    `believed` is the last look that was believed, None before the first. `agreed_seconds` is the uptime for which a
    clock in doubt has agreed with itself. Instants in the ledger up to `tolerated` are later than a believed clock
    because a wrong one wrote them.
    """

    last: Look
    believed: Look | None
    doubt: Doubt | None
    agreed_seconds: float = 0.0
    tolerated: int = 0

    @property
    def judged_at(self) -> float:
        """The instant by which ages are judged: now, or, in doubt, when the clock was believed last."""
        return self.last.wall if self.doubt is None or self.believed is None else self.believed.wall


def plausibility(before: Standing | None, look: Look, newest: int | None) -> Standing:
    """Judge a look at the clocks by the standing so far and the newest instant in the ledger (None: it is empty)."""
    believed = before.believed if before else None
    tolerated = before.tolerated if before else 0
    doubt = _doubt(believed, look, max(EARLIEST, newest if newest is not None and newest > tolerated else 0))
    if before is None or doubt is None:
        return Standing(look, look if doubt is None else believed, doubt, 0.0, tolerated)
    agreed = 0.0
    if before.doubt is not None and _agrees(before.last, look):
        agreed = before.agreed_seconds + (_elapsed(before.last, look) or 0.0)
    if agreed >= TRUST_SECONDS and look.wall >= EARLIEST:
        return Standing(look, look, None, 0.0, max(tolerated, newest or 0))
    return Standing(look, believed, doubt, agreed, tolerated)


def _doubt(believed: Look | None, look: Look, newest: int) -> Doubt | None:
    earliest = max(newest, believed.wall if believed else 0.0)
    if look.wall < earliest - SLACK_SECONDS:
        return Doubt.BEHIND
    if believed is None:
        return None
    passed = _elapsed(believed, look)
    jumped = look.wall - believed.wall - (passed if passed is not None else 0.0)
    return Doubt.JUMPED if jumped > LONGEST_JUMP_SECONDS else None


def _elapsed(earlier: Look, later: Look) -> float | None:
    """Return the seconds between two looks by the time since boot; None where another boot lies between."""
    return later.up - earlier.up if earlier.boot == later.boot and later.up >= earlier.up else None


def _agrees(last: Look, look: Look) -> bool:
    """Tell whether the wall clock went on from the last look as it should; where sleep is not counted, it may gain."""
    passed = _elapsed(last, look)
    if passed is None:
        return -SLACK_SECONDS <= look.wall - last.wall <= LONGEST_JUMP_SECONDS
    gained = look.wall - last.wall - passed
    return -SLACK_SECONDS <= gained <= (SLACK_SECONDS if look.counts_sleep else LONGEST_JUMP_SECONDS)


async def look_at_clock(ledger: Ledger, clock: Clock) -> Standing:
    """Judge the clock now and keep the standing: for the start, each upkeep and each jump."""
    return await ledger.write(_judge_and_keep, Look.at(clock))


async def clock_standing(ledger: Ledger, clock: Clock) -> Standing:
    """Judge the clock now and keep nothing: for whoever is about to forget something by its age, and for `status`."""
    return await ledger.read(_judge, Look.at(clock))


async def kept_standing(ledger: Ledger) -> Standing | None:
    """Return the standing that was kept last, None before the first."""
    return await ledger.read(_stored)


def _judge(conn: Connection, look: Look) -> Standing:
    return plausibility(_stored(conn), look, meta.newest_instant(conn))


def _judge_and_keep(conn: Connection, look: Look) -> Standing:
    standing = _judge(conn, look)
    meta.put(conn, STANDING_KEY, json.dumps(asdict(standing)))
    return standing


def _stored(conn: Connection) -> Standing | None:
    """Return the standing that was kept; what cannot be read is as good as none."""
    try:
        kept = json.loads(meta.get(conn, STANDING_KEY) or "null")
        return kept and Standing(
            last=Look(**kept["last"]),
            believed=kept["believed"] and Look(**kept["believed"]),
            doubt=kept["doubt"] and Doubt(kept["doubt"]),
            agreed_seconds=float(kept["agreed_seconds"]),
            tolerated=int(kept["tolerated"]),
        )
    except (ValueError, TypeError, KeyError):
        return None
