"""The last step before a terminal: what would steer it, or stands there unseen, is spelled out.

Memory texts, names of files and words of servers were written by others. In a pipe they go as they are; on a terminal
an escape among them could clear what stands above it, hide a line or name another window.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO, cast

from memoryd.text import spelled_out

_OWN_COLOURS: Final = re.compile("(\x1b\\[(?:0|1|31|32|36)m)")
"""The colours of memoryd's diffs; whoever writes one of them into a memory colours a word, and hides nothing."""


class _Guarded:
    """A terminal's stream that steers nothing; `beneath` is the stream itself."""

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        parts = _OWN_COLOURS.split(text)
        self.beneath.write("".join(part if number % 2 else spelled_out(part) for number, part in enumerate(parts)))
        return len(text)

    def writelines(self, rows: Iterable[str]) -> None:
        for row in rows:
            self.write(row)

    def __getattr__(self, name: str) -> object:
        return getattr(self.beneath, name)


@contextmanager
def guarded_stdout() -> Iterator[None]:
    """Spell out on stdout, where it is a terminal; elsewhere say what cannot be encoded, rather than nothing at all."""
    beneath = sys.stdout
    is_terminal = getattr(beneath, "isatty", None)  # a process may be started without any stdout
    if is_terminal is None or not is_terminal():
        if (change := getattr(beneath, "reconfigure", None)) is not None:
            change(errors="backslashreplace")
        yield
        return
    sys.stdout = cast("TextIO", _Guarded(beneath))
    try:
        yield
    finally:
        sys.stdout = beneath


def drawn_on() -> TextIO:
    """Return stdout as it is, for what draws; whoever uses it spells out by itself what others wrote."""
    return cast("TextIO", getattr(sys.stdout, "beneath", sys.stdout))
