"""A folder without certain words: what a note asks to forget, wherever the memory says it."""

from collections.abc import Collection, Iterator
from typing import Final

from memoryd.workspace.cleaning_handbook import Gone, clean_handbook
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import ALWAYS_THERE, MEMORY_FILE, SKILLS
from memoryd.workspace.notes import says
from memoryd.workspace.outline import Node, read_outline, render_outline, walk

MAX_NAMED: Final = 20


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
            new, number = _without_statements(path, text, texts)
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


def _without_statements(path: str, text: str, texts: Collection[str]) -> tuple[str, int]:
    root = read_outline(text)
    doomed = [
        (stack[-1] if stack else root, line)
        for stack, line in walk(root)
        if any(says(" ".join(line.lines), one) for one in texts) and (stack or path == MEMORY_FILE)
    ]
    if not doomed:
        return text, 0
    if path == MEMORY_FILE:
        bullets = frozenset(line.number for _, line in doomed)
        return clean_handbook(text, Gone(lines=bullets)).text, len(doomed)
    for node, line in doomed:
        node.remove([line])
    _drop_empty(root)
    return render_outline(root), len(doomed)


def _drop_empty(node: Node) -> None:
    """Remove scopes and days from which everything was taken out; the sections of the file always stand."""
    for child in list(node.children):
        _drop_empty(child)
        if child.level > 2 and child.is_touched and not child.statements and not child.children:
            node.children.remove(child)
            node.is_touched = True
