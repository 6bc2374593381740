"""MEMORY.md without what rested on evidence that is gone: rows, tasks, statements and groups, nothing else touched."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from memoryd.workspace.comparison import task_files
from memoryd.workspace.forgotten_words import Words
from memoryd.workspace.handbook import Bullet, Section, Task, TaskGroup, parse_bullet, parse_handbook, render_bullet
from memoryd.workspace.outline import Line, Node, read_outline, render_outline, walk

_GROUP: Final = re.compile(r"#[ \t]+Task Group:", re.IGNORECASE)
_TASK: Final = re.compile(r"(##[ \t]+Task[ \t]+)(\d{1,6})([ \t]*:)(.*)", re.IGNORECASE)
_FIELD: Final = re.compile(r"(scope|applies_to):", re.IGNORECASE)
_SECTIONS: Final = frozenset(section.casefold() for section in Section)
_KEYWORDS: Final = "keywords"


@dataclass(frozen=True, slots=True)
class Gone:
    """What is gone, and how far that reaches.

    `files` are rollout summaries, `lines` the numbers of statements that go in any case. With `purge` a task that names
    one of the files goes whole, with all that cites it; `persons` are the lines that are a person's.
    """

    files: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()
    purge: bool = False
    persons: frozenset[str] = frozenset()


@dataclass(slots=True)
class CleanHandbook:
    """A handbook put right. `removed` are the words that left it, a statement or task each.

    `titles` and `cwds` (letter case folded) are those of groups that left; `orphans` the rollout summaries that stand,
    and whose task went because it named another one. `suspects` are statements whose task lost one of its sessions,
    `guessed` those that went for their words alone.
    """

    text: str
    removed: list[str] = field(default_factory=list)
    titles: set[str] = field(default_factory=set)
    cwds: set[str] = field(default_factory=set)
    orphans: set[str] = field(default_factory=set)
    suspects: set[str] = field(default_factory=set)
    guessed: list[str] = field(default_factory=list)
    has_changed: bool = False


def clean_handbook(text: str, gone: Gone) -> CleanHandbook:
    """Take out what no evidence supports any more; a text in which nothing is gone comes back to the byte."""
    root = read_outline(text)
    clean = CleanHandbook(text)
    for node in _groups(root):
        _clean_group(root, node, gone, clean)
    if clean.removed or clean.has_changed:
        clean.text = render_outline(root)
    return clean


def without_words(text: str, words: Words, gone: Gone, *, only: Callable[[Line], bool], rewords: bool) -> CleanHandbook:
    """Take out the statements among `only` that rest on forgotten words.

    `rewords`: such words leave titles and keywords as well.
    """
    root = read_outline(text)
    clean = CleanHandbook(text)
    for node in _groups(root):
        value = _value_of(node)
        doomed = [
            (section, line)
            for section in _sections(node)
            for line in section.statements
            if only(line) and not _is_persons(line, gone) and words.are_in(line.key)
        ]
        for section, line in doomed:
            clean.removed.append(line.key)
            section.remove([line])
        if rewords:
            _reword(node, value, words, gone, clean)
        _drop_if_empty(root, node, value, clean)
    if clean.removed or clean.has_changed:
        clean.text = render_outline(root)
    return clean


def _clean_group(root: Node, node: Node, gone: Gone, clean: CleanHandbook) -> None:
    value = _value_of(node)
    tasks = _tasks(node, value)
    doomed: dict[int, bool] = {}
    shrunk: set[int] = set()
    for heading, task in tasks:
        files = task_files(task)
        hit = files & gone.files
        if not hit:
            continue
        if gone.purge or not files - gone.files:
            doomed[task.number] = bool(files - gone.files)
            clean.orphans |= files - gone.files
            clean.removed.append(" ".join([task.title, *task.keywords]))
            node.children.remove(heading)
            node.is_touched = True
        else:
            shrunk.add(task.number)
            clean.has_changed = True
            for part in heading.children:
                part.remove([line for line in part.statements if line.key in gone.files])
    clean.suspects |= {
        line.key
        for section in _sections(node)
        for line in section.statements
        if not shrunk.isdisjoint(_bullet_of(line).task_refs)
    }
    _clean_statements(node, tasks, doomed, gone, clean)
    if doomed:
        _renumber(node)
    _drop_if_empty(root, node, value, clean)


def _clean_statements(
    node: Node, tasks: list[tuple[Node, Task]], doomed: dict[int, bool], gone: Gone, clean: CleanHandbook
) -> None:
    """Judge each statement of a group whose tasks `doomed` go; the value says whether such a task had live evidence."""
    left = [task.number for _, task in tasks if task.number not in doomed]
    numbers = {number: place for place, number in enumerate(left, start=1)}
    has_lost_all = bool(tasks) and not left
    for section in _sections(node):
        for line in [line for line in section.statements if line.is_bullet and line.under is None]:
            bullet = _bullet_of(line)
            if line.number in gone.lines or not _stands(bullet, line, doomed, gone, has_lost_all=has_lost_all):
                clean.removed.append(bullet.text)
                section.remove([line])
            elif doomed and not bullet.ad_hoc:
                _cite(section, line, bullet, numbers)


def _stands(bullet: Bullet, line: Line, doomed: dict[int, bool], gone: Gone, *, has_lost_all: bool) -> bool:
    is_persons = _is_persons(line, gone)
    if bullet.ad_hoc:
        return True
    if not bullet.task_refs:
        return is_persons or not has_lost_all
    dead = [number for number in bullet.task_refs if number in doomed]
    if not dead:
        return True
    if gone.purge and not is_persons:
        return False
    return len(dead) < len(bullet.task_refs) or (gone.purge and any(doomed[number] for number in dead))


def _cite(section: Node, line: Line, bullet: Bullet, numbers: dict[int, int]) -> None:
    """Let a statement cite the tasks that are left, by their new numbers."""
    refs = tuple(numbers[number] for number in bullet.task_refs if number in numbers)
    if refs == bullet.task_refs:
        return
    mark = bullet.mark if refs else None
    line.lines = (f"- {render_bullet(replace(bullet, task_refs=refs, mark=mark))}",)
    section.is_touched = True


def _renumber(node: Node) -> None:
    for number, child in enumerate((child for child in node.children if _TASK.match(child.heading)), start=1):
        child.heading = _TASK.sub(rf"\g<1>{number}\g<3>\g<4>", child.heading)


def _drop_if_empty(root: Node, node: Node, value: TaskGroup, clean: CleanHandbook) -> None:
    """Remove sections that lost their last statement, and a group that holds neither task nor statement any more."""
    empty = [child for child in _sections(node) if child.is_touched and not (child.statements or child.children)]
    node.children = [child for child in node.children if child not in empty]
    node.is_touched = node.is_touched or bool(empty)
    if node.is_touched and not node.children:
        root.children.remove(node)
        root.is_touched = True
        clean.removed.append(f"{value.title} {value.scope} {value.reuse_rule}")
        clean.titles.add(value.title.casefold())
        clean.cwds.add((value.cwd or "").casefold())


def _reword(node: Node, value: TaskGroup, words: Words, gone: Gone, clean: CleanHandbook) -> None:
    """Say by the directory alone what a group and its tasks are about, where other words were the forgotten ones."""
    about = value.cwd or "several projects"
    if words.are_in(value.title):
        clean.removed.append(value.title)
        clean.titles.add(value.title.casefold())
        node.heading, node.is_touched = f"# Task Group: {about}", True
    for line in node.statements:
        if words.are_in(line.key) and not _is_persons(line, gone):
            clean.removed.append(line.key)
            is_scope = line.lines[0].casefold().startswith("scope:")
            row = f"scope: work in {about}" if is_scope else f"applies_to: cwd={value.cwd or 'any'}; reuse_rule=unknown"
            line.lines = (row,) if _FIELD.match(line.lines[0]) else ()
    for heading, task in _tasks(node, value):
        match = _TASK.match(heading.heading)
        if match and words.are_in(task.title):
            clean.removed.append(task.title)
            heading.heading = f"{match[1]}{match[2]}{match[3]} work in {about}"
        for part in heading.children:
            _reword_rows(part, words, gone, clean)


def _reword_rows(part: Node, words: Words, gone: Gone, clean: CleanHandbook) -> None:
    """Drop keywords, and notes behind the names of summaries; a task without a keyword gets none that says anything."""
    for line in part.statements:
        if _is_persons(line, gone) or not words.are_in(" ".join(line.lines)):
            continue
        clean.removed.append(" ".join(line.lines))
        if part.name == _KEYWORDS:
            kept = [word for word in line.lines[0].lstrip("- \t").split(",") if not words.are_in(word)]
            line.lines = (f"- {', '.join(word.strip() for word in kept if word.strip()) or 'work'}",)
        else:
            line.lines = (f"- {line.key}",)


def _groups(root: Node) -> list[Node]:
    return [child for child in root.children if _GROUP.match(child.heading)]


def _sections(node: Node) -> Iterator[Node]:
    return (child for child in list(node.children) if child.name in _SECTIONS)


def _tasks(node: Node, value: TaskGroup) -> list[tuple[Node, Task]]:
    headings = [child for child in node.children if _TASK.match(child.heading)]
    return list(zip(headings, value.tasks, strict=False))


def _value_of(node: Node) -> TaskGroup:
    return parse_handbook(render_outline(node)).groups[0]


def _bullet_of(line: Line) -> Bullet:
    return parse_bullet(" ".join(" ".join(line.lines).split()).removeprefix("- "))


def _is_persons(line: Line, gone: Gone) -> bool:
    return any(row in gone.persons for row in line.lines)


def statements_of(text: str) -> list[str]:
    """Return what a memory file says, a statement each."""
    return [line.key for _, line in walk(read_outline(text))]
