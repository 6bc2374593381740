"""A person's preferences and corrections, quoted, with what they answered; a later one takes an earlier one's place."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memoryd.pipeline.offline_commands import command_line, is_probe
from memoryd.pipeline.offline_cues import Voice, classify, default_of
from memoryd.pipeline.offline_subjects import replaces
from memoryd.pipeline.offline_text import as_code, clip, is_quotable, one_line, sentences
from memoryd.sources.items import Item, ItemKind

MAX_PREFERENCES: Final = 30
"""More in one session are a pasted document; the latest count."""
MAX_SITUATION_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class Quote:
    """One sentence of a person, and how they gave it."""

    voice: Voice
    text: str


@dataclass(frozen=True, slots=True)
class Preference:
    """What a person wants: their words in the order in which they said them, the last of which holds.

    `task_refs` are the numbers of the tasks that support it, once there are any.
    """

    situation: str
    quotes: tuple[Quote, ...]
    task_refs: tuple[int, ...] = ()

    @property
    def latest(self) -> Quote:
        """The statement that holds."""
        return self.quotes[-1]

    @property
    def default(self) -> str:
        """What to do from now on: a piece of the latest quote."""
        return default_of(self.latest.text)


def preferences_of(items: Sequence[Item], *, cwd: str | None) -> list[Preference]:
    """Return what the person of a session prefers, each subject once."""
    return merged(_stated(items, cwd))[-MAX_PREFERENCES:]


def merged(stated: Iterable[Preference]) -> list[Preference]:
    """Fold statements in the order they were made: repetitions count once, a later one replaces what it contradicts."""
    kept: list[Preference] = []
    for statement in stated:
        kept = _folded(kept, statement)
    return kept


def _folded(kept: Sequence[Preference], later: Preference) -> list[Preference]:
    repeated = [one for one in kept if same_words(one.latest.text, later.latest.text)]
    if repeated:
        again = replace(repeated[0], task_refs=_union(repeated[0].task_refs, later.task_refs))
        return [again if one is repeated[0] else one for one in kept]
    before = [one for one in kept if replaces(later.latest.text, one.latest.text)]
    quotes = tuple(quote for one in before for quote in one.quotes)
    refs = _union(*(one.task_refs for one in before), later.task_refs)
    return [
        *(one for one in kept if one not in before),
        replace(
            later,
            situation=before[0].situation if before else later.situation,
            quotes=(*quotes, *later.quotes),
            task_refs=refs,
        ),
    ]


def _union(*refs: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({number for numbers in refs for number in numbers}))


def same_words(one: str, other: str) -> bool:
    """Whether two statements are the same but for case and the punctuation around them."""
    return one.casefold().strip(" .!") == other.casefold().strip(" .!")


def _stated(items: Sequence[Item], cwd: str | None) -> Iterator[Preference]:
    answered = ""
    for item in items:
        if item.kind is not ItemKind.HUMAN:
            answered = _deed(item) or answered
            continue
        for sentence in sentences(item.text):
            voice = classify(sentence)
            if voice is not None:
                corrected = voice is Voice.CORRECTED and answered
                yield Preference(answered if corrected else _place(cwd), (Quote(voice, sentence),))
        answered = ""


def _deed(item: Item) -> str:
    """Name what the agent did, in its own words, as something a person may answer."""
    if item.kind is ItemKind.TOOL_CALL:
        command = command_line(item.text)
        return (
            f"the agent had run {as_code(clip(command, MAX_SITUATION_CHARS))}"
            if command and not is_probe(command)
            else ""
        )
    if item.kind is ItemKind.ASSISTANT_FINAL:
        said = next((sentence for sentence in sentences(item.text) if len(sentence.split()) > 2), "")
        return f'the agent had said "{clip(said, MAX_SITUATION_CHARS)}"' if said else ""
    return ""


def _place(cwd: str | None) -> str:
    place = one_line(cwd or "")
    return f"working in {place}" if is_quotable(place) else "working"
