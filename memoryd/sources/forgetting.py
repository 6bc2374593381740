"""How a reader bounds what it remembers of a session: of very many things the oldest are forgotten."""

from itertools import islice
from typing import Any

PORTION = 16  # the part of them that goes at a time: one by one it takes ever longer to find the oldest


def forget_oldest(known: dict[Any, Any], most: int) -> None:
    """Take the oldest entries out of a mapping that may hold `most`, and holds more."""
    for oldest in tuple(islice(known, most // PORTION)):
        del known[oldest]
