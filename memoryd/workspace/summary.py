"""memory_summary.md as values: parsed without ever failing, and rendered in exactly the format of FORMATS.md section 3."""

from dataclasses import dataclass

from memoryd.workspace.handbook import Problem


@dataclass(frozen=True, slots=True)
class Topic:
    """A `- <title>: <keywords>` row with its `desc:` and, for recent ones, its `learnings:`."""

    title: str
    keywords: tuple[str, ...] = ()
    desc: str = ""
    learnings: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    """The topics of one `#### <YYYY-MM-DD>`."""

    date: str
    topics: tuple[Topic, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Scope:
    """A `### <cwd or project scope>` with its recent days, newest first."""

    name: str
    days: tuple[Day, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class OlderScope:
    """A `#### <scope>` under `### Older Memory Topics`."""

    name: str
    topics: tuple[Topic, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole file; profile, preferences and tips are the lines of their sections, blank ones left out."""

    profile: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()
    scopes: tuple[Scope, ...] = ()
    older: tuple[OlderScope, ...] = ()
    problems: tuple[Problem, ...] = ()


def summary_budget(max_tokens: int) -> int:
    """Return how many bytes memory_summary.md may have: 4 x recall.max_tokens tokens, a token being 4 bytes."""
    return 4 * max_tokens * 4


def parse_summary(text: str) -> Summary:
    """Parse memory_summary.md; never raises, what does not fit is in `problems`."""
    raise NotImplementedError


def render_summary(summary: Summary) -> str:
    """Render memory_summary.md; lines of preferences and tips get their `- ` here."""
    raise NotImplementedError
