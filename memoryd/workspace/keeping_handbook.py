"""Where a person's line of MEMORY.md goes when a run has written the handbook anew.

A statement goes to its section of its task group (found by title, else by directory; a group that names the sessions
that it cites comes first). When the group is gone: to the first group that has the section, or, if the person made the
group or none has the section, to a group made again for it. Headings of what is gone come back only with a line.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from memoryd.workspace.comparison import task_files
from memoryd.workspace.handbook import Mark, Section, TaskGroup, parse_bullet, render_bullet
from memoryd.workspace.keeping import Guarded, Keeping, Stack, descend
from memoryd.workspace.keeping_headings import GROUP, TASK, Group, groups_of, keep_headings
from memoryd.workspace.layout import ROLLOUT_SUMMARIES
from memoryd.workspace.outline import Line, Node, read_outline, render_outline

_FIELD: Final = re.compile(r"(scope|applies_to):", re.IGNORECASE)
_LEAD: Final = re.compile(r"[ \t]*(?:- )?")
_ORDER: Final = [section.casefold() for section in Section]


def keep_in_handbook(
    guarded: Guarded, text: str, *, may_move: bool, may_rename: bool = False, notes: str = ""
) -> tuple[str, Keeping]:
    """Return a handbook that a run wrote, with the person's lines and without what the person took out."""
    keeping = Keeping.of(guarded, read_outline(text), may_move=may_move, notes=notes)
    keeping.leave_out(lambda stack, _: is_statement(stack))
    keep_headings(keeping, may_rename=may_rename)
    placing = _Placing(keeping, groups_of(guarded.outline), groups_of(keeping.root))
    for stack, line in guarded.lines():
        placing.place(stack, line)
    _tidy(keeping.root)
    return render_outline(keeping.root), keeping


def is_statement(stack: Stack) -> bool:
    """Say whether lines below these headings state something, rather than being structure of a task or a group."""
    return not _is_of_a_task(stack) and not (len(stack) == 1 and GROUP.match(stack[0].heading))


@dataclass(slots=True)
class _Placing:
    keeping: Keeping
    old: list[Group]
    new: list[Group]
    remade: dict[Node, Group] = field(default_factory=dict)

    def place(self, stack: Stack, line: Line) -> None:
        group = next((group for group in self.old if stack and group.node is stack[0]), None)
        if group is None:
            self.keeping.put(self._outside(stack), line, stack)
        elif len(stack) == 1:
            self._place_field(group, line, stack)
        elif _is_of_a_task(stack):
            self._place_row(group, line, stack)
        else:
            self._place_statement(group, line, stack)

    def _outside(self, stack: Stack) -> Node:
        """Return where lines go that stand in no task group: above all of them, so that they are in none."""
        root = self.keeping.root
        if stack and root.child(stack[0].name) is None:
            first = next((n for n, child in enumerate(root.children) if GROUP.match(child.heading)), None)
            root.add(stack[0].heading, before=first)
        return descend(root, stack)

    def _place_field(self, group: Group, line: Line, stack: Stack) -> None:
        target = self._same(group)
        if target is None:
            return
        match = _FIELD.match(line.lines[0])
        there = next((one for one in target.node.statements if match and _is_field(one, match[1])), None)
        if there is None:
            self.keeping.put(target.node, line, stack)
            return
        if there.lines != line.lines:
            self.keeping.miss(line, stack)
            there.lines, there.key = line.lines, line.key
        self.keeping.lines.update(line.lines)

    def _place_row(self, group: Group, line: Line, stack: Stack) -> None:
        """Bring back a keyword, or the name of a summary, of a task that has live sessions."""
        live = self.keeping.guarded.live
        files = next((task_files(task) for node, task in group.tasks if node is stack[1]), frozenset[str]()) & live
        is_dead = line.key.startswith(f"{ROLLOUT_SUMMARIES}/") and line.key not in live
        files = files - {line.key} or files
        tasks = [(len(task_files(task) & files), node) for one in self.new for node, task in one.tasks]
        shared, task = max(tasks, key=lambda pair: pair[0], default=(0, Node()))
        if shared and not is_dead:
            self.keeping.put(descend(task, stack[2:]), line, stack)

    def _place_statement(self, group: Group, line: Line, stack: Stack) -> None:
        guarded = self.keeping.guarded
        refs = parse_bullet(line.lines[-1].strip()).task_refs
        files = frozenset(path for task in group.value.tasks if task.number in refs for path in task_files(task))
        live = files & guarded.known & guarded.live
        if files & guarded.known and not live:
            return
        target = self._target(group, stack[1].name, live)
        kept = Line.of(_renumbered(line.lines, target.value, live), under=line.under)
        is_homeless = target is not self._same(group) and not target.names(live)
        self.keeping.put(descend(_section(target.node, stack[1]), stack[2:]), kept, stack, is_homeless=is_homeless)

    def _target(self, group: Group, section: str, live: frozenset[str]) -> Group:
        same = self._same(group)
        naming = [one for one in self.new if one.names(live)]
        if naming:
            return same if same is not None and any(one is same for one in naming) else naming[0]
        if same is not None:
            return same
        having = [one for one in self.new if one.node.child(section) is not None]
        is_persons = group.node.number in self.keeping.guarded.persons
        return having[0] if having and not is_persons else self._made_again(group, with_tasks=is_persons)

    def _same(self, group: Group) -> Group | None:
        if group.node in self.remade:
            return self.remade[group.node]
        by_title = [one for one in self.new if one.value.title.casefold() == group.value.title.casefold()]
        by_cwd = [one for one in self.new if one.value.cwd is not None and one.value.cwd == group.value.cwd]
        return next(iter([*by_title, *by_cwd]), None)

    def _made_again(self, group: Group, *, with_tasks: bool) -> Group:
        """Add a group like the old one; what it rests on comes with it as far as it is there."""
        node = self.keeping.root.add(group.node.heading)
        node.body = [Line.of(line.lines) for line in group.node.statements]
        for heading, task in group.tasks if with_tasks else ():
            if task_files(task) & self.keeping.guarded.live:
                _copy_task(heading, node, self.keeping.guarded.live)
        self.keeping.lines.update(render_outline(node).split("\n"))
        self.keeping.made.append(node)
        self.remade[group.node] = Group.of(node)
        return self.remade[group.node]


def _copy_task(task: Node, group: Node, live: Iterable[str]) -> None:
    number = 1 + len(group.children)
    copied = group.add(TASK.sub(rf"\g<1>{number}\g<2>", task.heading))
    for part in task.children:
        rows = [one for one in part.statements if not one.key.startswith(f"{ROLLOUT_SUMMARIES}/") or one.key in live]
        copied.add(part.heading).body = [Line(("",)), *(Line.of(one.lines) for one in rows)]


def _renumbered(lines: tuple[str, ...], group: TaskGroup, live: frozenset[str]) -> tuple[str, ...]:
    """Return a statement that cites the tasks of a group which name its live sessions; without any, none."""
    bullet = parse_bullet(lines[-1].strip())
    numbers = {task.number for task in group.tasks}
    refs = tuple(sorted({task.number for task in group.tasks if task_files(task) & live}))
    if set(refs) == set(bullet.task_refs) or not (live or numbers & set(bullet.task_refs)):
        return lines
    lead = _LEAD.match(lines[-1])
    text = lead[0] if lead else ""
    cited = replace(parse_bullet(lines[-1][len(text) :].strip()), task_refs=refs)
    return (*lines[:-1], text + render_bullet(replace(cited, mark=cited.mark or (Mark.STATED if refs else None))))


def _section(group: Node, heading: Node) -> Node:
    """Return a group's section, made in its place where it is missing."""
    found = group.child(heading.name)
    if found is not None:
        return found
    later = _ORDER[_ORDER.index(heading.name) + 1 :] if heading.name in _ORDER else []
    before = next((number for number, child in enumerate(group.children) if child.name in later), None)
    return group.add(heading.heading, before=before)


def _tidy(root: Node) -> None:
    """Remove sections and groups that hold nothing any more because of what was taken out."""
    for group in [child for child in root.children if GROUP.match(child.heading)]:
        empty = [child for child in group.children if child.is_touched and not (child.statements or child.children)]
        group.children = [child for child in group.children if child not in empty]
        if empty and not group.children:
            root.children.remove(group)
        group.is_touched = group.is_touched or bool(empty)


def _is_of_a_task(stack: Stack) -> bool:
    return len(stack) > 1 and TASK.match(stack[1].heading) is not None


def _is_field(line: Line, name: str) -> bool:
    match = _FIELD.match(line.lines[0])
    return match is not None and match[1].casefold() == name.casefold()
