"""A memory file as headings with statements below them, to add and to remove some and leave every other byte as it is.

A statement is a line with the indented lines that continue it; an indented `- ` line is one of its own, under the
bullet above it. Its place is the names of the headings that it stands below.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from memoryd.workspace.handbook import parse_bullet
from memoryd.workspace.summary import OLDER_TOPICS, Part

_BULLET: Final = re.compile(r"[ \t]*- ")
_EVIDENCE_ROW: Final = re.compile(r"[ \t]*- (rollout_summaries/[^/\s()]+\.md)(?:[ \t]*\(.*\))?[ \t]*\r?")
_INDEX: Final = Part.INDEX.casefold()
_OLDER: Final = OLDER_TOPICS.casefold()

Place: TypeAlias = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Line:
    """A statement, or a blank line (`key` empty); `number` is that of its first line, 0 for one that is new.

    `key` is what it says, letter for letter, white space, references and mark aside; of an evidence row, its file.
    """

    lines: tuple[str, ...]
    number: int = 0
    under: "Line | None" = None
    key: str = ""

    @classmethod
    def of(cls, lines: Sequence[str], number: int = 0, under: "Line | None" = None) -> "Line":
        """Make a statement of its lines."""
        return cls(tuple(lines), number, under, statement_key(lines))

    @property
    def is_bullet(self) -> bool:
        """It begins with a dash."""
        return _BULLET.match(self.lines[0]) is not None

    @property
    def title(self) -> str:
        """Return what a topic's row is called."""
        return self.key.partition(": ")[0].removesuffix(":").casefold()


@dataclass(slots=True, eq=False)
class Node:
    """A heading (the root has none), the lines below it, and the headings of a deeper level among them."""

    heading: str = ""
    level: int = 0
    number: int = 0
    body: list[Line] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)
    is_touched: bool = False

    @property
    def name(self) -> str:
        """Return the heading's words, letter case and white space aside."""
        return " ".join(self.heading.lstrip("#").casefold().split())

    @property
    def statements(self) -> list[Line]:
        """Return the lines that are not blank."""
        return [line for line in self.body if line.key]

    def child(self, name: str) -> "Node | None":
        """Return the first child of that name."""
        return next((child for child in self.children if child.name == name), None)

    def find(self, line: Line) -> Line | None:
        """Return the statement that says the same, under the same topic."""
        return next((one for one in self.body if one.key == line.key and _topic(one) == _topic(line)), None)

    def append(self, line: Line) -> None:
        """Put a statement behind the last one, or behind the last one under the same bullet."""
        self.is_touched = True
        filled = [number for number, one in enumerate(self.body) if one.key]
        if not filled:
            above = (self.body[:1] or [_blank()]) if self.heading else []
            below = self.body[len(above) :] or ([] if self.heading else [_blank()])
            self.body = [*above, line, *below]
            return
        under = [number for number in filled if line.under is not None and _belongs(self.body[number], line.under)]
        self.body.insert(1 + (under or filled)[-1], line)

    def remove(self, doomed: Sequence[Line]) -> None:
        """Take statements out, with what stands under them."""
        self.is_touched = True
        self.body = [one for one in self.body if one not in doomed and one.under not in doomed]

    def add(self, heading: str, *, before: int | None = None) -> "Node":
        """Add a child; `before` is its position, None the end."""
        node = Node(heading, _level(heading), is_touched=True)
        self.children.insert(len(self.children) if before is None else before, node)
        return node


def read_outline(text: str) -> Node:
    """Read a text; `render_outline` gives it back to the byte."""
    root = Node()
    stack, bullets = [root], list[Line]()
    for number, row in enumerate(text.split("\n"), start=1):
        if row.startswith("#"):
            while stack[-1].level >= _level(row):
                stack.pop()
            node = Node(row, _level(row), number)
            stack[-1].children.append(node)
            stack, bullets = [*stack, node], []
        else:
            _add_row(stack[-1], row, number, bullets)
    return root


def render_outline(root: Node) -> str:
    """Write an outline; a heading that follows what was changed has a blank line above it."""
    rows: list[str] = []
    touched = False
    for node in _nodes(root):
        if node.heading:
            if (touched or node.is_touched) and rows and rows[-1].strip():
                rows.append("")
            rows.append(node.heading)
        rows += [row for line in node.body for row in line.lines]
        touched = node.is_touched
    if touched and rows and rows[-1].strip():
        rows.append("")
    return "\n".join(rows)


def walk(root: Node) -> Iterator[tuple[tuple[Node, ...], Line]]:
    """Yield each statement with the headings above it, outermost first; the root is not among them."""
    for stack in _stacks(root, ()):
        node = stack[-1] if stack else root
        yield from ((stack, line) for line in node.statements)


def place_of(stack: Sequence[Node], line: Line) -> Place:
    """Return where a statement stands. In the summary's index that is the scope, whatever the day."""
    names = tuple(node.name for node in stack)
    if names[:1] == (_INDEX,):
        scopes = names[2:3] if names[1:2] == (_OLDER,) else names[1:2]
        names = (_INDEX, *scopes)
    return (*names, _topic(line)) if line.under else names


def statement_key(lines: Sequence[str]) -> str:
    """Return what a statement says."""
    if row := _EVIDENCE_ROW.fullmatch(lines[0]):
        return row[1]
    words = " ".join(" ".join(lines).split()).removeprefix("- ")
    return parse_bullet(words).text or words


def _nodes(root: Node) -> Iterator[Node]:
    yield root
    for child in root.children:
        yield from _nodes(child)


def _stacks(node: Node, above: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    yield above
    for child in node.children:
        yield from _stacks(child, (*above, child))


def _add_row(node: Node, row: str, number: int, bullets: list[Line]) -> None:
    """Add a row to what stands below a heading; `bullets` are those that an indented row may belong to."""
    last = node.body[-1] if node.body else None
    indent = len(row) - len(row.lstrip(" \t"))
    if not row.strip():
        node.body.append(Line((row,), number))
    elif last is not None and last.key and indent and not _BULLET.match(row):
        last.lines = (*last.lines, row)
        last.key = statement_key(last.lines)
    else:
        bullets[:] = [one for one in bullets if _indent(one) < indent]
        node.body.append(Line.of((row,), number, bullets[-1] if bullets else None))
        bullets.append(node.body[-1])


def _topic(line: Line) -> str:
    return line.under.title if line.under else ""


def _belongs(line: Line, topic: Line) -> bool:
    """Say whether a line is the bullet of that title, or stands under it."""
    return topic.title in ((line.under.title, line.title) if line.under else (line.title,))


def _indent(line: Line) -> int:
    return len(line.lines[0]) - len(line.lines[0].lstrip(" \t"))


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _blank() -> Line:
    return Line(("",))
