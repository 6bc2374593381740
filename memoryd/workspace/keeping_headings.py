"""Task groups and tasks of MEMORY.md as headings with values, and the headings among them that a person wrote.

A run may call what a person named otherwise by its own name again: the same group is the one of the same directory or
sessions, the same task the one of the same sessions. It gets the person's heading back; what is gone gets none.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from memoryd.workspace.comparison import task_files
from memoryd.workspace.handbook import Task, TaskGroup, parse_handbook
from memoryd.workspace.keeping import Keeping, Stack
from memoryd.workspace.outline import Line, Node, render_outline

TASK: Final = re.compile(r"(##[ \t]+Task[ \t]+)\d{1,6}([ \t]*:.*)", re.IGNORECASE)
GROUP: Final = re.compile(r"#[ \t]+Task Group:", re.IGNORECASE)
_WORDS: Final = re.compile(r"##[ \t]+Task[ \t]+\d{1,6}[ \t]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Group:
    """A task group as headings and as values; `tasks` are those headings with their values."""

    node: Node
    value: TaskGroup
    tasks: tuple[tuple[Node, Task], ...]

    @classmethod
    def of(cls, node: Node) -> "Group":
        """Read a group from its heading and what stands below it."""
        value = parse_handbook(render_outline(node)).groups[0]
        nodes = [child for child in node.children if TASK.match(child.heading)]
        return cls(node, value, tuple(zip(nodes, value.tasks, strict=True)))

    @property
    def title(self) -> str:
        """Return what it is called, letter case aside."""
        return self.value.title.casefold()

    @property
    def files(self) -> frozenset[str]:
        """Return the rollout summaries that its tasks name."""
        return frozenset(path for task in self.value.tasks for path in task_files(task))

    def names(self, files: frozenset[str]) -> bool:
        """Say whether a task of it rests on one of these rollout summaries."""
        return not self.files.isdisjoint(files)


def groups_of(root: Node) -> list[Group]:
    """Return the task groups of an outline."""
    return [Group.of(child) for child in root.children if GROUP.match(child.heading)]


def keep_headings(keeping: Keeping, *, may_rename: bool) -> None:
    """Give groups and tasks of a result the headings that a person wrote for them, unless those may be changed."""
    persons = keeping.guarded.persons
    old, new = groups_of(keeping.guarded.outline), groups_of(keeping.root)
    titles = {group.title for group in old}
    for group in (group for group in old if group.node.number in persons):
        if not may_rename and all(one.title != group.title for one in new):
            same = _same_group(group, [one for one in new if one.title not in titles], keeping.guarded.live)
            if same is not None and _give_back(keeping, same.node, group.node.heading, ()):
                keeping.renamed[same.title, same.value.cwd] = group.value.title
                keeping.made.append(same.node)
        keeping.lines.update(one.node.heading for one in groups_of(keeping.root) if one.title == group.title)
    known = {_words(node) for group in old for node, _ in group.tasks}
    own = [(group.node, *pair) for group in old for pair in group.tasks if pair[0].number in persons]
    for above, node, task in own:
        _keep_task(keeping, (above,), node, task_files(task) & keeping.guarded.live, known, may_rename=may_rename)


def _same_group(group: Group, candidates: Iterable[Group], live: frozenset[str]) -> Group | None:
    files = group.files & live
    found = [
        one
        for one in candidates
        if one.names(files) or (one.value.cwd is not None and one.value.cwd == group.value.cwd)
    ]
    return max(found, key=lambda one: len(one.files & files), default=None)


def _keep_task(
    keeping: Keeping, stack: Stack, node: Node, files: frozenset[str], known: set[str], *, may_rename: bool
) -> None:
    tasks = list(_tasks(keeping.root))
    there = [one for one, _ in tasks if _words(one) == _words(node)]
    if there:
        keeping.lines.update(one.heading for one in there)
        return
    candidates = [(len(named & files), one) for one, named in tasks if _words(one) not in known]
    shared, same = max(candidates, key=lambda pair: pair[0], default=(0, node))
    if shared and not may_rename:
        match, number = _WORDS.match(node.heading), _WORDS.match(same.heading)
        assert match is not None
        assert number is not None
        _give_back(keeping, same, number[0] + node.heading[match.end() :], stack)


def _give_back(keeping: Keeping, node: Node, heading: str, stack: Stack) -> bool:
    """Put a heading back; False where a new note speaks of it, and a model that was told of it has changed it again."""
    line = Line.of((heading,))
    if keeping.is_asked_for(line):
        return False
    keeping.miss(line, stack)
    node.heading = heading
    keeping.lines.add(heading)
    return True


def _tasks(root: Node) -> Iterator[tuple[Node, frozenset[str]]]:
    for group in groups_of(root):
        for node, task in group.tasks:
            yield node, task_files(task)


def _words(node: Node) -> str:
    """Return what a task is called, its number and letter case aside."""
    return " ".join(_WORDS.sub("", node.heading).casefold().split())
