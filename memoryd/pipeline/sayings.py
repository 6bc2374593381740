"""Who spoke the words of a reply's preference signals, so that code can refuse a preference that only a tool states.

A tool's output (a page, a README, a log) may ask for things as if it were the person. A signal counts as a tool's only
where that is proven: one of its quotes stands word for word in a tool's output and in no message of the person, nothing
else of its quotes is the person's either, and all that the person said was read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from memoryd.ledger.sayings import NOTHING_KNOWN, Said
from memoryd.pipeline.evidence import CUT, Evidence, Tier
from memoryd.sources.items import Item, ItemKind
from memoryd.workspace.wording import RUN, runs_of, words_of

MAX_SIGNALS: Final = 400
"""Of one reply; what a model in a loop writes more is not looked for."""
MAX_QUOTES: Final = 8
"""Of one signal."""
MAX_SAYINGS: Final = 4_000
"""Of one output; far above any honest reply."""
LEAST_BARE_WORDS: Final = 5
"""A signal without quotation marks is compared by its clauses, and only by long ones."""
_SIGNALS: Final = re.compile(r"\s*Preference signals:\s*(.*)", re.IGNORECASE)
_END: Final = re.compile(r"\s*(?:#.*|---|(?:[A-Z][\w ]*):)\s*")
_QUOTE: Final = re.compile(r"[\"“”„«]([^\"“”„«»]{3,2000})[\"“”»]")
_CLAUSE: Final = re.compile(r"->|→|[:;,]\s|\(|\)")


def who_said(texts: Iterable[str], evidence: Evidence) -> Said:
    """Return who spoke the words of the preference signals in `texts`, as far as the evidence tells."""
    bullets = islice((signal for text in texts for signal in signals_of(text)), MAX_SIGNALS)
    signals = [[words_of(quote) for quote in quotes_of(signal)] for signal in bullets]
    signals = [[words for words in quotes if len(words) >= RUN] for quotes in signals]
    wanted = {run for quotes in signals for words in quotes for run in runs_of(words)}
    if not wanted:
        return NOTHING_KNOWN
    human = _heard(evidence.items, ItemKind.HUMAN, wanted)
    said_by_human = {run for run in wanted if run in human}
    said_by_tool: set[bytes] = set()
    if _heard_all_of_the_person(evidence):
        outputs = [" ".join(words_of(item.text)) for item in evidence.items if item.kind is ItemKind.TOOL_OUTPUT]
        for quotes in signals:
            runs = {run for words in quotes for run in runs_of(words)}
            if runs.isdisjoint(human):
                said_by_tool.update(run for words in quotes if _stands_in(words, outputs) for run in runs_of(words))
    return Said(_bounded(said_by_human), _bounded(said_by_tool))


def signals_of(text: str) -> Iterator[str]:
    """Yield the bullets below each `Preference signals:` of a raw memory or a rollout summary."""
    inside = False
    for line in text.split("\n"):
        if match := _SIGNALS.fullmatch(line):
            inside = True
            if match[1]:
                yield match[1]
        elif inside and _END.fullmatch(line):
            inside = False
        elif inside and line.strip():
            yield line.strip().removeprefix("- ")


def quotes_of(signal: str) -> Sequence[str]:
    """Return what a signal quotes; without quotation marks its longer clauses."""
    quoted: list[str] = _QUOTE.findall(signal)
    if quoted:
        return quoted[:MAX_QUOTES]
    return [clause for clause in _CLAUSE.split(signal) if len(words_of(clause)) >= LEAST_BARE_WORDS][:MAX_QUOTES]


def _heard(items: Sequence[Item], kind: ItemKind, wanted: set[bytes]) -> set[bytes]:
    return {run for item in items if item.kind is kind for run in runs_of(words_of(item.text)) if run in wanted}


def _heard_all_of_the_person(evidence: Evidence) -> bool:
    """Nothing that the person said was cut: only then can it be said that they did not say something."""
    use = evidence.tiers.get(Tier.HUMAN.value)
    cut = any(CUT.strip() in item.text for item in evidence.items if item.kind is ItemKind.HUMAN)
    return use is not None and use.cut == 0 and not cut


def _stands_in(words: Sequence[str], texts: Sequence[str]) -> bool:
    wanted = f" {' '.join(words)} "
    return any(wanted in f" {text} " for text in texts)


def _bounded(runs: set[bytes]) -> frozenset[bytes]:
    return frozenset(sorted(runs)[:MAX_SAYINGS])
