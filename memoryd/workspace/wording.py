"""Words in a row, as digests by which two texts can be compared without keeping either."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

RUN: Final = 3
"""Words of one run: fewer are said by everybody, and more are easily reworded."""
DIGEST_BYTES: Final = 12
_WORD: Final = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text: letters and digits in a row, letter case aside."""
    return _WORD.findall(text.casefold())


def runs_of(words: Sequence[str]) -> Iterator[bytes]:
    """Yield a digest of every RUN words in a row."""
    for start in range(len(words) - RUN + 1):
        yield digest_of(words[start : start + RUN])


def digest_of(words: Sequence[str]) -> bytes:
    """Return the digest of words in a row."""
    return hashlib.blake2b(" ".join(words).encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
