"""Scripts of sessions: who says what when, as one JSON object a line, with times relative to their own start.

The first line tells the session, every other line one row:

    {"starts": "-3d2h", "cwd": "...", "branch": "...", "source": "cli"}
    {"at": "0s", "human": "..."}                          a person's message; begins a turn
    {"at": "5s", "says": "..."}                           the agent, while it works
    {"at": "9s", "runs": "pytest -q", "exit": 1, "out": "..."}
    {"at": "20s", "patches": "*** Begin Patch ..."}
    {"at": "40s", "answers": "..."}                       the agent's final answer; ends the turn

`{{secret:NAME}}` in a text becomes a made-up token when it is rendered, so that no file here looks like a leak.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_DURATION: Final = re.compile(r"(?P<sign>[-+]?)(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?")
_UNIT_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SECRET: Final = re.compile(r"\{\{secret:([a-z0-9-]+)\}\}")
_ALPHANUMERIC: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TOKEN_PREFIX: Final = "gh" + "p_"
_TOKEN_CHARS: Final = 36

ROW_KINDS: Final = ("human", "says", "runs", "patches", "answers")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a script; `at` is seconds after the session's start, `exit_code` and `output` are a command's."""

    at: float
    kind: str
    text: str
    exit_code: int = 0
    output: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """A session to be recorded. `starts` is seconds relative to the moment of installation, negative for the past."""

    name: str
    starts: float
    cwd: str
    rows: tuple[Row, ...]
    branch: str = "main"
    source: str = "cli"
    subagent_of: str | None = None
    memory_mode: str | None = None
    agents_md: str = ""


def seconds_of(duration: str) -> float:
    """Read `-3d2h`, `+40s`, `1h5m` as seconds. Raises ValueError when it is none of these."""
    found = _DURATION.fullmatch(duration)
    if found is None or not any(found[unit] for unit in _UNIT_SECONDS):
        raise ValueError(f"{duration!r} is no duration such as -3d2h or 40s")
    total = sum(int(found[unit] or 0) * seconds for unit, seconds in _UNIT_SECONDS.items())
    return float(-total if found["sign"] == "-" else total)


def parse_script(name: str, text: str) -> Script:
    """Read a script. Raises ValueError when a line is not of the form above."""
    head, *lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    return Script(
        name=name,
        starts=seconds_of(head.pop("starts")),
        rows=tuple(_row(line) for line in lines),
        **head,
    )


def with_secrets(text: str) -> str:
    """Put made-up tokens where a script names secrets; the same name gives the same token."""
    return _SECRET.sub(lambda found: made_up_token(found[1]), text)


def made_up_token(name: str) -> str:
    """Return a token that has the shape of a GitHub token and opens nothing."""
    digest = hashlib.sha256(f"memoryd demo {name}".encode()).digest() * 2
    return _TOKEN_PREFIX + "".join(_ALPHANUMERIC[byte % len(_ALPHANUMERIC)] for byte in digest[:_TOKEN_CHARS])


def _row(line: Mapping[str, object]) -> Row:
    kinds = [kind for kind in ROW_KINDS if kind in line]
    if len(kinds) != 1:
        raise ValueError(f"a row is exactly one of {', '.join(ROW_KINDS)}, not {sorted(line)}")
    code = line.get("exit", 0)
    return Row(
        at=seconds_of(str(line["at"])),
        kind=kinds[0],
        text=with_secrets(str(line[kinds[0]])),
        exit_code=code if isinstance(code, int) else 1,
        output=with_secrets(str(line.get("out", ""))),
    )
