"""MEMORY.md as values: parsed without ever failing, and rendered in the form that acceptance asks for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from memoryd.workspace.markdown import Problem, form_problem, is_other_bullet, is_placeholder


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
EVERYWHERE: Final = "any"
"""What `applies_to: cwd=` says when a group holds in every directory."""


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


def render_handbook(handbook: Handbook) -> str:
    """Render MEMORY.md; parsing the result gives the same values, lines and problems aside."""
    blocks = ["\n".join(handbook.preamble)] if handbook.preamble else []
    return "\n\n".join([*blocks, *(_render_group(group) for group in handbook.groups)]) + "\n"


def _render_group(group: TaskGroup) -> str:
    lines = [
        f"# Task Group: {group.title}",
        f"scope: {group.scope}",
        f"applies_to: cwd={group.cwd or EVERYWHERE}; reuse_rule={group.reuse_rule}",
    ]
    for task in group.tasks:
        lines += ["", f"## Task {task.number}: {task.title}", "", "### rollout_summary_files", ""]
        lines += [f"- {row.path} ({row.note})" if row.note else f"- {row.path}" for row in task.summary_files]
        lines += ["", "### keywords", "", f"- {', '.join(task.keywords)}"]
    for section in Section:
        if group.sections.get(section):
            lines += ["", f"## {section}", "", *(f"- {render_bullet(bullet)}" for bullet in group.sections[section])]
    return "\n".join(lines)


def render_bullet(bullet: Bullet) -> str:
    """Render a statement with what it rests on, without the leading dash."""
    if bullet.ad_hoc:
        return f"{bullet.text} {AD_HOC}"
    refs = "".join(f"[Task {number}]" for number in bullet.task_refs)
    mark = f"[{bullet.mark}]" if bullet.mark else ""
    return " ".join(part for part in (bullet.text, refs, mark) if part)


def parse_handbook(text: str) -> Handbook:
    """Parse MEMORY.md; never raises, what does not fit is in `problems`."""
    return _Parser().parse(text)


_GROUP: Final = re.compile(r"#[ \t]+Task Group:(.*)", re.IGNORECASE)
_TASK: Final = re.compile(r"##[ \t]+Task[ \t]+(\d{1,6})[ \t]*:(.*)", re.IGNORECASE)
_FIELD: Final = re.compile(r"(scope|applies_to):(.*)", re.IGNORECASE)
_APPLIES_TO: Final = re.compile(r"\s*cwd=(.*);\s*reuse_rule=(.*)")
_SUMMARY_ROW: Final = re.compile(r"(rollout_summaries/[^/\s()]+\.md)[ \t]*(?:\((.*)\))?")
_REF: Final = re.compile(r"Task[ \t]+(\d{1,6})", re.IGNORECASE)
_MARKS: Final = {mark.value: mark for mark in Mark}
_PART: Final = {"rollout_summary_files": "files", "keywords": "keywords"}
_SECTIONS: Final = {section.casefold(): section for section in Section}
_EVERYWHERE: Final = frozenset({"", "any", "*", "all", "global", "everywhere", "none"})


@dataclass(slots=True)
class _OpenBullet:
    parts: list[str]
    line: int


@dataclass(slots=True)
class _OpenTask:
    number: int
    title: str
    line: int
    files: list[SummaryFile] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    parts: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _OpenGroup:
    title: str
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    tasks: list[_OpenTask] = field(default_factory=list)
    sections: dict[Section, list[_OpenBullet]] = field(default_factory=dict)


class _Parser:
    """One pass over the lines; a heading decides what the lines below it may be."""

    def __init__(self) -> None:
        self.groups: list[_OpenGroup] = []
        self.preamble: list[str] = []
        self.problems: list[Problem] = []
        self.part = ""
        self.section: Section | None = None
        self.number = 0

    def parse(self, text: str) -> Handbook:
        for self.number, raw in enumerate(text.split("\n"), start=1):
            line = raw.rstrip()
            if line:
                self._line(line)
        groups = tuple(self._close(group) for group in self.groups)
        problems = tuple(sorted(self.problems, key=lambda problem: problem.line))
        return Handbook(groups, tuple(self.preamble), problems)

    def _line(self, line: str) -> None:
        if problem := form_problem(line):
            self._complain(problem)
        if is_other_bullet(line):
            return
        if line.startswith("#"):
            self._heading(line)
        elif not self.groups:
            self._before_first_group(line)
        elif self.part:
            self._part_row(line)
        elif self.section is not None:
            self._statement(line)
        else:
            self._group_field(line)

    def _complain(self, message: str, line: int | None = None) -> None:
        self.problems.append(Problem(self.number if line is None else line, message))

    def _heading(self, line: str) -> None:
        group, task = _GROUP.fullmatch(line), _TASK.fullmatch(line)
        name = line.lstrip("#").strip()
        if group:
            self.groups.append(_OpenGroup(group[1].strip(), self.number))
            self.part, self.section = "", None
        elif not self.groups:
            self._complain("a heading before the first `# Task Group:`; only lines beginning `> ` may stand there")
        elif task:
            self._open_task(int(task[1]), task[2].strip())
        elif line.startswith("## ") and name.casefold() in _SECTIONS:
            self._open_section(_SECTIONS[name.casefold()])
        elif line.startswith("### ") and self.groups[-1].tasks and name in _PART:
            self._open_part(_PART[name], name)
        else:
            self._complain(f"an unknown heading `{line[:80]}`; see the structure of MEMORY.md for those that exist")

    def _open_task(self, number: int, title: str) -> None:
        group = self.groups[-1]
        if group.sections:
            self._complain("a task below the consolidated sections; the tasks of a group stand before them")
        expected = len(group.tasks) + 1
        if number != expected:
            self._complain(f"task number {number} where {expected} is due; tasks of a group are numbered 1, 2, 3")
        group.tasks.append(_OpenTask(number, title, self.number))
        self.part, self.section = "none", None

    def _open_section(self, section: Section) -> None:
        if section in self.groups[-1].sections:
            self._complain(f"a second `## {section}` in this group; put its bullets under the first")
        self.groups[-1].sections.setdefault(section, [])
        self.part, self.section = "", section

    def _open_part(self, part: str, name: str) -> None:
        if self.section is not None:
            self._complain(f"`### {name}` below a consolidated section; it belongs to a task")
        if part in self.groups[-1].tasks[-1].parts:
            self._complain(f"a second `### {name}` in this task")
        self.groups[-1].tasks[-1].parts.add(part)
        self.part, self.section = part, None

    def _before_first_group(self, line: str) -> None:
        if line == ">" or line.startswith("> "):
            self.preamble.append(line)
        else:
            self._complain("text before the first `# Task Group:`; only lines beginning `> ` may stand there")

    def _group_field(self, line: str) -> None:
        match = _FIELD.fullmatch(line)
        if match is None:
            self._complain("a line below `# Task Group:` that is neither `scope:` nor `applies_to:`")
        else:
            self.groups[-1].fields.setdefault(match[1].lower(), match[2].strip())

    def _part_row(self, line: str) -> None:
        task, row = self.groups[-1].tasks[-1], line.strip()
        if self.part == "none":
            self._complain("a line of a task outside `### rollout_summary_files` and `### keywords`")
        elif not row.startswith("- "):
            self._complain("a row that does not begin with `- `")
        elif self.part == "keywords":
            task.keywords += [word for word in (part.strip() for part in row[2:].split(",")) if word]
        elif match := _SUMMARY_ROW.fullmatch(row[2:].strip()):
            task.files.append(SummaryFile(match[1], (match[2] or "").strip(), self.number))
        else:
            self._complain("a row that is not `- rollout_summaries/<file>.md (...)`")

    def _statement(self, line: str) -> None:
        assert self.section is not None
        bullets = self.groups[-1].sections[self.section]
        if line.lstrip().startswith("- "):
            bullets.append(_OpenBullet([line.lstrip()[2:].strip()], self.number))
        elif line[0] in " \t" and bullets:
            bullets[-1].parts.append(line.strip())
        else:
            self._complain("a line of a consolidated section that is no `- ` bullet")

    def _close(self, group: _OpenGroup) -> TaskGroup:
        numbers = {task.number for task in group.tasks}
        cwd, reuse_rule = self._applies_to(group)
        self._judge_group(group)
        return TaskGroup(
            title=group.title,
            scope=group.fields.get("scope", ""),
            cwd=None if cwd.casefold() in _EVERYWHERE else cwd,
            reuse_rule=reuse_rule,
            tasks=tuple(self._close_task(task) for task in group.tasks),
            sections={
                section: tuple(self._close_bullet(bullet, numbers) for bullet in group.sections[section])
                for section in Section
                if section in group.sections
            },
            line=group.line,
        )

    def _judge_group(self, group: _OpenGroup) -> None:
        if is_placeholder(group.title):
            self._complain("a task group without a title of its own", group.line)
        if not group.fields.get("scope"):
            self._complain("a task group without its `scope:` line", group.line)
        statements = [bullet for bullets in group.sections.values() for bullet in bullets]
        if not group.tasks and not (statements and all(bullet.parts[-1].endswith(AD_HOC) for bullet in statements)):
            self._complain("a task group without a `## Task 1:`, which only notes can do without", group.line)

    def _applies_to(self, group: _OpenGroup) -> tuple[str, str]:
        value = group.fields.get("applies_to", "")
        match = _APPLIES_TO.fullmatch(value)
        if match is None:
            self._complain("a task group without its `applies_to: cwd=...; reuse_rule=...` line", group.line)
            return value.removeprefix("cwd=").partition(";")[0].strip(), ""
        return match[1].strip(), match[2].strip()

    def _close_task(self, task: _OpenTask) -> Task:
        if is_placeholder(task.title):
            self._complain("a task without a title of its own", task.line)
        if not task.files:
            self._complain("a task that names no rollout summary under `### rollout_summary_files`", task.line)
        if not task.keywords:
            self._complain("a task without keywords under `### keywords`", task.line)
        return Task(task.number, task.title, tuple(task.files), tuple(task.keywords), task.line)

    def _close_bullet(self, opened: _OpenBullet, numbers: set[int]) -> Bullet:
        bullet = parse_bullet(" ".join(opened.parts), opened.line)
        if not bullet.ad_hoc and (bullet.mark is None or not bullet.task_refs):
            self._complain(
                "a bullet that does not end with its tasks and one mark, as in `[Task 1][Task 2] [stated]` "
                "(or [verified], [inferred]), or with [ad-hoc note]",
                bullet.line,
            )
        if not bullet.text:
            self._complain("a bullet without a text", bullet.line)
        for number in bullet.task_refs:
            if number not in numbers:
                self._complain(f"a bullet that cites [Task {number}], which its group does not have", bullet.line)
        return bullet


def parse_bullet(text: str, line: int = 0) -> Bullet:
    """Split a statement from the task references and the mark at its end; what is missing stays empty."""
    if text.endswith(AD_HOC):
        return Bullet(text.removesuffix(AD_HOC).rstrip(), ad_hoc=True, line=line)
    inner, end = _last_bracket(text, len(text))
    mark = _MARKS.get(inner.lower())
    end = end if mark else len(text)
    refs: list[int] = []
    inner, before = _last_bracket(text, end)
    while match := _REF.fullmatch(inner):
        refs.append(int(match[1]))
        end = before
        inner, before = _last_bracket(text, end)
    return Bullet(text[:end].rstrip(), tuple(dict.fromkeys(reversed(refs))), mark, line=line)


def _last_bracket(text: str, end: int) -> tuple[str, int]:
    """Return what `[...]` ends `text[:end]`, trailing blanks aside, and where it begins; "" when there is none."""
    while end and text[end - 1] in " \t":
        end -= 1
    start = text.rfind("[", max(0, end - 24), end)
    if not end or text[end - 1] != "]" or start < 0:
        return "", end
    return text[start + 1 : end - 1], start
