"""The evidence of a session: what was said and done in it, sanitised, redacted and fitted into a budget.

The budget is filled by tier, the human first, and newest first within a tier; what is kept is rendered in source order
with a mark for each gap. Rows are dropped while the session streams by, so that memory is bounded by the budget and
not by the session.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from memoryd.clock import rfc3339
from memoryd.pipeline.sanitise import sanitise
from memoryd.redact import Redactor
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.rawjson import CUT_MARK
from memoryd.text import byte_length, first_line, plain, truncate_bytes, truncate_middle

GAP: Final = "[... response items omitted ...]"
CUT: Final = "\n[... cut ...]\n"
SEPARATOR: Final = "\n\n"
REDACT_WHOLE_CHARS: Final = 1_000_000
"""A longer text is cut to its two ends before it is redacted: far more than a row shows, far less than it holds."""
REDACT_END_CHARS: Final = 262_144
EDGE_CHARS: Final = 4_096
"""What goes from the edge of a cut once the secrets are out: a halved one may not show any more what it was."""
_YEAR_10000: Final = 253_402_300_800


class Tier(StrEnum):
    """Rows from the most telling to the least; the value is the row's header."""

    HUMAN = "human user"
    ASSISTANT_FINAL = "assistant final"
    OTHER_AGENT = "other agent"
    ASSISTANT_COMMENTARY = "assistant commentary"
    HARNESS_CONTEXT = "harness context"
    TOOL = "tool"


TIERS: Final[dict[ItemKind, Tier]] = {
    ItemKind.HUMAN: Tier.HUMAN,
    ItemKind.ASSISTANT_FINAL: Tier.ASSISTANT_FINAL,
    ItemKind.OTHER_AGENT: Tier.OTHER_AGENT,
    ItemKind.ASSISTANT_COMMENTARY: Tier.ASSISTANT_COMMENTARY,
    ItemKind.HARNESS_CONTEXT: Tier.HARNESS_CONTEXT,
    ItemKind.TOOL_CALL: Tier.TOOL,
    ItemKind.TOOL_OUTPUT: Tier.TOOL,
}
_LOOKS_LIKE_A_ROW: Final = re.compile(
    rf"^(?=\[(?:{'|'.join(re.escape(tier.value) for tier in Tier)}|\.\.\. response items omitted \.\.\.)\])",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class TierUse:
    """How many rows of a tier are in the evidence, and how many the budget cut."""

    kept: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """A session as a model gets to read it, and what was left out of it.

    `items` are the items behind the rows, sanitised, redacted and cut, in source order. `dropped` counts by
    sanitise.Reason, `redactions` by kind of secret. `human_messages` counts the human's messages that held anything,
    also those that the budget cut. `external` says that content from outside the machine was used, memoryd's own
    answers aside.
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
    """Render `items` as rows within `budget_tokens`, which is taken as that many times `bytes_per_token` bytes."""
    dropped: Counter[str] = Counter()
    scribe = _Scribe(redactor, tool_bytes=int(tool_output_tokens * bytes_per_token), row_bytes=row_bytes)
    budget = _Budget(int(budget_tokens * bytes_per_token))
    human_messages, external = 0, False
    for item in sanitise(items, private_tags=private_tags, home=home, dropped=dropped):
        human_messages += item.kind is ItemKind.HUMAN
        external = external or item.external
        budget.add(scribe.row(item))
    kept = budget.rows()
    return Evidence(
        text=_render(kept, scribe.rows_written),
        items_kept=len(kept),
        dropped=+dropped,
        redactions=scribe.redactions,
        tiers=budget.use(),
        human_messages=human_messages,
        external=external,
        items=tuple(row.item for row in kept),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One item as it will stand in the evidence; `index` counts all rows of the session."""

    index: int
    tier: Tier
    item: Item
    text: str
    size: int


class _Scribe:
    """Writes items as rows: redacted first, then cut, under a header by which they can be cited."""

    def __init__(self, redactor: Redactor, *, tool_bytes: int, row_bytes: int) -> None:
        self.redactions: Counter[str] = Counter()
        self._redactor = redactor
        self._tool_bytes = tool_bytes
        self._row_bytes = row_bytes
        self.rows_written = 0
        self._cwd: str | None = None

    def row(self, item: Item) -> _Row:
        """Write the row of `item`, whose text it replaces by what the row shows."""
        tier, header = TIERS[item.kind], self._header(item)
        room = self._row_bytes - byte_length(header) - 1
        if item.kind is ItemKind.TOOL_OUTPUT:
            room = min(room, self._tool_bytes)
        shown = truncate_middle(self._redacted(item.text), max(0, room), CUT)
        escaped = truncate_bytes(_LOOKS_LIKE_A_ROW.sub(r"\\", shown), max(0, room))
        text = truncate_bytes(f"{header}\n{escaped}", self._row_bytes)
        self.rows_written += 1
        return _Row(self.rows_written, tier, replace(item, text=shown), text, byte_length(text))

    def _redacted(self, text: str) -> str:
        """Take the secrets out of a text, of a very long one out of its ends; what a cut may have halved goes too."""
        text = text.strip("\n")
        whole = text.removesuffix(CUT_MARK)
        end_is_cut = len(whole) < len(text)
        if len(whole) <= REDACT_WHOLE_CHARS:
            clean = self._clean(whole)
            return _without_end(clean) + CUT_MARK if end_is_cut else clean
        head, tail = self._clean(whole[:REDACT_END_CHARS]), self._clean(whole[-REDACT_END_CHARS:])
        tail = _without_start(_without_end(tail) + CUT_MARK if end_is_cut else tail)
        return _without_end(head) + CUT + tail

    def _clean(self, text: str) -> str:
        redacted = self._redactor.redact(plain(text))
        self.redactions.update(redacted.kinds)
        return redacted.text

    def _header(self, item: Item) -> str:
        """Say who speaks, the ordinal, when, what kind of tool row it is, and where, when that has changed."""
        facts = [f"#{item.ordinal}"]
        if item.at is not None and 0 <= item.at < _YEAR_10000:
            facts.append(rfc3339(item.at))
        if item.kind in (ItemKind.TOOL_CALL, ItemKind.TOOL_OUTPUT):
            role = "call" if item.kind is ItemKind.TOOL_CALL else "output"
            facts.append(f"{role} of {first_line(self._redactor.clean(item.tool), 60)}" if item.tool else role)
        if item.exit_code is not None:
            facts.append(f"exit code {item.exit_code}")
        if item.cwd is not None and (item.cwd != self._cwd or item.kind is ItemKind.HUMAN):
            facts.append(f"cwd={first_line(self._redactor.clean(item.cwd), 300)}")
            self._cwd = item.cwd
        return f"[{TIERS[item.kind].value}] {', '.join(facts)}"


def _without_end(text: str) -> str:
    """Leave out the last EDGE_CHARS, and the word that they begin in."""
    kept = text[:-EDGE_CHARS]
    edge = max(kept.rfind(" ", -EDGE_CHARS), kept.rfind("\n", -EDGE_CHARS))
    return kept[:edge] if edge >= 0 else kept


def _without_start(text: str) -> str:
    """Leave out the first EDGE_CHARS, and the word that they end in."""
    kept = text[EDGE_CHARS:]
    edges = [at for space in (" ", "\n") if (at := kept.find(space, 0, EDGE_CHARS)) >= 0]
    return kept[min(edges) + 1 :] if edges else kept


class _Budget:
    """Holds the rows that fit: when the budget is passed, the oldest row of the least telling tier goes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes + len(SEPARATOR)  # nothing stands after the last row
        self._tiers: dict[Tier, deque[_Row]] = {tier: deque() for tier in Tier}
        self._bytes = 0
        self._kept = 0
        self._cut: Counter[Tier] = Counter()

    def add(self, row: _Row) -> None:
        """Take `row` in, and drop what no longer fits."""
        self._tiers[row.tier].append(row)
        self._bytes += row.size + len(SEPARATOR)
        self._kept += 1
        while self._kept and self._needed() > self._limit:
            self._drop()

    def rows(self) -> list[_Row]:
        """Return the rows that are left, in source order."""
        return sorted((row for rows in self._tiers.values() for row in rows), key=lambda row: row.index)

    def use(self) -> dict[str, TierUse]:
        """Return per tier that had rows how many were kept and cut."""
        uses = {tier.value: TierUse(len(rows), self._cut[tier]) for tier, rows in self._tiers.items()}
        return {tier: use for tier, use in uses.items() if use.kept or use.cut}

    def _needed(self) -> int:
        """Bytes of the rows and of as many marks as there can be gaps."""
        gaps = min(self._kept + 1, self._cut.total())
        return self._bytes + gaps * (len(GAP) + len(SEPARATOR))

    def _drop(self) -> None:
        tier = next(tier for tier in reversed(Tier) if self._tiers[tier])
        row = self._tiers[tier].popleft()
        self._bytes -= row.size + len(SEPARATOR)
        self._kept -= 1
        self._cut[tier] += 1


def _render(rows: Sequence[_Row], total: int) -> str:
    """Put rows one below the other, with a mark where rows between them, before or after them were cut."""
    pieces, expected = [], 1
    for row in rows:
        if row.index > expected:
            pieces.append(GAP)
        pieces.append(row.text)
        expected = row.index + 1
    if rows and total >= expected:
        pieces.append(GAP)
    return SEPARATOR.join(pieces)
