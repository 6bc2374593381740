"""Citations of memory in an assistant's message; pure, and never raises on any text."""

from collections.abc import Iterator
from dataclasses import dataclass

BLOCK_OPEN = "<oai-mem-citation>"
BLOCK_CLOSE = "</oai-mem-citation>"
ENTRIES = "citation_entries"
ID_TAGS = ("rollout_ids", "thread_ids")  # the second is the old name, read only when the first is absent
NOTE_MARK = "|note=["
MAX_LINE_NUMBER = 2**32 - 1


@dataclass(frozen=True, slots=True)
class CitationEntry:
    """One cited range of lines, 1-based and inclusive, in a file of the memory folder."""

    path: str
    line_start: int
    line_end: int
    note: str


@dataclass(frozen=True, slots=True)
class Citations:
    """What the blocks of one message cite: entries in order, thread ids unique and in order, as they were written."""

    entries: tuple[CitationEntry, ...]
    thread_ids: tuple[str, ...]


def parse_citations(text: str) -> Citations | None:
    """Read every citation block of a message and add them up; None when there is no block."""
    if BLOCK_OPEN not in text:
        return None
    entries: list[CitationEntry] = []
    thread_ids: dict[str, None] = {}
    for start, end in _blocks(text):
        block = text[start:end].removeprefix(BLOCK_OPEN).removesuffix(BLOCK_CLOSE)
        entries.extend(entry for line in _lines(block, ENTRIES) or () if (entry := parse_entry(line)) is not None)
        ids = next((lines for tag in ID_TAGS if (lines := _lines(block, tag)) is not None), [])
        thread_ids.update(dict.fromkeys(ids))
    return Citations(tuple(entries), tuple(thread_ids))


def strip_citations(text: str) -> str:
    """Return the message without its citation blocks; what stands around them is kept as it is."""
    kept: list[str] = []
    position = 0
    for start, end in _blocks(text):
        kept.append(text[position:start])
        position = end
    return "".join([*kept, text[position:]]) if position else text


def parse_entry(line: str) -> CitationEntry | None:
    """Read `path:start-end|note=[note]`; None when the line is not of that form."""
    location, mark, note = line.strip().rpartition(NOTE_MARK)
    if not mark or not note.endswith("]"):
        return None
    path, colon, lines = location.rpartition(":")
    start, dash, end = lines.partition("-")
    first, last = _line_number(start), _line_number(end)
    if not colon or not dash or not path.strip() or first is None or last is None:
        return None
    return CitationEntry(path.strip(), first, last, note.removesuffix("]").strip())


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each block begins and ends, its tags included; an unterminated one ends with the message."""
    start = text.find(BLOCK_OPEN)
    while start >= 0:
        close = text.find(BLOCK_CLOSE, start + len(BLOCK_OPEN))
        end = len(text) if close < 0 else close + len(BLOCK_CLOSE)
        yield start, end
        start = text.find(BLOCK_OPEN, end)


def _lines(block: str, tag: str) -> list[str] | None:
    """Return the lines between a pair of tags, trimmed and without blank ones; None when the pair is absent."""
    _, opened, rest = block.partition(f"<{tag}>")
    inner, closed, _ = rest.partition(f"</{tag}>")
    if not opened or not closed:
        return None
    return [line.strip() for line in inner.splitlines() if line.strip()]


def _line_number(text: str) -> int | None:
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(MAX_LINE_NUMBER)):
        return None
    number = int(digits)
    return number if number <= MAX_LINE_NUMBER else None
