"""Where a person's line of memory_summary.md goes when a run has written the summary anew.

It goes to the end of its section; in the index to its day of its scope, else to the older topics of its scope, which
are made where there are none. A detail whose topic is gone brings the topic's row with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from memoryd.workspace.handbook import EVERYWHERE, Handbook, TaskGroup
from memoryd.workspace.keeping import Guarded, Keeping, Stack, descend
from memoryd.workspace.outline import Line, Node, place_of, read_outline, render_outline, walk
from memoryd.workspace.summary import OLDER_TOPICS, VERSION_LINE, Part, index_of, parse_summary

KEPT_BY_HAND: Final = "kept by hand"
_INDEX: Final = Part.INDEX.casefold()
_OLDER: Final = OLDER_TOPICS.casefold()


@dataclass(frozen=True, slots=True)
class Reach:
    """Which task groups must be found from the summary: those of the handbook before, after, and made by code.

    `renamed` are titles that a run gave and the person's instead of them, as in Keeping.
    """

    before: Handbook
    after: Handbook
    made: Sequence[TaskGroup] = ()
    renamed: Mapping[tuple[str, str | None], str] = field(default_factory=dict)


def keep_in_summary(
    guarded: Guarded, text: str, reach: Reach, *, may_move: bool, notes: str = ""
) -> tuple[str, Keeping]:
    """Return a summary that a run wrote, with the person's lines and without what the person took out.

    A topic by which alone a task group is found stays; a group that code made gets one.
    """
    text = _with_titles(text, reach.renamed)
    reached = _found(text, reach.after.groups)
    result, keeping = _kept(guarded, text, may_move=may_move, notes=notes, keep_topics=False)
    if keeping.again and len(_found(result, reached)) < len(reached):
        result, keeping = _kept(guarded, text, may_move=may_move, notes=notes, keep_topics=True)
    before = render_outline(guarded.outline)
    unreached = {group.title.casefold() for group in reach.before.groups} - {
        group.title.casefold() for group in _found(before, reach.before.groups)
    }
    wanted = [group for group in reach.made if group.title.casefold() not in unreached]
    for group in [group for group in wanted if group not in _found(result, wanted)]:
        _add_topic(keeping, group)
    return render_outline(keeping.root), keeping


def _kept(guarded: Guarded, text: str, *, may_move: bool, notes: str, keep_topics: bool) -> tuple[str, Keeping]:
    root = read_outline(text)
    keeping = Keeping.of(guarded, root, may_move=may_move, notes=notes)
    keeping.leave_out(lambda stack, line: not (keep_topics and _is_topic(stack, line)))
    for stack, line in guarded.lines():
        if not stack and line.key == VERSION_LINE:
            continue
        node = index_node(root, stack, line) if _is_in_index(stack) else descend(root, stack)
        if line.under is not None and _is_in_index(stack) and not _topic_of(node, line.under):
            node.append(Line.of(line.under.lines))
        keeping.put(node, line, stack)
    return render_outline(root), keeping


def _with_titles(text: str, renamed: Mapping[tuple[str, str | None], str]) -> str:
    """Call the topics of a summary what the person calls their task groups."""
    root = read_outline(text)
    for (old, cwd), title in renamed.items():
        scope = " ".join((cwd or EVERYWHERE).casefold().split())
        topics = [line for stack, line in walk(root) if _is_topic(stack, line) and place_of(stack, line)[-1] == scope]
        if all(line.title != title.casefold() for line in topics):
            for line in (line for line in topics if line.title == old):
                said = line.key.partition(": ")[0].removesuffix(":")
                line.lines = (line.lines[0].replace(said, title, 1), *line.lines[1:])
    return render_outline(root)


def index_node(root: Node, stack: Stack, line: Line) -> Node:
    """Return where a line of the index belongs: with its topic, in its day, or with the older ones of its scope."""
    part = descend(root, stack[:1])
    if len(stack) < 2 or (len(stack) == 2 and stack[1].name == _OLDER):
        return descend(root, stack)
    place = place_of(stack, Line(()))
    nodes = [below for below in _below(part, (part,)) if place_of(below, Line(())) == place]
    topic = line.under or line
    having = [below for below in nodes if _topic_of(below[-1], topic)] if line.under else []
    same = [below for below in nodes if [node.name for node in below] == [node.name for node in stack]]
    saying = [below for below in nodes if below[-1].find(line)]
    for below in (*saying, *having, *same):
        return below[-1]
    older = part.child(_OLDER) or part.add(f"### {OLDER_TOPICS}")
    name = stack[2 if stack[1].name == _OLDER else 1].heading.lstrip("#").strip()
    return older.child(place[-1]) or older.add(f"#### {name}")


def _below(node: Node, stack: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    for child in node.children:
        yield (*stack, child)
        yield from _below(child, (*stack, child))


def _topic_of(node: Node, topic: Line) -> bool:
    return any(one.title == topic.title and one.under is None for one in node.statements)


def _add_topic(keeping: Keeping, group: TaskGroup) -> None:
    part = keeping.root.child(_INDEX) or keeping.root.add(f"## {Part.INDEX}")
    older = part.child(_OLDER) or part.add(f"### {OLDER_TOPICS}")
    name = group.cwd or EVERYWHERE
    scope = older.child(" ".join(name.casefold().split())) or older.add(f"#### {name}")
    row = Line.of((f"- {group.title}: {KEPT_BY_HAND}",))
    scope.append(row)
    keeping.lines.update(row.lines)


def _found(text: str, groups: Sequence[TaskGroup]) -> list[TaskGroup]:
    index = index_of(parse_summary(text))
    return [group for group in groups if index.reaches(title=group.title, cwd=group.cwd)]


def _is_in_index(stack: Stack) -> bool:
    return bool(stack) and stack[0].name == _INDEX


def _is_topic(stack: Stack, line: Line) -> bool:
    return _is_in_index(stack) and line.under is None
