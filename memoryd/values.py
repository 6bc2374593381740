"""What a value of the settings may be: durations, numbers, folders, names, addresses, each with its limits.

A validator's complaint never repeats the value, which may be a secret in the wrong place.
"""

import difflib
import re
import warnings
from collections.abc import Iterable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from memoryd.redact_patterns import slow_because

AGENTS = ("codex", "claude", "opencode", "gemini", "qwen", "copilot", "generic")
USER_HOME: ContextVar[Path | None] = ContextVar("USER_HOME", default=None)  # what a leading ~ means; set by config.load
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_LONGEST_SECONDS = 3650 * 86_400.0


class Seconds(float):
    """A length of time that has been read already; `text` is how it was written, such as "6h"."""

    text = ""


def read_duration(value: object, *, least: float = 0.0) -> Seconds:
    """Turn "6h", "1.5h", "10d", "90s", "2m" or "500ms" into seconds. Raises ValueError in a person's words."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*(ms|s|m|h|d|w)\s*", value)):
        seconds = Seconds(float(match[1]) * _UNITS[match[2]])
        seconds.text = value.strip()
    elif isinstance(value, Seconds):
        seconds = value
    else:
        raise ValueError('must be a number and its unit (ms, s, m, h, d, w) in quotes, such as "90s", "6h" or "10d"')
    if not least <= seconds <= _LONGEST_SECONDS:
        raise ValueError(f"must be at least {duration_text(least)} and at most {duration_text(_LONGEST_SECONDS)}")
    return seconds


def duration_text(seconds: float) -> str:
    """Write seconds as settings do, in the largest unit up to days that divides them: 21600 is "6h"."""
    for unit in ("d", "h", "m", "s"):
        if seconds >= _UNITS[unit] and seconds % _UNITS[unit] == 0:
            return f"{int(seconds // _UNITS[unit])}{unit}"
    return f"{seconds * 1000:.6g}ms" if seconds else "0s"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; the nearest known one is X", or "" when nothing is known."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.0)
    return f"; the nearest known one is {close[0]}" if close else ""


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _expand(value: object) -> object:
    """Replace a leading ~ by the home of the user whose settings are read."""
    home = USER_HOME.get()
    if isinstance(value, str) and home is not None and (value == "~" or value.startswith("~/")):
        return f"{home}{value[1:]}"
    return value


def _sound(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("must not be empty")
    return value


def _absolute(value: Path) -> Path:
    if not value.is_absolute() or "\0" in str(value):
        raise ValueError("must be an absolute path, or begin with ~/")
    return value


def _pattern(value: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of nested sets, which Python does not have yet
            matches_nothing = re.compile(value).search("") is not None
    except re.error as error:
        raise ValueError(f"is no regular expression, look at its character {(error.pos or 0) + 1}") from None
    except (OverflowError, RecursionError):
        raise ValueError("is no regular expression that can be used: too deep, or a count too large") from None
    if matches_nothing:
        raise ValueError("matches the empty text, so it would redact between all letters")
    if why := slow_because(value):
        raise ValueError(f"could take for ever on some texts: {why}")
    return value


def _word(value: str, *, form: str, called: str) -> str:
    if re.fullmatch(form, value) is None:
        raise ValueError(f"must be {called}")
    return value


def _agent(value: str) -> str:
    if value not in AGENTS:
        raise ValueError(f"is no agent that memoryd knows{nearest(value, AGENTS)}; known are {', '.join(AGENTS)}")
    return value


def _base_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or re.search(r"\s", value):
        raise ValueError("must be an http:// or https:// address")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user name or password; keys come from api_key_env or api_key_file")
    if parts.query or parts.fragment:
        raise ValueError("must not hold a query (?...) or a fragment (#...)")
    return value.rstrip("/")


_AS_WRITTEN = PlainSerializer(duration_text, when_used="json")
_NAMED = partial(_word, form=r"[a-z0-9]+([_-][a-z0-9]+)*", called="a name of lower-case letters, digits, - and _")
_TAGGED = partial(_word, form=r"[A-Za-z][A-Za-z0-9_-]*", called="the name of a tag, without < and >")
_WEIGHED = partial(_word, form=r"[a-z]{0,16}", called='one lower-case word such as "low", or empty')
_EXPORTED = partial(_word, form=r"[A-Z_][A-Z0-9_]*", called="the name of a variable in capitals, never the key itself")

Wait = Annotated[float, BeforeValidator(read_duration), _AS_WRITTEN]
Interval = Annotated[float, BeforeValidator(partial(read_duration, least=1.0)), _AS_WRITTEN]
LeaseTime = Annotated[float, BeforeValidator(partial(read_duration, least=2.0)), _AS_WRITTEN]
Count = Annotated[int, BeforeValidator(_number), Field(ge=1)]
Percent = Annotated[float, BeforeValidator(_number), Field(ge=0, le=100, allow_inf_nan=False)]
Dollars = Annotated[float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False)]
Folder = Annotated[Path, BeforeValidator(_expand), AfterValidator(_absolute)]
Glob = Annotated[str, BeforeValidator(_expand), AfterValidator(_sound)]
Pattern = Annotated[str, AfterValidator(_sound), AfterValidator(_pattern)]
Word = Annotated[str, AfterValidator(_sound)]
Agent = Annotated[str, AfterValidator(_agent)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
Tag = Annotated[str, AfterValidator(_TAGGED)]
Effort = Annotated[str, AfterValidator(_WEIGHED)]
VariableName = Annotated[str, AfterValidator(_EXPORTED)]
ProviderName = Annotated[str, AfterValidator(_NAMED)]
