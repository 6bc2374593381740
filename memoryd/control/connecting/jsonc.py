"""Reads JSON, with comments and trailing commas where an agent allows them, and keeps where each part of it stands.

Settings files are changed by inserting and cutting text, so that everything else stays byte for byte; for that the
places are needed, which the standard library's decoder does not tell.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

DEEPEST: Final = 200
_DECODER: Final = json.JSONDecoder()
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_COMMENT: Final = re.compile(r"//[^\n\r]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an agent allows beyond JSON."""

    comments: bool = False
    trailing_commas: bool = False


STRICT: Final = Dialect()


class NotJson(ValueError):
    """The text is not what the dialect allows; says what and at which line."""

    def __init__(self, complaint: str, text: str, at: int) -> None:
        super().__init__(f"{complaint} at line {text.count(chr(10), 0, at) + 1}")


@dataclass(slots=True)
class Node:
    """A value and its place: `text[start:end]`. The children of an object have a key, and `from_` is the key's start.

    `value` is the value of a scalar, None for containers: `kind` tells them apart ("object", "array", "scalar").
    """

    kind: str
    start: int
    end: int
    value: object = None
    key: str | None = None
    from_: int = 0
    children: list["Node"] = field(default_factory=list)

    def child(self, key: str) -> "Node | None":
        """Return the member of that name."""
        return next((child for child in self.children if child.key == key), None)

    def plain(self) -> object:
        """Return what the JSON means."""
        if self.kind == "object":
            return {str(child.key): child.plain() for child in self.children}
        return [child.plain() for child in self.children] if self.kind == "array" else self.value


def parse(text: str, dialect: Dialect = STRICT) -> Node:
    """Read a whole document. Raises NotJson, also where a name stands twice in one object."""
    reader = _Reader(text, dialect)
    node, at = reader.value(reader.skip(0), 0)
    if (end := reader.skip(at)) != len(text):
        raise NotJson("something stands after the end of the document", text, end)
    return node


@dataclass(frozen=True, slots=True)
class _Reader:
    text: str
    dialect: Dialect

    def skip(self, at: int) -> int:
        """Return where the next token begins."""
        return skip(self.text, at, comments=self.dialect.comments)

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        """Read the value that begins at `at`; return it and where it ends."""
        letter = self.text[at : at + 1]
        if letter in ("{", "["):
            if depth >= DEEPEST:
                raise NotJson("values lie too deep in each other", self.text, at)
            return self.container(at, depth)
        if letter == '"':
            value, end = self.string(at)
            return Node("scalar", at, end, value), end
        if found := _SCALAR.match(self.text, at):
            return Node("scalar", at, found.end(), self.scalar(found)), found.end()
        raise NotJson("a value is missing" if letter in ("", ",", "}", "]", ":") else "no JSON value", self.text, at)

    def scalar(self, found: re.Match[str]) -> object:
        """Return what a number or a word means."""
        try:
            return _DECODER.decode(found[0])
        except ValueError:  # Python converts no more than some thousands of digits
            raise NotJson("a number is too long", self.text, found.start()) from None

    def container(self, start: int, depth: int) -> tuple[Node, int]:
        """Read an object or array."""
        is_object = self.text[start] == "{"
        closing = "}" if is_object else "]"
        node = Node("object" if is_object else "array", start, start)
        at = self.skip(start + 1)
        names: set[str] = set()
        while self.text[at : at + 1] != closing:
            child, at = self.member(at, depth) if is_object else self.item(at, depth)
            if child.key in names:
                raise NotJson(f"the name {child.key!r} stands twice in one object", self.text, child.from_)
            names |= {child.key} if child.key is not None else set()
            node.children.append(child)
            at = self.after_child(self.skip(at), closing)
        node.end = at + 1
        return node, node.end

    def after_child(self, at: int, closing: str) -> int:
        """Pass the comma between children; return where the next child or the closing bracket stands."""
        letter = self.text[at : at + 1]
        if letter == closing:
            return at
        if letter != ",":
            raise NotJson(f"a comma or {closing} is missing", self.text, at)
        following = self.skip(at + 1)
        if self.text[following : following + 1] == closing and not self.dialect.trailing_commas:
            raise NotJson(f"a comma stands before {closing}", self.text, at)
        return following

    def item(self, at: int, depth: int) -> tuple[Node, int]:
        """Read one item of an array."""
        node, end = self.value(at, depth + 1)
        node.from_ = at
        return node, end

    def member(self, at: int, depth: int) -> tuple[Node, int]:
        """Read one `"key": value`."""
        if self.text[at : at + 1] != '"':
            raise NotJson("a name in quotation marks is missing", self.text, at)
        key, after = self.string(at)
        colon = self.skip(after)
        if self.text[colon : colon + 1] != ":":
            raise NotJson("a colon is missing", self.text, colon)
        node, end = self.value(self.skip(colon + 1), depth + 1)
        node.key, node.from_ = key, at
        return node, end

    def string(self, at: int) -> tuple[str, int]:
        """Read a string; return it and where it ends."""
        try:
            value, end = _DECODER.raw_decode(self.text, at)
        except ValueError:
            raise NotJson("a string is not closed, or holds what JSON forbids", self.text, at) from None
        return str(value), int(end)


def skip(text: str, at: int, *, comments: bool) -> int:
    """Return the place of the next token: behind white space, and comments where there may be some."""
    for end in _trivia(text, at, comments=comments):
        at = end
    return at


def _trivia(text: str, at: int, *, comments: bool) -> Iterator[int]:
    while True:
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        yield at
        found = _COMMENT.match(text, at) if comments else None
        if found is None:
            return
        at = found.end()
        yield at
