"""The evidence of a session: what was said and done in it, sanitised, redacted and fitted into a budget."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.redact import Redactor
from memoryd.sources.items import Item


@dataclass(frozen=True, slots=True)
class TierUse:
    """How many rows of a tier are in the evidence, and how many the budget cut."""

    kept: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """A session as a model gets to read it, and what was left out of it.

    `items` are the items behind the rows, sanitised, redacted and cut, in source order. `human_messages` counts the
    human's messages that held anything, also those that the budget cut. `external` says that content from outside the
    machine was used, memoryd's own answers aside.
    """

    text: str
    items_kept: int
    dropped: Counter[str]
    redactions: Counter[str]
    tiers: dict[str, TierUse]
    human_messages: int
    external: bool
    items: tuple[Item, ...] = field(repr=False)


def gather(
    items: Iterable[Item],
    *,
    redactor: Redactor,
    private_tags: Sequence[str],
    home: Path,
    budget_tokens: int,
    bytes_per_token: float = 3.0,
    tool_output_tokens: int = 2_000,
    row_bytes: int = 10_000,
) -> Evidence:
    """Render `items` as rows within `budget_tokens`, most telling tier first and newest first within a tier."""
    raise NotImplementedError
