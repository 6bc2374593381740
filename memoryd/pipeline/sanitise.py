"""What is no evidence: private spans, memory that memoryd itself injected, and memoryd's own calls."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from memoryd.sources.items import Item


def sanitise(
    items: Iterable[Item], *, private_tags: Sequence[str], home: Path, dropped: Counter[str]
) -> Iterator[Item]:
    """Yield `items` without what must not be learned from; `dropped` counts by reason what was taken out."""
    raise NotImplementedError
