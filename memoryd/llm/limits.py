"""How much a provider still allows, from what its headers say, and whether we may ask. Parsing and deciding are pure.

The gate refuses when a limit is reached or less than the wished percentage remains (equality passes). A window whose
reset has passed is unknown, not full; where nothing is known, the local caps decide.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import TypeAlias

# A full window that names no reset is believed for this long; then it is unknown and one request may find out.
UNDATED_HOLD_SECONDS = 600.0

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)")
SECONDS_OF = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
EPOCH_MILLISECONDS_FROM = 1e11
EPOCH_SECONDS_FROM = 1e8


@dataclass(frozen=True, slots=True)
class LimitWindow:
    """One limit: how much of it is used (percent), and when it starts anew (epoch seconds), None when not said."""

    name: str
    used_percent: float
    resets_at: float | None = None
    window_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class LimitSnapshot:
    """What was known of a provider's limits at `seen_at`; `reached` names a limit that it says is reached."""

    windows: tuple[LimitWindow, ...]
    seen_at: float
    reached: str | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """Nothing known speaks against a request."""


@dataclass(frozen=True, slots=True)
class RefusedUntil:
    """No request before `until` (epoch seconds), because of `reason`."""

    until: float
    reason: str


Permission: TypeAlias = Allowed | RefusedUntil


def may_ask(snapshot: LimitSnapshot | None, min_remaining_percent: float, now: float) -> Permission:
    """Say whether a request may be sent, and if not, until when and why. Unknown limits allow."""
    if snapshot is None:
        return Allowed()
    threshold = 100.0 - min_remaining_percent
    full = [
        RefusedUntil(until, f"{window.name} limit is {window.used_percent:.0f} % used")
        for window in snapshot.windows
        if window.used_percent > threshold and (until := _end(window, snapshot)) > now
    ]
    if snapshot.reached is not None:
        ends = [_end(window, snapshot) for window in snapshot.windows]
        until = max(ends, default=snapshot.seen_at + UNDATED_HOLD_SECONDS)
        if until > now:
            full.append(RefusedUntil(until, f"{snapshot.reached} limit is reached"))
    return max(full, key=lambda refusal: refusal.until, default=Allowed())


def says_something(snapshot: LimitSnapshot, now: float) -> bool:
    """Tell whether anything in a snapshot still holds; a window whose reset has passed is unknown."""
    if not snapshot.windows:
        return snapshot.reached is not None and snapshot.seen_at + UNDATED_HOLD_SECONDS > now
    return any(_end(window, snapshot) > now for window in snapshot.windows)


def parse_limits(headers: Mapping[str, str], now: float) -> LimitSnapshot | None:
    """Return what response headers say of limits, None when they say nothing that can be understood.

    Known: `x-ratelimit-*` of OpenAI and its likes, `x-codex-*`, and `anthropic-ratelimit-*`.
    """
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    windows = (*_codex(lower, now), *_counted(lower, now), *_unified(lower, now))
    reached = lower.get("x-codex-rate-limit-reached-type") or _rejected(lower)
    return LimitSnapshot(windows, seen_at=now, reached=reached) if windows or reached else None


def _end(window: LimitWindow, snapshot: LimitSnapshot) -> float:
    """Return when what is known of a window stops being true."""
    if window.resets_at is not None:
        return window.resets_at
    hold = UNDATED_HOLD_SECONDS if window.window_minutes is None else window.window_minutes * 60
    return snapshot.seen_at + min(hold, UNDATED_HOLD_SECONDS)


def _codex(headers: Mapping[str, str], now: float) -> Iterator[LimitWindow]:
    for name in ("primary", "secondary"):
        used = _number(headers.get(f"x-codex-{name}-used-percent", ""))
        if used is not None:
            after = _instant(headers.get(f"x-codex-{name}-reset-after-seconds", ""), now)
            at = _instant(headers.get(f"x-codex-{name}-reset-at", ""), now)
            minutes = _number(headers.get(f"x-codex-{name}-window-minutes", ""))
            yield LimitWindow(name, used, at if at is not None else after, minutes)


def _counted(headers: Mapping[str, str], now: float) -> Iterator[LimitWindow]:
    """Yield limits given as a number allowed and a number that remains; the two vendors order the words differently."""
    for header, value in headers.items():
        for prefix, name, spelling in _spellings(header):
            limit, remaining = _number(value), _number(headers.get(spelling.format("remaining"), ""))
            if limit and remaining is not None:
                used = 100.0 * (1.0 - min(1.0, max(0.0, remaining / limit)))
                yield LimitWindow(name or prefix, used, _instant(headers.get(spelling.format("reset"), ""), now))


def _spellings(header: str) -> Iterator[tuple[str, str, str]]:
    if header == "x-ratelimit-limit":
        yield "requests", "", "x-ratelimit-{}"
    if header.startswith("x-ratelimit-limit-"):
        name = header.removeprefix("x-ratelimit-limit-")
        yield "x-ratelimit", name, f"x-ratelimit-{{}}-{name}"
    if header.startswith("anthropic-ratelimit-") and header.endswith("-limit"):
        name = header.removeprefix("anthropic-ratelimit-").removesuffix("-limit")
        yield "anthropic-ratelimit", name, f"anthropic-ratelimit-{name}-{{}}"


def _rejected(headers: Mapping[str, str]) -> str | None:
    """Name the limit of a subscription that is reached: `anthropic-ratelimit-unified-status` says so."""
    if headers.get("anthropic-ratelimit-unified-status") != "rejected":
        return None
    return headers.get("anthropic-ratelimit-unified-representative-claim") or "unified"


def _unified(headers: Mapping[str, str], now: float) -> Iterator[LimitWindow]:
    """Yield the windows of subscriptions: `anthropic-ratelimit-unified-5h-utilization`, a fraction of 1.

    Without them the status alone tells, until `anthropic-ratelimit-unified-reset`.
    """
    resets_at = _instant(headers.get("anthropic-ratelimit-unified-reset", ""), now)
    if resets_at is not None and _rejected(headers):
        yield LimitWindow("unified", 100.0, resets_at)
    for header, value in headers.items():
        if header.startswith("anthropic-ratelimit-unified-") and header.endswith("-utilization"):
            stem = header.removesuffix("-utilization")
            used = _number(value)
            if used is not None:
                yield LimitWindow(
                    stem.rpartition("-")[2], 100.0 * used, _instant(headers.get(f"{stem}-reset", ""), now)
                )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None


def _instant(text: str, now: float) -> float | None:
    """Return the instant that a reset names: seconds from now, an epoch (s or ms), a duration, or RFC 3339."""
    number = _number(text)
    if number is not None:
        if number >= EPOCH_MILLISECONDS_FROM:
            return number / 1000
        return number if number >= EPOCH_SECONDS_FROM else now + number
    parts = DURATION.findall(text)
    if parts and "".join(amount + unit for amount, unit in parts) == text:
        return now + sum(float(amount) * SECONDS_OF[unit] for amount, unit in parts)
    return _date(text)


def _date(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
