"""Citations of memory in an assistant's message (FORMATS section 5); pure, and never raises on any text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CitationEntry:
    """One cited range of lines, 1-based and inclusive, in a file of the memory folder."""

    path: str
    line_start: int
    line_end: int
    note: str


@dataclass(frozen=True, slots=True)
class Citations:
    """What the blocks of one message cite: entries in order, thread ids unique and in order."""

    entries: tuple[CitationEntry, ...]
    thread_ids: tuple[str, ...]


def parse_citations(text: str) -> Citations | None:
    """Read every citation block of a message; None when there is no block."""
    raise NotImplementedError


def strip_citations(text: str) -> str:
    """Return the message without its citation blocks, trimmed at the end."""
    raise NotImplementedError
