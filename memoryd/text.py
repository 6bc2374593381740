"""Text as bytes that have to fit: cutting, estimating, and the marker around what memoryd injects into sessions.

Sizes are bytes of UTF-8, because that is what files and requests hold; a cut never splits a character.
"""

import re
from collections.abc import Sequence

MARKER_OPEN = "<memoryd_memory>"
MARKER_CLOSE = "</memoryd_memory>"

ELLIPSIS = "…"
BYTES_PER_TOKEN = 3.0
"""Assumed until a model's own usage has taught the ratio: low, so that an estimate errs on the long side."""

# Other line breaks than \n: whoever splits lines by them sees lines where we see none.
_LINE_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_TERMINAL_CONTROLS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\))")
# Lone surrogates, marks that turn the direction of text, zero-width and tag characters that nobody sees. The joiners of
# scripts and emoji stay.
_HIDDEN = "\ud800-\udfff\u200b\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f"
# Those, and control characters but tab and what breaks a line.
_UNSEEN = re.compile(f"[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f{_HIDDEN}]")
# All that is no tab and no line feed to a terminal.
_STEERING = re.compile(f"[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_HIDDEN}]")


_ORDINARY = bytes(range(0x20, 0x7F)) + b"\t\n"


def plain(text: str) -> str:
    """Return `text` without what no reader sees and no text file holds; every line break in it is a line feed."""
    # Most texts are plain: only what is not ordinary is looked at closely, which is ten times as fast.
    odd = text.encode("utf-8", "surrogatepass").translate(None, _ORDINARY).decode("utf-8", "surrogatepass")
    if not (_LINE_BREAKS.search(odd) or _UNSEEN.search(odd)):
        return text
    return _UNSEEN.sub("", _TERMINAL_CONTROLS.sub("", _LINE_BREAKS.sub("\n", text)))


def spelled_out(text: str) -> str:
    """Return `text` with what nobody sees, or what steers a terminal, written as in JSON: `\\u001b`.

    A JSON document stays one, of the same meaning.
    """
    return _STEERING.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


_FOLDED = tuple(letter.encode() for letter in "\u0130\u0131\u017f\u212a")
"""Letters that a regular expression without regard to case takes for i, s and k."""


def may_mention(text: str, names: Sequence[str]) -> bool:
    """Say whether one of `names` may stand in `text`, in any case: False is certain, and found ten times as fast."""
    if not all(map(str.isascii, names)):
        return True
    folded = text.encode("utf-8", "surrogatepass").lower()
    if any(name.lower().encode() in folded for name in names):
        return True
    return len(folded) != len(text) and any(letter in folded for letter in _FOLDED)


def on_one_line(text: str) -> str:
    """Return `text` plain, and as one line: a name with a line break in it cannot pose as two."""
    return " ".join(plain(text).split("\n")).strip()


def byte_length(text: str) -> int:
    """Return the size of `text` in UTF-8; a lone surrogate (JSON may hold one) counts as three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def truncate_bytes(text: str, limit: int) -> str:
    """Return the longest beginning of `text` that takes at most `limit` bytes and ends on a character boundary."""
    if limit <= 0:
        return ""
    if len(text) * 4 <= limit or byte_length(text) <= limit:
        return text
    return _decode(text[:limit].encode("utf-8", "surrogatepass")[:limit])


def truncate_middle(text: str, limit_bytes: int, mark: str) -> str:
    """Keep both ends of `text` with `mark` between them, all in at most `limit_bytes`; a text that fits is untouched.

    What no longer fits beside the mark goes half to the beginning and half to the end. A limit below the mark's own
    size leaves the beginning of the mark.
    """
    if byte_length(text) <= limit_bytes:
        return text
    room = limit_bytes - byte_length(mark)
    if room <= 0:
        return truncate_bytes(mark, limit_bytes)
    head = truncate_bytes(text, room - room // 2)
    return head + mark + _last_bytes(text, room // 2)


def estimate_tokens(n_bytes: int, bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """Return how many tokens `n_bytes` of text are expected to be, rounded up."""
    return -int(-n_bytes // bytes_per_token)


def first_line(text: str, limit: int) -> str:
    """Return the first line of `text` that is not blank, white space collapsed, at most `limit` characters."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + ELLIPSIS[: max(0, limit)]


def _last_bytes(text: str, limit: int) -> str:
    if limit <= 0:
        return ""
    raw = text[-limit:].encode("utf-8", "surrogatepass")[-limit:]
    start = next((index for index, byte in enumerate(raw[:4]) if byte & 0xC0 != 0x80), len(raw))
    return raw[start:].decode("utf-8", "surrogatepass")


def _decode(raw: bytes) -> str:
    """Decode `raw`, giving up the incomplete character that a cut may have left at its end."""
    end = len(raw)
    for back in range(1, min(4, end) + 1):
        byte = raw[end - back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            end -= back if needed > back else 0
            break
    return raw[:end].decode("utf-8", "surrogatepass")
