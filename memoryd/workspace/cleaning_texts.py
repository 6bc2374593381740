"""A folder without certain words: what a note asks to forget, wherever the memory says it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.workspace.cleaning_handbook import Gone, without_words
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import ALWAYS_THERE, MEMORY_FILE, SKILLS
from memoryd.workspace.notes import says
from memoryd.workspace.outline import Line, Node, read_outline, render_outline, walk
from memoryd.workspace.summary import OLDER_TOPICS

MAX_NAMED: Final = 20
PART_LEVEL: Final = 2
"""Of the headings of the summary's sections; below them stand scopes and days."""


def mentions(folder: Folder, texts: Collection[str]) -> Iterator[str]:
    """Yield a complaint for each line of the memory that says one of the texts; not what it says, but where."""
    for path in _places(folder) if texts else ():
        for number, row in enumerate(folder.text(path).split("\n"), start=1):
            if any(says(row, text) for text in texts):
                yield f"{path} line {number}: a note asks to forget what stands here; remove it"


def without_texts(folder: Folder, texts: Collection[str]) -> tuple[dict[str, str], int]:
    """Return the new texts of the files that say one of the texts, and how many statements that takes out of them."""
    changed: dict[str, str] = {}
    removed = 0
    for path in _places(folder) if texts else ():
        text = folder.text(path)
        if path in ALWAYS_THERE:
            new, number = _without_statements(path, text, _Said(texts))
        else:
            rows = text.split("\n")
            kept = [row for row in rows if not any(says(row, one) for one in texts)]
            new, number = "\n".join(kept), len(rows) - len(kept)
        if new != text:
            changed[path] = new
            removed += number
    return changed, removed


def _places(folder: Folder) -> list[str]:
    return [path for path in sorted(folder.files) if path in ALWAYS_THERE or path.startswith(f"{SKILLS}/")]


@dataclass(frozen=True, slots=True)
class _Said:
    """Texts that are looked for in others, word for word."""

    texts: Collection[str]

    def are_in(self, text: str) -> bool:
        return any(says(text, one) for one in self.texts)


def _without_statements(path: str, text: str, said: _Said) -> tuple[str, int]:
    if path == MEMORY_FILE:
        clean = without_words(text, said, Gone(), only=lambda _line: True, rewords=True)
        return clean.text, len(clean.removed)
    root = read_outline(text)
    doomed = [(stack, line) for stack, line in walk(root) if stack and said.are_in(" ".join(line.lines))]
    for stack, line in doomed:
        if not _retitled(stack, line, said):
            stack[-1].remove([line])
    _drop_empty(root)
    return (render_outline(root), len(doomed)) if doomed else (text, 0)


def _retitled(stack: Sequence[Node], line: Line, said: _Said) -> bool:
    """Leave a topic of the index its place, by which a task group is found: under its scope's name if need be."""
    if len(stack) <= PART_LEVEL - 1 or line.under is not None:
        return False
    title, _, row = line.lines[0].partition(": ")
    if said.are_in(title):
        scope = stack[2] if stack[1].name == OLDER_TOPICS.casefold() and len(stack) > PART_LEVEL else stack[1]
        title = f"- {scope.heading.lstrip('#').strip()}"
    kept = ", ".join(word for word in row.split(", ") if word and not said.are_in(word))
    whole = f"{title}: {kept}"
    line.lines = (f"{title}:" if not kept or said.are_in(whole) else whole,)
    stack[-1].is_touched = True
    return True


def _drop_empty(node: Node) -> None:
    """Remove scopes and days from which everything was taken out; the sections of the file always stand."""
    for child in list(node.children):
        _drop_empty(child)
        if child.level > PART_LEVEL and child.is_touched and not child.statements and not child.children:
            node.children.remove(child)
            node.is_touched = True
