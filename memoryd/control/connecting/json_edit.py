"""Puts one value into a JSON text and takes one out, by inserting and cutting text: the rest stays byte for byte.

What is inserted looks like its neighbours: their indentation, their line ends, on one line where they stand on one.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Final

from memoryd.control.connecting.jsonc import Dialect, Node, parse, skip

INDENT: Final = "  "
_SAME_LINE_COMMENTS: Final = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))+")

Step = str | int


class WrongShape(ValueError):
    """A value on the way is of another kind than the agent's schema says; names it."""


@dataclass(frozen=True, slots=True)
class Seam:
    """How an insertion was made, so that it can be unmade.

    `made` containers came with it (0: it went into one that existed); `inside` is what stood in a container
    without children, comments and white space; `lead` is what was written before a block of lines.
    """

    made: int = 0
    inside: str | None = None
    lead: str = ""


def insert(text: str, path: tuple[str, ...], value: object, dialect: Dialect) -> tuple[str, Seam]:
    """Append `value` to the array at `path` (names of members, from the root), and make what is missing of it.

    Raises NotJson, or WrongShape where a name of the path holds something else.
    """
    node, depth = _deepest(parse(text, dialect), path)
    if depth == len(path) and node.kind != "array":
        raise WrongShape(f"{_named(path)} is no list")
    missing = path[depth:]
    return _insert(text, node, missing, [value] if missing else value, dialect)


def insert_member(text: str, path: tuple[str, ...], name: str, value: object, dialect: Dialect) -> tuple[str, Seam]:
    """Append the member `name` to the object at `path`, and make what is missing of it.

    Raises NotJson, or WrongShape where a name of the path holds something else, or the member is there.
    """
    node, depth = _deepest(parse(text, dialect), path)
    if node.kind != "object":
        raise WrongShape(f"{_named(path[:depth])} is no object")
    if depth == len(path) and node.child(name) is not None:
        raise WrongShape(f"{_named(path)} has a member {name} already")
    missing = (*path[depth:], name)
    changed, seam = _insert(text, node, missing, value, dialect)
    return changed, replace(seam, made=seam.made - 1)


def _insert(text: str, node: Node, missing: tuple[str, ...], value: object, dialect: Dialect) -> tuple[str, Seam]:
    for name in reversed(missing[1:]):
        value = {name: value}
    style = _Style(text, node)
    key = f"{json.dumps(missing[0], ensure_ascii=False)}:{style.gap}" if missing else ""
    seam = Seam(len(missing), None if node.children else text[node.start + 1 : node.end - 1])
    return _add_child(text, node, key + style.render(value), style, dialect), seam


def remove(text: str, path: tuple[Step, ...], seam: Seam, dialect: Dialect) -> str:
    """Cut out the value at `path`, and of the `seam.made` containers that came with it those that hold nothing now."""
    for made in range(seam.made + 1):
        chain = _chain(parse(text, dialect), path)
        parent, child = chain[-2], chain[-1]
        if made and (child.children or text[child.start + 1 : child.end - 1].strip()):
            return text
        text = _cut_child(text, parent, child, dialect)
        path = path[:-1]
    parent = _chain(parse(text, dialect), path)[-1]
    inside = text[parent.start + 1 : parent.end - 1]
    if seam.inside is not None and not parent.children and inside.rstrip() == seam.inside.rstrip():
        return text[: parent.start + 1] + seam.inside + text[parent.end - 1 :]
    return text


def _deepest(root: Node, path: tuple[str, ...]) -> tuple[Node, int]:
    """Return the last container on the way that exists, and how many names lead to it."""
    node = root
    for depth, name in enumerate(path):
        if node.kind != "object":
            raise WrongShape(f"{_named(path[:depth])} is no object")
        child = node.child(name)
        if child is None:
            return node, depth
        node = child
    return node, len(path)


def _named(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the whole document"


def _chain(root: Node, path: tuple[Step, ...]) -> list[Node]:
    chain = [root]
    for step in path:
        node = chain[-1]
        found = node.children[step] if isinstance(step, int) else node.child(step)
        assert found is not None
        chain.append(found)
    return chain


class _Style:
    """How the neighbours of an insertion are written."""

    def __init__(self, text: str, node: Node) -> None:
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self.unit = _unit(text)
        inside = text[node.start + 1 : node.end - 1]
        self.on_one_line = bool(inside.strip()) and "\n" not in inside
        self.gap = "" if self.on_one_line and '": ' not in text else " "
        self.outer = _indentation(text, node.end - 1 if "\n" in inside else node.start)
        self.inner = _indentation(text, node.children[-1].from_) if node.children else self.outer + self.unit

    def render(self, value: object) -> str:
        """Write a value as the neighbours are written, its first line without indentation."""
        if self.on_one_line:
            return json.dumps(value, ensure_ascii=False, separators=("," + self.gap, ":" + self.gap))
        lines = json.dumps(value, ensure_ascii=False, indent=self.unit).split("\n")
        return (self.line_end + self.inner).join(lines)


def _add_child(text: str, node: Node, entry: str, style: _Style, dialect: Dialect) -> str:
    closing = node.end - 1
    lead = style.gap if style.on_one_line else style.line_end + style.inner
    if not node.children:
        at = node.start + 1
        at += len(text[at:closing].rstrip())  # behind the comments that are all it holds
        tail = "" if style.on_one_line or "\n" in text[at:closing] else style.line_end + style.outer
        return text[:at] + lead + entry + tail + text[at:]
    last = node.children[-1]
    comma = skip(text, last.end, comments=dialect.comments)
    if text[comma] == ",":
        at = _behind_comments(text, comma + 1, dialect)
        return text[:at] + lead + entry + "," + text[at:]
    at = _behind_comments(text, last.end, dialect)
    return text[: last.end] + "," + text[last.end : at] + lead + entry + text[at:]


def _cut_child(text: str, parent: Node, child: Node, dialect: Dialect) -> str:
    start, end = _lead_start(text, child.from_), child.end
    following = skip(text, end, comments=dialect.comments)
    if text[following] == ",":
        if parent.children[0] is child and "\n" not in text[start : child.from_]:
            return text[:start] + text[following + 1 :].lstrip(" \t")
        return text[:start] + text[end:following] + text[following + 1 :]
    index = parent.children.index(child)
    if index == 0:
        return text[:start] + text[end:]
    before = parent.children[index - 1]
    comma = skip(text, before.end, comments=dialect.comments)
    return text[: before.end] + text[before.end : comma] + text[comma + 1 : start] + text[end:]


def _lead_start(text: str, at: int) -> int:
    """Return where the white space before `at` begins, but of several line ends only the last belongs to it."""
    start = len(text[:at].rstrip(" \t"))
    if text[start - 1 : start] == "\n":
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    return start


def _behind_comments(text: str, at: int, dialect: Dialect) -> int:
    """Return the end of the comments that stand behind a value on its line: they belong to it."""
    found = _SAME_LINE_COMMENTS.match(text, at) if dialect.comments else None
    return found.end() if found else at


def _indentation(text: str, at: int) -> str:
    """Return the white space with which the line of `at` begins."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return what the document indents by: what its first indented line begins with."""
    found = re.search(r"\n([ \t]+)[\"{\[]", text)
    return found[1] if found else INDENT
