"""How long nobody used something, in days on which any session was recorded: a holiday makes nothing older."""

import sqlite3
from typing import Final

from memoryd.ledger import queries

_SQL = queries.load("active_days")

DAY_SECONDS: Final = 86_400
EVER: Final = 0.0
"""Nothing is too old: there are not days enough."""


def unused_before(conn: sqlite3.Connection, *, now: float, max_unused: float) -> float:
    """Return the instant before which what was used last has been unused for `max_unused` seconds of active days.

    When sessions are recorded every day that is `now - max_unused`; each day without any puts it a day earlier.
    """
    limit = int(max_unused // DAY_SECONDS) + 2
    rows = conn.execute(_SQL["list_active_days"], {"today": now // DAY_SECONDS, "limit": limit}).fetchall()
    left = max_unused
    for (day,) in rows:
        end = min((day + 1) * DAY_SECONDS, now)
        if left <= end - day * DAY_SECONDS:
            return float(end - left)
        left -= end - day * DAY_SECONDS
    return EVER


def days_since(conn: sqlite3.Connection, instant: float, *, now: float) -> int:
    """Return how many active days began after an instant."""
    parameters = {"since": instant // DAY_SECONDS, "today": now // DAY_SECONDS}
    (count,) = conn.execute(_SQL["count_active_days"], parameters).fetchone()
    return int(count)
