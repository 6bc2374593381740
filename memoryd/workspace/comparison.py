"""What a run made of the folder, as the checks of acceptance look at it: before, after, and who supports what."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from memoryd.ledger.sayings import Said
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import Bullet, Handbook, Section, Task, TaskGroup, parse_handbook
from memoryd.workspace.headers import Header, headers_of
from memoryd.workspace.layout import MEMORY_FILE, SKILLS, SUMMARY_FILE
from memoryd.workspace.markdown import Problem
from memoryd.workspace.summary import Summary, parse_summary

_EXCERPT: Final = 80


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two states of a folder, parsed. `headers` are those of the rollout summaries of both, the later one winning.

    `persons` are the lines of each file that are a person's; `said` tells, by thread id, who spoke the words of a
    session's preference signals.
    """

    before: Folder
    after: Folder
    removed_threads: frozenset[str]
    old_handbook: Handbook
    handbook: Handbook
    old_summary: Summary
    summary: Summary
    headers: Mapping[str, Header]
    persons: Mapping[str, Collection[str]] = field(default_factory=dict)
    said: Mapping[str, Said] = field(default_factory=dict)

    def person_numbers(self, path: str) -> frozenset[int]:
        """Return the numbers of the lines of the result that are a person's."""
        lines = self.persons.get(path, ())
        if not lines:
            return frozenset()
        return frozenset(n for n, row in enumerate(self.after.text(path).split("\n"), start=1) if row in lines)

    def person_lines(self, path: str) -> list[str]:
        """Return the lines of the result that are a person's."""
        lines = self.persons.get(path, ())
        return [row for row in self.after.text(path).split("\n") if row in lines]

    def is_live(self, path: str) -> bool:
        """Say whether a rollout summary still stands and its session was not removed."""
        return path in self.after.files and self.thread(path) not in self.removed_threads

    def is_fresh(self, path: str) -> bool:
        """Say whether this run brought a rollout summary in or brought a new text of it."""
        return path in self.after.files and self.after.files[path] != self.before.files.get(path)

    def thread(self, path: str) -> str:
        """Return the thread id of a rollout summary, "" when nothing says it."""
        header = self.headers.get(path)
        return header.thread_id if header else ""

    def written(self) -> list[str]:
        """Return the files of the agent's own places that the run added or changed, in path order."""
        return [path for path in sorted(self.after.files) if is_writable(path) and self.is_changed(path)]

    def is_changed(self, path: str) -> bool:
        """Say whether the run added, changed or removed a file."""
        return self.after.files.get(path) != self.before.files.get(path)

    def added_lines(self, path: str) -> list[tuple[int, str]]:
        """Return the lines of a file, with their numbers, that it did not have before (as often as they are new)."""
        stood = Counter(self.before.text(path).split("\n"))
        added = []
        for number, line in enumerate(self.after.text(path).split("\n"), start=1):
            if stood[line] > 0:
                stood[line] -= 1
            elif line.strip():
                added.append((number, line))
        return added


@dataclass(frozen=True, slots=True)
class Statement:
    """A bullet with its place and the rollout summaries that its tasks name."""

    group: TaskGroup
    section: Section
    bullet: Bullet
    files: frozenset[str]

    @property
    def words(self) -> str:
        """Return the text by which two bullets are the same statement: case and white space aside."""
        return " ".join(self.bullet.text.casefold().split())


def compare(
    before: Folder,
    after: Folder,
    removed_threads: Collection[str],
    persons: Mapping[str, Collection[str]] | None = None,
    said: Mapping[str, Said] | None = None,
) -> Comparison:
    """Parse both states once for all checks."""
    return Comparison(
        before=before,
        after=after,
        removed_threads=frozenset(removed_threads),
        old_handbook=parse_handbook(before.text(MEMORY_FILE)),
        handbook=parse_handbook(after.text(MEMORY_FILE)),
        old_summary=parse_summary(before.text(SUMMARY_FILE)),
        summary=parse_summary(after.text(SUMMARY_FILE)),
        headers={**headers_of(before), **headers_of(after)},
        persons=persons or {},
        said=said or {},
    )


def is_writable(path: str) -> bool:
    """Say whether a path is one that the consolidation agent may write."""
    return path in (MEMORY_FILE, SUMMARY_FILE) or path.startswith(f"{SKILLS}/")


def statements(handbook: Handbook) -> Iterator[Statement]:
    """Walk over all bullets of a handbook."""
    for group in handbook.groups:
        named = {task.number: task_files(task) for task in group.tasks}
        for section, bullets in group.sections.items():
            for bullet in bullets:
                files = frozenset(path for number in bullet.task_refs for path in named.get(number, ()))
                yield Statement(group, section, bullet, files)


def task_files(task: Task) -> frozenset[str]:
    """Return the rollout summaries that a task names."""
    return frozenset(row.path for row in task.summary_files)


def handbook_files(handbook: Handbook) -> frozenset[str]:
    """Return the rollout summaries that a handbook names."""
    return frozenset(path for group in handbook.groups for task in group.tasks for path in task_files(task))


def new_problems(
    old_text: str, old_problems: Iterable[Problem], text: str, problems: Iterable[Problem]
) -> list[Problem]:
    """Return the problems that the run brought in: what was wrong with the same line before is nobody's complaint."""
    stood = Counter(_key(old_text.split("\n"), problem) for problem in old_problems)
    lines = text.split("\n")
    brought = []
    for problem in problems:
        key = _key(lines, problem)
        if stood[key] > 0:
            stood[key] -= 1
        else:
            brought.append(problem)
    return brought


def excerpt(text: str) -> str:
    """Return the beginning of a text, on one line, to name it in a complaint."""
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else line[: _EXCERPT - 1].rstrip() + "…"


def _key(lines: list[str], problem: Problem) -> tuple[str, str]:
    return (lines[problem.line - 1].strip() if 0 < problem.line <= len(lines) else "", problem.message)
