"""Rate-limit snapshots that Codex records in token_count events (FORMATS section 1)."""

from dataclasses import dataclass

from msgspec import Raw

from memoryd.sources.items import LimitWindow, RateLimits
from memoryd.sources.rawjson import as_fields, as_int, as_number, as_text, compact

PREFERRED_LIMIT = "codex"
WINDOWS = ("primary", "secondary")


@dataclass(slots=True)
class LatestLimits:
    """The latest snapshot that says something; one of the limit `codex` is preferred to any other."""

    preferred: RateLimits | None = None
    other: RateLimits | None = None

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
        return self.preferred or self.other


def parse_limits(payload: dict[str, Raw], at: float | None) -> RateLimits | None:
    """Read the limits of a token_count event; None when it names neither a window nor a limit that was reached."""
    limits = as_fields(payload.get("rate_limits"))
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
    return LimitWindow(used, as_int(fields.get("window_minutes")), _resets_at(fields, at))


def _resets_at(fields: dict[str, Raw], at: float | None) -> int | None:
    resets_at = as_number(fields.get("resets_at"))
    if resets_at is not None:
        return int(resets_at)
    seconds = as_number(fields.get("resets_in_seconds"))  # files of 2025-09-24 to 2025-10-17
    return int(at + seconds) if seconds is not None and at is not None else None
