"""What a gate knows of a provider as a value, and as the JSON that outlives the process. It only reads the clock.

Inside, pauses are monotonic seconds; outside, epoch seconds: the monotonic clock of another process means nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from memoryd.clock import Clock
from memoryd.errors import AuthRefused, ModelUnavailable, UnknownModel, Unreachable
from memoryd.llm.breaker import PROBE_SECONDS, Breaker
from memoryd.llm.fields import object_at, objects_at, text_at
from memoryd.llm.limits import LimitSnapshot, LimitWindow
from memoryd.llm.question import JsonObject

FAILURES: Mapping[str, type[ModelUnavailable]] = {
    kind.__name__: kind for kind in (AuthRefused, UnknownModel, Unreachable)
}


@dataclass(frozen=True, slots=True)
class GateState:
    """Refusals in a row, the pause (monotonic seconds), limits that forbid requests, breakers that are not closed."""

    stamp: str = ""
    refusals: int = 0
    paused_until: float = 0.0
    snapshot: LimitSnapshot | None = None
    breakers: Mapping[str, Breaker] = field(default_factory=dict)


def written_state(state: GateState, clock: Clock) -> str:
    """Return the state as JSON, the same text for the same state however late it is written."""
    ahead = clock.now() - clock.monotonic()
    paused = state.paused_until > clock.monotonic()
    breakers = {
        model: {
            "failure": type(breaker.failure).__name__,
            "message": breaker.failure.message,
            "remedy": breaker.failure.remedy,
            "status": breaker.failure.status,
            "failures": breaker.failures,
            "next_probe_at": round(breaker.next_probe_at + ahead),
        }
        for model, breaker in sorted(state.breakers.items())
        if breaker.failure is not None
    }
    return json.dumps(
        {
            "stamp": state.stamp,
            "refusals": state.refusals,
            "paused_until": round(state.paused_until + ahead) if paused else None,
            "snapshot": state.snapshot and snapshot_json(state.snapshot),
            "breakers": breakers,
        }
    )


def read_state(text: str, clock: Clock, *, longest_pause: float) -> GateState:
    """Read what `written_state` wrote; what cannot be read is nothing, and no wait is longer than it may have been."""
    body = _object(text)
    ahead = clock.now() - clock.monotonic()
    until = _number_at(body, "paused_until")
    pause = 0.0 if until is None else min(until - clock.now(), longest_pause)
    breakers = {}
    for model, said in object_at(body, "breakers").items():
        kind = FAILURES.get(text_at(said, "failure")) if isinstance(said, Mapping) else None
        if isinstance(said, Mapping) and kind is not None:
            probe = (_number_at(said, "next_probe_at") or 0.0) - ahead
            breakers[model] = Breaker(
                kind(text_at(said, "message"), remedy=text_at(said, "remedy"), status=_status(said)),
                int(_number_at(said, "failures") or 1),
                min(probe, clock.monotonic() + PROBE_SECONDS),
            )
    return GateState(
        stamp=text_at(body, "stamp"),
        refusals=int(_number_at(body, "refusals") or 0),
        paused_until=clock.monotonic() + pause if pause > 0 else 0.0,
        snapshot=read_snapshot(object_at(body, "snapshot")),
        breakers=breakers,
    )


def paused_until(text: str, now: float) -> float | None:
    """Return until when (epoch seconds) the written state says to leave the provider alone, None when it does not."""
    body = _object(text)
    snapshot = read_snapshot(object_at(body, "snapshot"))
    ends = [window.resets_at for window in snapshot.windows if window.resets_at] if snapshot else []
    later = [until for until in (_number_at(body, "paused_until"), *ends) if until is not None and until > now]
    return max(later, default=None)


def snapshot_json(snapshot: LimitSnapshot) -> JsonObject:
    """Return a snapshot as a JSON object."""
    windows = [
        {
            "name": window.name,
            "used_percent": window.used_percent,
            "resets_at": window.resets_at,
            "window_minutes": window.window_minutes,
        }
        for window in snapshot.windows
    ]
    return {"windows": windows, "seen_at": snapshot.seen_at, "reached": snapshot.reached}


def read_snapshot(body: JsonObject) -> LimitSnapshot | None:
    """Read what `snapshot_json` made, None when it is none."""
    seen_at = _number_at(body, "seen_at")
    if seen_at is None:
        return None
    windows = tuple(
        LimitWindow(
            text_at(said, "name"),
            _number_at(said, "used_percent") or 0.0,
            _number_at(said, "resets_at"),
            _number_at(said, "window_minutes"),
        )
        for said in objects_at(body, "windows")
    )
    return LimitSnapshot(windows, seen_at, text_at(body, "reached") or None)


def _object(text: str) -> JsonObject:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _status(body: JsonObject) -> int | None:
    status = _number_at(body, "status")
    return None if status is None else int(status)


def _number_at(body: JsonObject, key: str) -> float | None:
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)
