"""memory_summary.md as values: parsed without ever failing, and rendered in the form that acceptance asks for."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from memoryd.workspace.markdown import Problem, form_problem, is_other_bullet

VERSION_LINE: Final = "v1"
OLDER_TOPICS: Final = "Older Memory Topics"
MAX_PROFILE_WORDS: Final = 350
_MAX_COLONS: Final = 16
"""How many `: ` of a row are looked at for the end of its title."""


class Part(StrEnum):
    """The sections of the file, in their order."""

    PROFILE = "User Profile"
    PREFERENCES = "User preferences"
    TIPS = "General Tips"
    INDEX = "What's in Memory"


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
    rest: tuple[str, ...] = ()
    """Lines above the first section, which are a person's own."""
    problems: tuple[Problem, ...] = ()


def summary_budget(max_tokens: int) -> int:
    """Return how many bytes memory_summary.md may have: 4 x recall.max_tokens tokens, a token being 4 bytes."""
    return 4 * max_tokens * 4


def profile_words(summary: Summary) -> int:
    """Count the words of the user profile, of which there may be MAX_PROFILE_WORDS."""
    return sum(len(line.split()) for line in summary.profile)


@dataclass(frozen=True, slots=True)
class Index:
    """The names by which task groups are found, letter case folded."""

    topics: frozenset[str]
    scopes: frozenset[str]

    def reaches(self, *, title: str, cwd: str | None) -> bool:
        """Say whether a task group can be found: a topic is its title, or a scope is its cwd."""
        return title.casefold() in self.topics or (cwd is not None and cwd.casefold() in self.scopes)


def index_of(summary: Summary) -> Index:
    """Gather the topics and scopes of a summary."""
    recent = (topic for scope in summary.scopes for day in scope.days for topic in day.topics)
    older = (topic for scope in summary.older for topic in scope.topics)
    names = [scope.name for scope in summary.scopes] + [scope.name for scope in summary.older]
    return Index(
        topics=frozenset(name for topic in (*recent, *older) for name in _readings(topic)),
        scopes=frozenset(name.casefold() for name in names),
    )


def _readings(topic: Topic) -> Iterable[str]:
    """A title may hold `: ` itself: each way to divide a row into title and keywords is a name for it."""
    row = f"{topic.title}: {', '.join(topic.keywords)}".casefold()
    parts = row.split(": ", _MAX_COLONS)
    return (": ".join(parts[:length]) for length in range(1, len(parts)))


def render_summary(summary: Summary) -> str:
    """Render memory_summary.md; lines of preferences and tips get their `- ` here."""
    lines = [VERSION_LINE, "", f"## {Part.PROFILE}", "", *summary.profile]
    lines += ["", f"## {Part.PREFERENCES}", "", *(f"- {row}" for row in summary.preferences)]
    lines += ["", f"## {Part.TIPS}", "", *(f"- {row}" for row in summary.tips), "", f"## {Part.INDEX}"]
    for scope in summary.scopes:
        lines += ["", f"### {scope.name}"]
        for day in scope.days:
            lines += ["", f"#### {day.date}", "", *(row for topic in day.topics for row in topic_rows(topic))]
    lines += ["", f"### {OLDER_TOPICS}"]
    for older in summary.older:
        lines += ["", f"#### {older.name}", "", *(row for topic in older.topics for row in topic_rows(topic))]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def topic_rows(topic: Topic) -> list[str]:
    """Render a topic: its own row first, then what is told of it."""
    rows = [f"- {topic.title}: {', '.join(topic.keywords)}".rstrip()]
    rows += [f"  - desc: {topic.desc}"] if topic.desc else []
    return rows + ([f"  - learnings: {topic.learnings}"] if topic.learnings else [])


def parse_summary(text: str) -> Summary:
    """Parse memory_summary.md; never raises, what does not fit is in `problems`."""
    return _Parser().parse(text)


_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_PARTS: Final = {part.casefold(): part for part in Part}
_DETAIL: Final = re.compile(r"- (desc|learnings):(.*)", re.IGNORECASE)


@dataclass(slots=True)
class _OpenTopic:
    row: str
    line: int
    details: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class _OpenHeading:
    name: str
    line: int
    topics: list[_OpenTopic] = field(default_factory=list)
    days: list["_OpenHeading"] = field(default_factory=list)


class _Parser:
    """One pass over the lines; a heading decides what the lines below it may be."""

    def __init__(self) -> None:
        self.texts: dict[Part, list[str]] = {}
        self.scopes: list[_OpenHeading] = []
        self.older: list[_OpenHeading] = []
        self.rest: list[str] = []
        self.problems: list[Problem] = []
        self.part: Part | None = None
        self.in_older = False
        self.number = 0

    def parse(self, text: str) -> Summary:
        lines = text.split("\n")
        if lines[0] != VERSION_LINE:
            self._complain("the first line is not exactly `v1`", 1)
        for self.number, raw in enumerate(lines, start=1):
            line = raw.rstrip()
            if line and not (self.number == 1 and line == VERSION_LINE):
                self._line(line)
        for part in Part:
            if part not in self.texts:
                self._complain(f"no section `## {part}`", 1)
        return Summary(
            profile=tuple(self.texts.get(Part.PROFILE, ())),
            preferences=tuple(_rows(self.texts.get(Part.PREFERENCES, ()))),
            tips=tuple(_rows(self.texts.get(Part.TIPS, ()))),
            scopes=tuple(
                Scope(scope.name, tuple(_day(day) for day in scope.days), scope.line) for scope in self.scopes
            ),
            older=tuple(OlderScope(scope.name, _topics(scope), scope.line) for scope in self.older),
            rest=tuple(self.rest),
            problems=tuple(sorted(self.problems, key=lambda problem: problem.line)),
        )

    def _complain(self, message: str, line: int | None = None) -> None:
        self.problems.append(Problem(self.number if line is None else line, message))

    def _line(self, line: str) -> None:
        if problem := form_problem(line):
            self._complain(problem)
        if line.startswith("#"):
            self._heading(line)
        elif self.part is None:
            self._complain("text above the first section")
            self.rest.append(line)
        elif self.part is Part.INDEX:
            self._index_row(line)
        else:
            self._text(self.part, line)

    def _text(self, part: Part, line: str) -> None:
        if (
            part is not Part.PROFILE
            and not is_other_bullet(line)
            and not line.lstrip().startswith("- ")
            and not (self.texts[part] and line[0] in " \t")
        ):
            self._complain(f"a line of `## {part}` that is no `- ` bullet")
        self.texts[part].append(line)

    def _heading(self, line: str) -> None:
        level, name = len(line) - len(line.lstrip("#")), line.lstrip("#").strip()
        if level == 2 and name.casefold() in _PARTS:
            self._open_part(_PARTS[name.casefold()])
        elif level == 3 and self.part is Part.INDEX:
            self._open_scope(name)
        elif level == 4 and self.part is Part.INDEX:
            self._open_day_or_older(name)
        else:
            self._complain(f"an unknown heading `{line[:80]}`; see the structure of memory_summary.md")

    def _open_part(self, part: Part) -> None:
        if part in self.texts:
            self._complain(f"a second `## {part}`")
        elif self.texts and list(Part).index(max(self.texts, key=list(Part).index)) > list(Part).index(part):
            self._complain(f"`## {part}` out of its place; the order is {', '.join(Part)}")
        self.texts.setdefault(part, [])
        self.part, self.in_older = part, False

    def _open_scope(self, name: str) -> None:
        if self.in_older:
            self._complain(f"a scope below `### {OLDER_TOPICS}`, which comes last")
        self.in_older = name.casefold() == OLDER_TOPICS.casefold()
        if not self.in_older:
            self.scopes.append(_OpenHeading(name, self.number))

    def _open_day_or_older(self, name: str) -> None:
        if self.in_older:
            self.older.append(_OpenHeading(name, self.number))
        elif not self.scopes:
            self._complain("a day above the first `### <scope>`")
        else:
            self._open_day(self.scopes[-1], name)

    def _open_day(self, scope: _OpenHeading, name: str) -> None:
        if not _DATE.fullmatch(name):
            self._complain("a `####` heading below a scope that is no date like 2026-01-31")
        elif scope.days and scope.days[-1].name < name:
            self._complain("a day above a later one; the newest comes first")
        scope.days.append(_OpenHeading(name, self.number))

    def _index_row(self, line: str) -> None:
        place, row = self._place(), line.strip()
        if place is None:
            self._complain("a topic that stands below no day and no older scope")
        elif line.startswith("- "):
            place.topics.append(_OpenTopic(row[2:].strip(), self.number))
        elif place.topics and line[0] in " \t":
            self._detail(place.topics[-1], row)
        elif not is_other_bullet(line):
            self._complain("a line of the index that is neither a `- <topic>: <keywords>` nor indented below one")

    def _place(self) -> _OpenHeading | None:
        if self.in_older:
            return self.older[-1] if self.older else None
        return self.scopes[-1].days[-1] if self.scopes and self.scopes[-1].days else None

    def _detail(self, topic: _OpenTopic, row: str) -> None:
        if match := _DETAIL.fullmatch(row):
            topic.details.setdefault(match[1].lower(), []).append(match[2].strip())
        elif topic.details:
            list(topic.details.values())[-1].append(row)
        else:
            self._complain("a line below a topic that is neither `- desc:` nor `- learnings:`")


def _rows(lines: Iterable[str]) -> list[str]:
    """Join the lines of bullets; what is no bullet is a row of its own."""
    rows: list[list[str]] = []
    for line in lines:
        if rows and line[0] in " \t" and not line.lstrip().startswith("- "):
            rows[-1].append(line.strip())
        else:
            rows.append([line.strip().removeprefix("- ").strip()])
    return [" ".join(row) for row in rows]


def _day(day: _OpenHeading) -> Day:
    return Day(day.name, _topics(day), day.line)


def _topics(heading: _OpenHeading) -> tuple[Topic, ...]:
    return tuple(_topic(opened) for opened in heading.topics)


def _topic(opened: _OpenTopic) -> Topic:
    title, _, words = opened.row.partition(": ")
    desc, learnings = (" ".join(opened.details.get(name, ())) for name in ("desc", "learnings"))
    keywords = tuple(word for word in (part.strip() for part in words.split(",")) if word)
    return Topic(title.strip().removesuffix(":"), keywords, desc, learnings, opened.line)
