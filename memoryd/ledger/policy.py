"""When to try again: pure functions of counts, settings and an instant."""

import math
import random
from dataclasses import dataclass

from memoryd.ledger.states import WaitReason

PATIENT_CRASHES = 2
"""So many crashes at one watermark are retried at once; from the next one on, tries are retry_cap apart."""

LONGEST_QUEUE_SECONDS = 365 * 86_400
"""Sessions older than this are taken in no particular order."""

DEBOUNCE_LIMIT = 5
"""A stream of enqueues postpones a consolidation by at most this many debounces."""


@dataclass(frozen=True, slots=True)
class ConsolidateTiming:
    """How long consolidation waits for more input, and how far apart runs are; both in seconds."""

    debounce: float
    min_interval: float


@dataclass(frozen=True, slots=True)
class Wait:
    """From when a job may be claimed, and why not before; `reason` None means at once."""

    ready_at: int
    reason: str | None = None


def retry_delay(attempt: int, base: float, cap: float, rng: random.Random) -> float:
    """Return the seconds to wait after the `attempt`-th failure (from 1): exponential, jittered, capped.

    The jitter lies in [0.5, 1], so that a delay is never negligible and never above `cap`.
    """
    exponent = min(max(attempt, 1) - 1, 62)
    ceiling = min(max(cap, 0.0), max(base, 0.0) * 2.0**exponent)
    return ceiling * (0.5 + 0.5 * rng.random())


def later(instant: float) -> int:
    """Round an instant that must not come early up to whole seconds."""
    return math.ceil(instant)


def newest_first(now: float, updated_at: int) -> int:
    """Say since when a session found now counts as ready: the newer its last record, the earlier, so the sooner taken.

    History of thousands of sessions, which the caps may spread over days, then keeps no fresh session waiting.
    """
    age = min(max(0, at_once(now) - updated_at), LONGEST_QUEUE_SECONDS)
    return at_once(now) - LONGEST_QUEUE_SECONDS + age


def at_once(now: float) -> int:
    """Round the present down to whole seconds, so that what is ready now can be claimed now."""
    return math.floor(now)


def lease_is_live(*, lease_until: int, lease_seconds: float, now: float) -> bool:
    """Tell whether a lease holds: not over, and not further in the future than its length allows (a wrong clock)."""
    return now < lease_until <= later(now + lease_seconds) + 1


def after_crash(*, crash_count: int, started_at: int, now: float, retry_cap: float) -> Wait:
    """Say when to take over a run that ended without a word; `crash_count` includes this crash."""
    if crash_count <= PATIENT_CRASHES:
        return Wait(at_once(now))
    ready = min(started_at + retry_cap, now + retry_cap)
    return Wait(later(ready), WaitReason.CRASH) if ready > now else Wait(at_once(now))


def consolidation_wait(
    *, now: float, timing: ConsolidateTiming, first_enqueued_at: int, last_success_at: int | None
) -> Wait:
    """Say when the next consolidation may start.

    It waits for quiet (debounce), but not for ever, and not sooner after a success than min_interval.
    A success in the future was written by a wrong clock and counts as now.
    """
    first = min(first_enqueued_at, now)
    quiet = min(now + timing.debounce, first + DEBOUNCE_LIMIT * timing.debounce)
    spaced = now if last_success_at is None else min(last_success_at, now) + timing.min_interval
    if max(quiet, spaced) <= now:
        return Wait(at_once(now))
    if spaced > quiet:
        return Wait(later(spaced), WaitReason.MIN_INTERVAL)
    return Wait(later(quiet), WaitReason.DEBOUNCE)
