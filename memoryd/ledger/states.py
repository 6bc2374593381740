"""The life of a job: its kinds, its statuses, and every move that SQL may make.

A move is one statement of sql/jobs.sql with its guard in WHERE. The table below says from which statuses it starts and
in which it may end; a test runs every statement against a row of every status and compares.
"""

from dataclasses import dataclass
from enum import StrEnum


class JobKind(StrEnum):
    """What a job does."""

    STAGE1 = "memory_stage1"
    CONSOLIDATE = "memory_consolidate_global"


GLOBAL_KEY = "global"
"""job_key of the only consolidation job."""


class Status(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"


class WaitReason(StrEnum):
    """Why a pending job waits, as far as the ledger itself decides; a deferral brings its own reason."""

    DEBOUNCE = "debounce"
    MIN_INTERVAL = "min_interval"
    BACKOFF = "backoff"
    CRASH = "crash"


class Outcome(StrEnum):
    """How a run ended; an attempt without one is still running."""

    DONE = "done"
    NOTHING = "nothing"
    DEFERRED = "deferred"
    FAILED = "failed"
    RELEASED = "released"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Move:
    """One allowed change of a job's row. `starts` empty: the row did not exist."""

    starts: frozenset[Status]
    ends: frozenset[Status]


def _move(starts: tuple[Status, ...], ends: tuple[Status, ...]) -> Move:
    return Move(frozenset(starts), frozenset(ends))


_P, _R, _D, _E = Status.PENDING, Status.RUNNING, Status.DONE, Status.ERROR

MOVES: dict[str, Move] = {
    "insert_job": _move((), (_P,)),
    "reopen_job": _move((_P, _D, _E), (_P,)),
    "raise_watermark": _move((_R,), (_R,)),
    "raise_waiting": _move((_P,), (_P,)),
    "claim_job": _move((_P,), (_R,)),
    "record_crash": _move((_R,), (_P,)),
    "renew_lease": _move((_R,), (_R,)),
    "request_cancel": _move((_R,), (_R,)),
    "complete_job": _move((_R,), (_D,)),
    "complete_and_reopen": _move((_R,), (_P,)),
    "cover_newer": _move((_P,), (_D,)),
    "defer_job": _move((_R,), (_P,)),
    "fail_job": _move((_R,), (_P, _E)),
    "release_job": _move((_R,), (_P,)),
    "revive_job": _move((_P, _E), (_P,)),
    "revive_outdated_jobs": _move((_E,), (_P,)),
    "revive_dead_jobs": _move((_E,), (_P,)),
    "expedite_jobs": _move((_P,), (_P,)),
    "mend_waits": _move((_P,), (_P,)),
}
