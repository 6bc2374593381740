"""What a gate knows of a provider as a value, and as the JSON that outlives the process. It only reads the clock.

Inside, pauses are monotonic seconds; outside, epoch seconds: the monotonic clock of another process means nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from memoryd.clock import Clock
from memoryd.errors import AuthRefused, ModelUnavailable, Overloaded, RateLimited, UnknownModel, Unreachable
from memoryd.llm.breaker import PROBE_SECONDS, Breaker
from memoryd.llm.fields import object_at, objects_at, text_at
from memoryd.llm.limits import LimitSnapshot, LimitWindow
from memoryd.llm.question import JsonObject

FAILURES: Mapping[str, type[ModelUnavailable]] = {
    kind.__name__: kind for kind in (AuthRefused, UnknownModel, Unreachable)
}
PAUSES: Mapping[str, type[ModelUnavailable]] = {kind.__name__: kind for kind in (RateLimited, Overloaded)}


@dataclass(frozen=True, slots=True)
class GateState:
    """Refusals in a row, the pause (monotonic seconds), limits that forbid requests, breakers that are not closed.

    `paused_by` is the answer that asked for the pause, None when nobody knows any more.
    """

    stamp: str = ""
    refusals: int = 0
    paused_until: float = 0.0
    paused_by: ModelUnavailable | None = None
    snapshot: LimitSnapshot | None = None
    breakers: Mapping[str, Breaker] = field(default_factory=dict)


def written_state(state: GateState, clock: Clock) -> str:
    """Return the state as JSON, the same text for the same state however late it is written."""
    ahead = clock.now() - clock.monotonic()
    paused = state.paused_until > clock.monotonic()
    breakers = {
        model: {
            **_written_failure(breaker.failure),
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
            "paused_by": _written_failure(state.paused_by) if paused and state.paused_by is not None else None,
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
        failure = _read_failure(said, FAILURES) if isinstance(said, Mapping) else None
        if isinstance(said, Mapping) and failure is not None:
            probe = (_number_at(said, "next_probe_at") or 0.0) - ahead
            breakers[model] = Breaker(
                failure,
                int(_number_at(said, "failures") or 1),
                min(probe, clock.monotonic() + PROBE_SECONDS),
            )
    return GateState(
        stamp=text_at(body, "stamp"),
        refusals=int(_number_at(body, "refusals") or 0),
        paused_until=clock.monotonic() + pause if pause > 0 else 0.0,
        paused_by=_read_failure(object_at(body, "paused_by"), PAUSES) if pause > 0 else None,
        snapshot=read_snapshot(object_at(body, "snapshot")),
        breakers=breakers,
    )


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


def _written_failure(failure: ModelUnavailable) -> JsonObject:
    return {
        "failure": type(failure).__name__,
        "message": failure.message,
        "remedy": failure.remedy,
        "status": failure.status,
    }


def _read_failure(body: JsonObject, kinds: Mapping[str, type[ModelUnavailable]]) -> ModelUnavailable | None:
    kind = kinds.get(text_at(body, "failure"))
    if kind is None:
        return None
    return kind(text_at(body, "message"), remedy=text_at(body, "remedy"), status=_status(body))


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
