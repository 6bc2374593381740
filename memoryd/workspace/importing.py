"""Another memory folder's handbook and summary, joined to ours: what stands here stays, what comes keeps its words.

A task group comes as a block of its own, so that its tasks keep their numbers and its bullets their references; one
whose title is taken says where it comes from. What ours says already, of the same directory, does not come again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memoryd.text import byte_length
from memoryd.workspace.handbook import Section
from memoryd.workspace.outline import Line, Node, read_outline, render_outline
from memoryd.workspace.summary import OLDER_TOPICS, VERSION_LINE, Part

_GROUP: Final = "task group:"
_SECTIONS: Final = frozenset(section.casefold() for section in Section)
_LISTS: Final = (Part.PREFERENCES.casefold(), Part.TIPS.casefold())
_INDEX: Final = Part.INDEX.casefold()
_OLDER: Final = OLDER_TOPICS.casefold()


@dataclass(frozen=True, slots=True)
class Joined:
    """A joined text; `bullets` are the rows of the statements that came, `groups` how many blocks or topics did.

    `dropped` counts what found no room; `keys` are what those statements say.
    """

    text: str
    bullets: frozenset[str] = frozenset()
    groups: int = 0
    dropped: int = 0
    keys: frozenset[str] = frozenset()


def join_handbooks(ours: str, theirs: str, *, source: str) -> Joined:
    """Return our MEMORY.md with the task groups of theirs that say anything new; `source` names their maker."""
    root, other = read_outline(ours), read_outline(theirs)
    titles = {_title(node) for node in _groups(root)}
    standing = {(_directory(node), line.key) for node in _groups(root) for line in _statements(node)}
    come: list[Node] = []
    for node in list(_groups(other)):
        lines = list(_statements(node))
        known = [line for line in lines if (_directory(node), line.key) in standing]
        if len(known) == len(lines) and (lines or _title(node) in titles):
            continue
        for section in [child for child in node.children if child.name in _SECTIONS]:
            section.remove(known)
        node.children = [child for child in node.children if child.statements or child.children]
        node.heading = _free_heading(node, titles, source)
        titles.add(_title(node))
        come.append(node)
    blocks = [render_outline(_alone(node)).strip("\n") for node in come]
    head = ours if any(_groups(root)) else ""
    text = "\n\n".join([*([head.strip("\n")] if head.strip() else []), *blocks])
    return _joined(f"{text}\n" if come else ours, [line for node in come for line in _statements(node)], len(come))


def join_summaries(ours: str, theirs: str, *, max_bytes: int) -> Joined:
    """Return our memory_summary.md with the preferences, tips and scopes of theirs that ours lacks, as far as they fit.

    Theirs stands in for one that is missing; without its version line it is no summary.
    """
    if theirs.split("\n", 1)[0].rstrip("\r") != VERSION_LINE:
        return Joined(ours)
    other = read_outline(theirs)
    if not ours.strip():
        return _joined(theirs, list(_listed(other)), 1)
    root = read_outline(ours)
    room = _Room(max_bytes - byte_length(ours))
    added = [line for name in _LISTS for line in _join_lists(_part(root, name), _part(other, name), room)]
    scopes = _join_indexes(_part(root, _INDEX), _part(other, _INDEX), room)
    if not added and not scopes:
        return Joined(ours, dropped=room.dropped)
    return _joined(render_outline(root), added, scopes, room.dropped)


def _joined(text: str, come: list[Line], groups: int, dropped: int = 0) -> Joined:
    rows = frozenset(row for line in come for row in line.lines)
    return Joined(text, rows, groups, dropped, frozenset(line.key for line in come))


@dataclass(slots=True)
class _Room:
    """How many bytes may still come, and how many statements and scopes found no place."""

    left: int
    dropped: int = 0

    def takes(self, size: int) -> bool:
        if size > self.left:
            self.dropped += 1
            return False
        self.left -= size
        return True


def _join_lists(mine: Node | None, their: Node | None, room: _Room) -> list[Line]:
    added: list[Line] = []
    for line in their.statements if mine is not None and their is not None else ():
        if mine is None or mine.find(line) is not None:
            continue
        if room.takes(sum(byte_length(row) + 1 for row in line.lines)):
            mine.append(Line.of(line.lines))
            added.append(line)
    return added


def _join_indexes(mine: Node | None, their: Node | None, room: _Room) -> int:
    """Add the scopes that ours lacks, before the older topics; return their number."""
    if mine is None or their is None:
        return 0
    names = {child.name for child in mine.children}
    missing = [child for child in their.children if child.name not in names and child.name != _OLDER]
    come = [node for node in missing if room.takes(byte_length(render_outline(_alone(node))) + 2)]
    place = next((number for number, child in enumerate(mine.children) if child.name == _OLDER), len(mine.children))
    for node in come:
        node.is_touched = True
    mine.children[place:place] = come
    return len(come)


def _groups(root: Node) -> Iterator[Node]:
    return (node for node in root.children if node.level == 1 and node.name.startswith(_GROUP))


def _title(node: Node) -> str:
    return node.name.removeprefix(_GROUP).strip()


def _free_heading(node: Node, titles: set[str], source: str) -> str:
    """Return the group's heading; where its title is taken, with where it comes from."""
    if _title(node) not in titles:
        return node.heading
    number, plain = 1, f"{node.heading.rstrip()} (imported from {source}"
    while True:
        heading = f"{plain})" if number == 1 else f"{plain}, {number})"
        if _title(Node(heading)) not in titles:
            return heading
        number += 1


def _directory(node: Node) -> str:
    """Return what a group applies to, letter case aside; its title where it does not say."""
    rows = [row for line in node.statements for row in line.lines]
    applies = next((row for row in rows if row.casefold().startswith("applies_to:")), "")
    return applies.partition("cwd=")[2].partition(";")[0].strip().casefold() or _title(node)


def _statements(group: Node) -> Iterator[Line]:
    return (line for child in group.children if child.name in _SECTIONS for line in child.statements)


def _listed(root: Node) -> Iterator[Line]:
    parts = (_part(root, name) for name in _LISTS)
    return (line for part in parts if part is not None for line in part.statements)


def _part(root: Node, name: str) -> Node | None:
    return next((node for node in root.children if node.level == 2 and node.name == name), None)


def _alone(node: Node) -> Node:
    return Node(children=[node])
