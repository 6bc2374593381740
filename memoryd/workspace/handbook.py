"""MEMORY.md as values: parsed without ever failing, and rendered in exactly the format of FORMATS.md section 3."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Mark(StrEnum):
    """How well a statement is founded."""

    STATED = "stated"
    VERIFIED = "verified"
    INFERRED = "inferred"


class Section(StrEnum):
    """The consolidated sections of a task group, in the order of the file."""

    PREFERENCES = "User preferences"
    KNOWLEDGE = "Reusable knowledge"
    FAILURES = "Failures and how to do differently"


AD_HOC: Final = "[ad-hoc note]"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not follow the structure; `message` is written for the one who has to mend it."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class SummaryFile:
    """A row of rollout_summary_files: `path` is `rollout_summaries/<stem>.md`, `note` what stands in parentheses."""

    path: str
    note: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """One `## Task <n>: <title>` of a group."""

    number: int
    title: str
    summary_files: tuple[SummaryFile, ...] = ()
    keywords: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Bullet:
    """One statement: `text` is without its references and mark."""

    text: str
    task_refs: tuple[int, ...] = ()
    mark: Mark | None = None
    ad_hoc: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """One `# Task Group:` block; `cwd` None means that it holds everywhere."""

    title: str
    scope: str
    cwd: str | None
    reuse_rule: str
    tasks: tuple[Task, ...] = ()
    sections: Mapping[Section, tuple[Bullet, ...]] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Handbook:
    """The whole file: `preamble` are its first lines, each beginning `> `."""

    groups: tuple[TaskGroup, ...] = ()
    preamble: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_handbook(text: str) -> Handbook:
    """Parse MEMORY.md; never raises, what does not fit is in `problems`."""
    raise NotImplementedError


def render_handbook(handbook: Handbook) -> str:
    """Render MEMORY.md; parsing the result gives the same values, lines and problems aside."""
    raise NotImplementedError
