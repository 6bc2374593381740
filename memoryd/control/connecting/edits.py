"""The ways in which a file takes us in: an entry in a JSON list, a member of a JSON object, a block between markers,
or a file of our own.

All are pure: texts in, texts out. Everything that they did not write stays byte for byte.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from memoryd.control.connecting import json_edit
from memoryd.control.connecting.json_edit import Seam, Step, WrongShape
from memoryd.control.connecting.jsonc import STRICT, Dialect, NotJson, parse

BOM: Final = "\ufeff"
COMMAND_KEYS: Final = ("command", "bash")


class Unusable(ValueError):
    """The file is not what its agent would read, or leaves no place for us; says why."""


class Edit(Protocol):
    """What is done to one file."""

    def insert(self, text: str) -> tuple[str, Seam]:
        """Put ours in ("": the file is new). Raises Unusable."""
        ...

    def remove(self, text: str, seam: Seam) -> str:
        """Take ours out; a text without it is returned as it is. Raises Unusable."""
        ...

    def mine(self, text: str) -> str | None:
        """Return what of ours stands in the file (a command, a path, a line), None: nothing. Raises Unusable."""
        ...

    def stands(self, text: str) -> bool:
        """Say whether ours stands there as this version writes it, whatever is around it. Raises Unusable."""
        ...

    def others(self, text: str) -> str | None:
        """Return what another home of memoryd has put there. Raises Unusable."""
        ...

    def is_bare(self, text: str) -> bool:
        """Say whether nothing is left but what a file that we made began with."""
        ...


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """An entry appended to the list at `path`. `mark` is the string in it that says that it is ours: command or path.

    `shape` matches the marks of every home; `root` is what a new document holds besides.
    """

    path: tuple[str, ...]
    value: object
    mark: str
    shape: re.Pattern[str]
    dialect: Dialect = STRICT
    root: Mapping[str, object] = field(default_factory=dict)

    def insert(self, text: str) -> tuple[str, Seam]:
        """Append the entry, and make the lists and objects that are missing."""
        bom, body = _without_bom(text)
        try:
            if not body.strip():
                body = json.dumps(dict(self.root), indent=json_edit.INDENT) + "\n"
            changed, seam = json_edit.insert(body, self.path, self.value, self.dialect)
        except (NotJson, WrongShape) as error:
            raise Unusable(str(error)) from None
        return bom + changed, seam

    def remove(self, text: str, seam: Seam) -> str:
        """Cut out each entry that carries the mark, and the group around a hook that holds no other."""
        bom, body = _without_bom(text)
        while (found := next((path for path, mark in self._marks(body) if mark == self.mark), None)) is not None:
            beside_others = len(found) > len(self.path) + 1
            body = json_edit.remove(body, found, Seam() if beside_others else seam, self.dialect)
        return bom + body

    def mine(self, text: str) -> str | None:
        """Return the mark where it stands in the file."""
        return next((mark for _, mark in self._marks(_without_bom(text)[1]) if mark == self.mark), None)

    def stands(self, text: str) -> bool:
        """Say whether the entry is there, word for word, and once."""
        body = _without_bom(text)[1]
        found = [path for path, mark in self._marks(body) if mark == self.mark]
        if len(found) != 1 or len(found[0]) != len(self.path) + 1:
            return False
        item: Any = parse(body, self.dialect).plain()
        for step in found[0]:
            item = item[step]
        return bool(item == self.value)

    def others(self, text: str) -> str | None:
        """Return the mark of another home."""
        marks = (mark for _, mark in self._marks(_without_bom(text)[1]) if mark != self.mark)
        return next((mark for mark in marks if self.shape.fullmatch(mark)), None)

    def is_bare(self, text: str) -> bool:
        """Say whether the document holds no more than `root`."""
        try:
            return parse(_without_bom(text)[1], self.dialect).plain() == dict(self.root)
        except NotJson:
            return False

    def _marks(self, body: str) -> Iterator[tuple[tuple[Step, ...], str]]:
        """Yield the path of each string that can be a mark's, and the string; of a hook the path of its entry."""
        if not body.strip():
            return
        try:
            found: Any = parse(body, self.dialect).plain()
        except NotJson as error:
            raise Unusable(str(error)) from None
        for name in self.path:
            found = found.get(name) if isinstance(found, dict) else None
        for index, item in enumerate(found if isinstance(found, list) else []):
            for below, mark in _strings(item):
                yield (*self.path, index, *below), mark


@dataclass(frozen=True, slots=True)
class JsonMember:
    """The member `name` of the object at `path`: a server among others. `mark` is its command, by which it is ours."""

    path: tuple[str, ...]
    name: str
    value: object
    mark: str
    shape: re.Pattern[str]
    dialect: Dialect = STRICT

    def insert(self, text: str) -> tuple[str, Seam]:
        """Append the member; one of that name that is not ours is never overwritten."""
        bom, body = _without_bom(text)
        try:
            changed, seam = json_edit.insert_member(
                body if body.strip() else "{\n}\n", self.path, self.name, self.value, self.dialect
            )
        except (NotJson, WrongShape) as error:
            raise Unusable(str(error)) from None
        return bom + changed, seam

    def remove(self, text: str, seam: Seam) -> str:
        """Cut the member out where it is ours."""
        bom, body = _without_bom(text)
        if self._mark(body) != self.mark:
            return text
        return bom + json_edit.remove(body, (*self.path, self.name), seam, self.dialect)

    def mine(self, text: str) -> str | None:
        """Return the mark where the member is ours."""
        return self.mark if self._mark(_without_bom(text)[1]) == self.mark else None

    def stands(self, text: str) -> bool:
        """Say whether the member is ours; what a person added to it stays."""
        return self.mine(text) is not None

    def others(self, text: str) -> str | None:
        """Return the mark of another home."""
        mark = self._mark(_without_bom(text)[1])
        return mark if mark is not None and mark != self.mark and self.shape.fullmatch(mark) else None

    def is_bare(self, text: str) -> bool:
        """Say whether the document is empty."""
        try:
            return parse(_without_bom(text)[1], self.dialect).plain() == {}
        except NotJson:
            return False

    def _mark(self, body: str) -> str | None:
        try:
            found: Any = parse(body, self.dialect).plain() if body.strip() else None
        except NotJson as error:
            raise Unusable(str(error)) from None
        for name in (*self.path, self.name, "command"):
            found = found.get(name) if isinstance(found, dict) else None
        first = found[0] if isinstance(found, list) and found else found
        return first if isinstance(first, str) else None


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours as a whole; `mark` is a line of it in every version."""

    content: str
    mark: str

    def insert(self, text: str) -> tuple[str, Seam]:
        """Return the file; another one in its place is never overwritten."""
        if text.strip():
            raise Unusable("there is one already that memoryd did not write")
        return self.content, Seam()

    def remove(self, text: str, seam: Seam) -> str:  # noqa: ARG002 (there is nothing around it)
        """Leave nothing, or what a person made of it."""
        return text.replace(self.content, "")

    def mine(self, text: str) -> str | None:
        """Return the mark where it stands in the file."""
        return self.mark if self.mark in text.split("\n") else None

    def stands(self, text: str) -> bool:
        """Say whether it is what this version writes."""
        return text == self.content

    def others(self, text: str) -> str | None:  # noqa: ARG002 (every home writes the same)
        """Know of no other home's."""
        return None

    def is_bare(self, text: str) -> bool:
        """Say whether nothing is left."""
        return not text.strip()


@dataclass(frozen=True, slots=True)
class Block:
    """Lines between two markers at the end of a file. `mark` is the line among them by which the home is known.

    `check` raises Unusable for a text that the agent could not read.
    """

    begin: str
    end: str
    lines: tuple[str, ...]
    mark: str
    check: Callable[[str], None]

    def insert(self, text: str) -> tuple[str, Seam]:
        """Append the block, a blank line before it."""
        self.check(text)
        line_end = "\r\n" if "\r\n" in text else "\n"
        lead = "" if not text else line_end if text.endswith("\n") else line_end * 2
        changed = text + lead + "".join(line + line_end for line in (self.begin, *self.lines, self.end))
        self.check(changed)
        return changed, Seam(lead=lead)

    def remove(self, text: str, seam: Seam) -> str:
        """Cut the block out, and the line ends that were written before it."""
        found = self._find(text)
        if found is None or self.mark not in found[0]:
            return text
        before, after = text[: found.start()], text[found.end() :]
        if seam.lead and before.endswith(seam.lead):
            before = before.removesuffix(seam.lead)
            needs_line_end = after and before and not before.endswith("\n")
            before += seam.lead[: len(seam.lead) // 2] if needs_line_end else ""
        self.check(before + after)
        return before + after

    def mine(self, text: str) -> str | None:
        """Return the marked line where the block stands in the file."""
        found = self._find(text)
        return self.mark if found and self.mark in found[0] else None

    def stands(self, text: str) -> bool:
        """Say whether the block has these lines."""
        found = self._find(text)
        return found is not None and found[0].splitlines()[1:-1] == list(self.lines)

    def others(self, text: str) -> str | None:
        """Return the block of another home."""
        found = self._find(text)
        return found[0].splitlines()[1] if found and self.mark not in found[0] else None

    def is_bare(self, text: str) -> bool:
        """Say whether nothing is left."""
        return not text.strip()

    def _find(self, text: str) -> re.Match[str] | None:
        begin, end = re.escape(self.begin), re.escape(self.end)
        return re.search(rf"^{begin}[ \t]*\r?\n.*?^{end}[ \t]*(?:\r?\n|\Z)", text, re.DOTALL | re.MULTILINE)


def _strings(item: object) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield what can carry a mark in one item of a list, with what is to be cut: the item, or one of its many hooks."""
    if isinstance(item, str):
        yield (), item
    if not isinstance(item, dict):
        return
    yield from (((), item[key]) for key in COMMAND_KEYS if isinstance(item.get(key), str))
    hooks = item.get("hooks")
    hooks = hooks if isinstance(hooks, list) else []
    for index, hook in enumerate(hooks):
        command = hook.get("command") if isinstance(hook, dict) else None
        if isinstance(command, str):
            yield ("hooks", index) if len(hooks) > 1 else (), command


def _without_bom(text: str) -> tuple[str, str]:
    return (BOM, text[1:]) if text.startswith(BOM) else ("", text)
