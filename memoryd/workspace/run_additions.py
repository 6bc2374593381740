"""What a run added beside lines which the person changed meanwhile, put back into a merged text.

A merge of lines leaves it out with the run's whole passage. Where run and person both took the same statement out, what
the run wrote there may be its own wording of it, and the person's stands alone.
"""

from collections.abc import Callable
from typing import Final

from memoryd.workspace.keeping import Stack
from memoryd.workspace.keeping_handbook import is_statement
from memoryd.workspace.keeping_summary import index_node
from memoryd.workspace.layout import MEMORY_FILE
from memoryd.workspace.outline import Line, Node, Place, place_of, read_outline, render_outline, walk
from memoryd.workspace.summary import Part

_LISTS: Final = (Part.PREFERENCES.casefold(), Part.TIPS.casefold())
_INDEX: Final = Part.INDEX.casefold()
_DESC: Final = "desc:"


def with_added(path: str, base: str, live: str, theirs: str, merged: str) -> str:
    """Return a merged text of one of the two files with the statements that only the run's version has.

    Of the summary these are preferences, tips and topics; its profile is prose, of which two versions say one thing.
    """
    root = read_outline(merged)
    if path == MEMORY_FILE:
        added = _add_statements(root, base, live, theirs, lambda stack, _: is_statement(stack))
    else:
        added = _add_statements(root, base, live, theirs, _is_listed)
        added = _add_topics(root, base, theirs) or added
    return render_outline(root) if added else merged


def _add_statements(root: Node, base: str, live: str, theirs: str, may: Callable[[Stack, Line], bool]) -> bool:
    stood, stands, written = (
        {(place_of(stack, line), line.key) for stack, line in walk(read_outline(text))} for text in (base, live, theirs)
    )
    contested = {place for place, _ in (stood - stands) & (stood - written)}
    there = {line.key for _, line in walk(root)} | {key for _, key in stood}
    nodes = {place_of(stack, line): stack[-1] for stack, line in walk(root) if stack}
    added = False
    for stack, line in walk(read_outline(theirs)):
        place = place_of(stack, line)
        is_free = line.under is None and place in nodes and place not in contested
        if is_free and line.key not in there and may(stack, line):
            nodes[place].append(line)
            added = True
    return added


def _is_listed(stack: Stack, line: Line) -> bool:
    return len(stack) == 1 and stack[0].name in _LISTS and line.is_bullet


def _add_topics(root: Node, base: str, theirs: str) -> bool:
    """Add the topics whose titles are new in their scope: without its topic a task group could not be found."""
    known = {(place, topic.title) for place, _, topic in (*_topics(read_outline(base)), *_topics(root))}
    new = [(stack, line) for place, stack, line in _topics(read_outline(theirs)) if (place, line.title) not in known]
    for stack, topic in new:
        node = index_node(root, stack, topic)
        node.append(Line.of(topic.lines))
        is_same_day = node.name == stack[-1].name
        for line in stack[-1].statements:
            if line.under is topic and (is_same_day or line.key.startswith(_DESC)):
                node.append(line)
    return bool(new)


def _topics(root: Node) -> list[tuple[Place, Stack, Line]]:
    return [
        (place_of(stack, line), stack, line)
        for stack, line in walk(root)
        if stack and stack[0].name == _INDEX and line.under is None and line.is_bullet
    ]
