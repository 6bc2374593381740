"""What a server's headers say of when to come back, in seconds from now, or nothing."""

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

# A server that asks for more than this is asked again anyway: quotas of a week exist, longer waits are mistakes.
MAX_RETRY_AFTER_SECONDS = 7 * 86_400.0


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the wait that the headers name, within [0, a week], None when they name none that can be understood.

    `retry-after-ms` (milliseconds) is more exact and goes first; `retry-after` is a number of seconds or an HTTP date
    (RFC 9110, section 10.2.3; the old date forms of RFC 850 and asctime too). A date in the past means now. A header
    that stands there twice arrives as one value with a comma; of numbers the longest wait counts.
    """
    milliseconds = _number(_header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return _capped(milliseconds / 1000)
    value = _header(headers, "retry-after")
    seconds = _number(value)
    if seconds is not None:
        return _capped(seconds)
    return _until_date(value, now)


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "").strip()


def _number(text: str) -> float | None:
    """Return a finite number that is not negative, the greatest of several.

    `nan` and `inf`, and digits that make an infinity, would make a sleep that never ends.
    """
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    return max(values) if all(math.isfinite(value) and value >= 0 for value in values) else None


def _until_date(text: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return _capped(moment.timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _capped(seconds: float) -> float:
    return min(MAX_RETRY_AFTER_SECONDS, max(0.0, seconds))
