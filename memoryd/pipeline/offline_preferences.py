"""A person's preferences and corrections, quoted, with what they answered; a later one takes an earlier one's place."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memoryd.pipeline.offline_commands import command_line, is_probe
from memoryd.pipeline.offline_cues import classify, default_of
from memoryd.pipeline.offline_files import edited_paths, is_edit
from memoryd.pipeline.offline_phrases import Voice
from memoryd.pipeline.offline_subjects import replaces
from memoryd.pipeline.offline_text import as_code, clip, is_quotable, one_line, sentences
from memoryd.sources.items import Item, ItemKind

MAX_PREFERENCES: Final = 30
"""More in one session are a pasted document; the latest count."""
MAX_SITUATION_CHARS: Final = 160
MAX_SITUATION_PATHS: Final = 3


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
    return merged(_messages(items, cwd))[-MAX_PREFERENCES:]


def merged(batches: Iterable[Sequence[Preference]]) -> list[Preference]:
    """Put statements together in the order in which they were made.

    What is said again counts once. A later statement takes the place of those that it replaces; statements of one batch
    (a message, a session) were made together and do not replace each other.
    """
    kept: list[Preference] = []
    for batch in batches:
        earlier = frozenset(kept)
        for statement in batch:
            kept = _folded(kept, statement, earlier)
    return kept


def _folded(kept: Sequence[Preference], later: Preference, earlier: Collection[Preference]) -> list[Preference]:
    repeated = next((one for one in kept if same_words(one.latest.text, later.latest.text)), None)
    if repeated is not None:
        again = replace(repeated, task_refs=_union(repeated.task_refs, later.task_refs))
        return [again if one is repeated else one for one in kept]
    before = [one for one in kept if one in earlier and replaces(later.latest.text, one.latest.text)]
    whole = replace(
        later,
        situation=before[0].situation if before else later.situation,
        quotes=tuple(quote for one in (*before, later) for quote in one.quotes),
        task_refs=_union(*(one.task_refs for one in (*before, later))),
    )
    return [*(one for one in kept if one not in before), whole]


def _union(*refs: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({number for numbers in refs for number in numbers}))


def same_words(one: str, other: str) -> bool:
    """Whether two statements are the same but for case and the punctuation around them."""
    return one.casefold().strip(" .!") == other.casefold().strip(" .!")


def _messages(items: Sequence[Item], cwd: str | None) -> Iterator[list[Preference]]:
    """Yield the statements of each message of the person."""
    answered = ""
    for item in items:
        if item.kind is not ItemKind.HUMAN:
            answered = _deed(item) or answered
            continue
        yield [
            Preference(answered if voice is Voice.CORRECTED and answered else _place(cwd), (Quote(voice, sentence),))
            for sentence in sentences(item.text)
            if (voice := classify(sentence)) is not None
        ]
        answered = ""


def _deed(item: Item) -> str:
    """Name what the agent did, in its own words, as something a person may answer."""
    if item.kind is ItemKind.TOOL_CALL and is_edit(item):
        paths = edited_paths((item,))[:MAX_SITUATION_PATHS]
        return f"the agent had changed {', '.join(map(as_code, paths))}" if paths else ""
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
