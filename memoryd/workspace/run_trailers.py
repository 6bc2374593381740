"""Numbers out of the trailers of a run: sessions by what became of them, requests, tokens."""

import re
from dataclasses import dataclass
from typing import Final

from memoryd.workspace.history import Entry

_SESSIONS: Final = re.compile(r"(\d+) \((\d+) added, (\d+) changed, (\d+) removed\)")


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """What a change says of itself; None: it does not say."""

    total: int | None = None
    added: int | None = None
    changed: int | None = None
    removed: int | None = None
    requests: int | None = None
    tokens: int | None = None


def of_entry(entry: Entry) -> RunNumbers:
    """Read the numbers of a change; what is no number is not said."""
    found = _SESSIONS.fullmatch(entry.trailers.get("Sessions", ""))
    total, added, changed, removed = (int(number) for number in found.groups()) if found else (None,) * 4
    return RunNumbers(total, added, changed, removed, _number(entry, "Requests"), _number(entry, "Tokens"))


def _number(entry: Entry, name: str) -> int | None:
    value = entry.trailers.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() else None
