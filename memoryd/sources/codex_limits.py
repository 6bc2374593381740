"""Rate-limit snapshots that Codex records in token_count events."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Raw

from memoryd.sources.items import LimitWindow, RateLimits
from memoryd.sources.rawjson import as_fields, as_int, as_number, as_text, compact

PREFERRED_LIMIT = "codex"
WINDOWS = ("primary", "secondary")


class UsualWindow(msgspec.Struct, gc=False):
    """A window as it is nearly always written; what else it says is passed over."""

    used_percent: float | None = None
    window_minutes: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    resets_at: float | None = None
    resets_in_seconds: float | None = None  # files of 2025-09-24 to 2025-10-17


class UsualLimits(msgspec.Struct, gc=False):
    """The limits of a token_count event as they are nearly always written: with windows, and none of them reached."""

    limit_id: str | None = None
    primary: UsualWindow | None = None
    secondary: UsualWindow | None = None
    rate_limit_reached_type: None = None

    @property
    def says_something(self) -> bool:
        """Whether a window is named."""
        windows = (self.primary, self.secondary)
        return any(window is not None and window.used_percent is not None for window in windows)

    def seen(self, at: float | None) -> RateLimits:
        """Return them as the snapshot that they are at `at`."""
        windows = (self.primary, self.secondary)
        known = tuple(
            LimitWindow(used, window.window_minutes, _reset(window.resets_at, window.resets_in_seconds, at))
            for window in windows
            if window is not None and (used := window.used_percent) is not None
        )
        return RateLimits(at, self.limit_id, known, None)


@dataclass(slots=True)
class LatestLimits:
    """The latest snapshot that says something; one of the limit `codex` is preferred to any other.

    There is one after every request: it is made of what was written when somebody asks.
    """

    preferred: RateLimits | tuple[UsualLimits, datetime] | None = None
    other: RateLimits | tuple[UsualLimits, datetime] | None = None

    def see_usual(self, limits: UsualLimits, at: datetime) -> None:
        """Take in the next snapshot of the session, written at that time."""
        if not limits.says_something:
            return
        if limits.limit_id == PREFERRED_LIMIT:
            self.preferred = (limits, at)
        else:
            self.other = (limits, at)

    def see(self, snapshot: RateLimits | None) -> None:
        """Take in the next snapshot of the session."""
        if snapshot is None:
            return
        if snapshot.limit_id == PREFERRED_LIMIT:
            self.preferred = snapshot
        else:
            self.other = snapshot

    @property
    def best(self) -> RateLimits | None:
        """The snapshot to go by, None when the session tells nothing of limits."""
        latest = self.preferred or self.other
        if isinstance(latest, tuple):
            limits, at = latest
            return limits.seen(at.timestamp())
        return latest


def parse_limits(raw: Raw | None, at: float | None) -> RateLimits | None:
    """Read the limits of a token_count event; None when they name neither a window nor a limit that was reached."""
    limits = as_fields(raw)
    windows = tuple(window for name in WINDOWS if (window := _window(as_fields(limits.get(name)), at)) is not None)
    reached = limits.get("rate_limit_reached_type")
    named = as_text(reached) if reached and bytes(reached) != b"null" else ""
    if named is None:
        named = compact(reached)
    if not windows and not named:
        return None
    return RateLimits(at, as_text(limits.get("limit_id")), windows, named or None)


def _window(fields: dict[str, Raw], at: float | None) -> LimitWindow | None:
    used = as_number(fields.get("used_percent"))
    if used is None:
        return None
    resets_at, seconds = as_number(fields.get("resets_at")), as_number(fields.get("resets_in_seconds"))
    return LimitWindow(used, as_int(fields.get("window_minutes")), _reset(resets_at, seconds, at))


def _reset(resets_at: float | None, seconds: float | None, at: float | None) -> int | None:
    if resets_at is not None:
        return int(resets_at)
    return int(at + seconds) if seconds is not None and at is not None else None
