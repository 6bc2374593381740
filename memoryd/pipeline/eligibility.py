"""Which sessions may become memories, and which may do so now: pure rules, each with a name that `explain` prints."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from glob import escape
from math import inf
from pathlib import PurePath

from memoryd.config import Discover, Sources
from memoryd.sources.items import MemoryMode, SessionKind


class Exclusion(StrEnum):
    """Why a session is left out for good, until the session or the settings change."""

    SUBAGENT = "subagent"
    MEMORY_RUN = "memory_run"
    NONINTERACTIVE = "noninteractive"
    EPHEMERAL = "ephemeral"
    MEMORY_DISABLED = "memory_disabled"
    POLLUTED = "polluted"
    EXCLUDED_CWD = "excluded_cwd"
    HOME_DIRECTORY = "home_directory"
    MACHINE_PROMPTS = "machine_prompts"
    OWN_RUN = "own_run"
    FORGOTTEN = "forgotten"


_WILD = re.compile(r"[*?\[]")
UNREADABLE = "unreadable"
"""Files that are no session, counted among the excluded; they have no thread id and so no row of their own."""


class ReadingFound(StrEnum):
    """Why reading an eligible session gave nothing to ask about: until its file has changed, or is back."""

    NO_HUMAN_MESSAGE = "no_human_message"
    NO_ITEMS = "no_items"
    VANISHED = "vanished"


class Waiting(StrEnum):
    """Why an eligible session is not extracted now."""

    TOO_FRESH = "too_fresh"
    TOO_OLD = "too_old"
    CONSENT = "consent"


MEANING: dict[str, str] = {
    Exclusion.SUBAGENT: "the session of a sub-agent: what matters of it stands in its parent's",
    Exclusion.MEMORY_RUN: "the agent's own memory run",
    Exclusion.NONINTERACTIVE: "a non-interactive or SDK run (sources.include_noninteractive = false)",
    Exclusion.EPHEMERAL: "an ephemeral session",
    Exclusion.MEMORY_DISABLED: "memory is switched off for this session",
    Exclusion.POLLUTED: "the session used external context, and is marked polluted",
    Exclusion.EXCLUDED_CWD: "its directory matches sources.exclude_cwd",
    Exclusion.HOME_DIRECTORY: "it ran in the home folder itself, or in /, which is no project (sources.include_home)",
    Exclusion.MACHINE_PROMPTS: "its prompts come from a machine: its originator matches sources.exclude_originators",
    Exclusion.OWN_RUN: "a run inside MEMORYD_HOME: memoryd does not learn from itself",
    UNREADABLE: "the file cannot be read as a session",
    ReadingFound.NO_HUMAN_MESSAGE: "it holds no word of a person, so nobody was asked about it",
    ReadingFound.NO_ITEMS: "there were records and none was understood: an error, not nothing to remember",
    ReadingFound.VANISHED: "its file was gone when it was to be read; it is read when the file is back",
    Exclusion.FORGOTTEN: "you asked to forget it",
    Waiting.TOO_FRESH: "its last record is younger than discover.min_idle",
    Waiting.TOO_OLD: "its last record is older than discover.max_age, or too old to be kept (consolidate.max_unused)",
    Waiting.CONSENT: "recorded before memoryd's first start; history is sent only with your consent (limits.backfill)",
}


@dataclass(frozen=True, slots=True)
class Window:
    """The instants (epoch seconds) that decide when a session may be extracted, and what holds for history.

    `backfill` is "ask" (history waits for consent), "recent" (history within max_age) or "all" (max_age does not hold
    for history). History is every session whose last record is older than `first_start_at`. Nothing older than
    `useful_from` is ever due: no consolidation would select what it taught, so it would be paid for in vain.
    """

    idle_before: float
    not_before: float
    useful_from: float
    first_start_at: int
    backfill: str

    @property
    def oldest(self) -> float:
        """The earliest last record that can be due: the bound of the query."""
        match self.backfill:
            case "all":
                return self.useful_from
            case "ask":
                return max(self.not_before, self.first_start_at, self.useful_from)
            case _:
                return max(self.not_before, self.useful_from)


@dataclass(frozen=True, slots=True)
class Traits:
    """What the rules look at: who drove the session, where, and whether it may be remembered.

    `memory_mode` is the person's own choice where there is one, which wins over the agent's; `is_wanted`: the person
    has said that this very session be remembered.
    """

    kind: str
    cwd: str | None
    memory_mode: str
    ephemeral: bool = False
    originator: str | None = None
    is_wanted: bool = False


def exclusion(
    traits: Traits,
    *,
    sources: Sources,
    memoryd_home: PurePath,
    user_homes: Sequence[PurePath] = (),
    as_it_lies: Callable[[str], str] = str,
) -> Exclusion | None:
    """Return the first rule that leaves this session out, or None.

    A person's wish for a session is above all rules but those that keep memories from learning from themselves. An
    agent may name its directory, and a person the folder to leave out, by a link or as it lies: `as_it_lies` follows
    the links in an absolute path, and any of the names counts.
    """
    cwds = _names_of(traits.cwd, as_it_lies)
    globs = [name for glob in sources.exclude_cwd for name in _names_of_glob(glob, as_it_lies)]
    own_homes = {memoryd_home, PurePath(as_it_lies(str(memoryd_home)))}
    loops: Sequence[tuple[bool, Exclusion]] = (
        (traits.kind == SessionKind.MEMORY_RUN, Exclusion.MEMORY_RUN),
        (any(PurePath(cwd).is_relative_to(home) for cwd in cwds for home in own_homes), Exclusion.OWN_RUN),
    )
    rules: Sequence[tuple[bool, Exclusion]] = (
        (traits.kind == SessionKind.SUBAGENT, Exclusion.SUBAGENT),
        (traits.kind == SessionKind.NONINTERACTIVE and not sources.include_noninteractive, Exclusion.NONINTERACTIVE),
        (traits.ephemeral, Exclusion.EPHEMERAL),
        (traits.memory_mode == MemoryMode.DISABLED, Exclusion.MEMORY_DISABLED),
        (traits.memory_mode == MemoryMode.POLLUTED, Exclusion.POLLUTED),
        (any(matches_any(cwd, globs) for cwd in cwds), Exclusion.EXCLUDED_CWD),
        (not sources.include_home and any(_is_home(cwd, user_homes) for cwd in cwds), Exclusion.HOME_DIRECTORY),
        (_matches(traits.originator, sources.exclude_originators), Exclusion.MACHINE_PROMPTS),
    )
    return next((reason for holds, reason in (*loops, *(() if traits.is_wanted else rules)) if holds), None)


def window(
    *,
    now: float,
    discover: Discover,
    useful_from: float,
    first_start_at: int,
    backfill: str,
    ignore_idle: bool = False,
) -> Window:
    """Work out from the settings when a session may be extracted; `ignore_idle` is `sync --now`.

    With it, what a clock that was ahead has dated in the future is ready too. `useful_from`: what was recorded before
    it would be too old to be kept (memoryd.ledger.active_days).
    """
    return Window(
        idle_before=inf if ignore_idle else now - discover.min_idle,
        not_before=now - discover.max_age,
        useful_from=useful_from,
        first_start_at=first_start_at,
        backfill=backfill,
    )


def waiting(updated_at: float, when: Window) -> Waiting | None:
    """Say why a session whose last record is at `updated_at` is not extracted now, or None when it may be."""
    is_history = updated_at < when.first_start_at
    whole_history = is_history and when.backfill == "all"
    if updated_at < when.useful_from or (updated_at < when.not_before and not whole_history):
        return Waiting.TOO_OLD
    if is_history and when.backfill == "ask":
        return Waiting.CONSENT
    if updated_at > when.idle_before:
        return Waiting.TOO_FRESH
    return None


def matches_any(cwd: str | None, globs: Sequence[str]) -> bool:
    """Tell whether a directory, or a parent of it, matches one of the globs; `~` stands expanded in them already."""
    if cwd is None or not globs:
        return False
    path = PurePath(cwd)
    candidates = [str(path), *(str(parent) for parent in path.parents)]
    return any(fnmatchcase(candidate, glob.rstrip("/") or "/") for candidate in candidates for glob in globs)


def _names_of(path: str | None, as_it_lies: Callable[[str], str]) -> tuple[str, ...]:
    """Return a path as it is given and as it lies; a path of another system lies nowhere here."""
    if path is None:
        return ()
    return (path, as_it_lies(path)) if path.startswith("/") else (path,)


def _names_of_glob(glob: str, as_it_lies: Callable[[str], str]) -> tuple[str, ...]:
    """Return a glob as it is given, and with what stands before its first wildcard as that lies."""
    parts = PurePath(glob).parts
    fixed = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))
    _, *lies = _names_of(str(PurePath(*parts[:fixed])), as_it_lies)
    return (glob, *(str(PurePath(escape(path), *parts[fixed:])) for path in lies))


def _matches(name: str | None, globs: Sequence[str]) -> bool:
    return name is not None and any(fnmatchcase(name.lower(), glob.lower()) for glob in globs)


def _is_home(cwd: str, user_homes: Sequence[PurePath]) -> bool:
    """Tell whether a session ran in nobody's project: in the home folder, or at the root of the file system."""
    return PurePath(cwd) in {PurePath("/"), *user_homes}
