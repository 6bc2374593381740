"""Messages in Gemini form (a text or a list of parts), as Gemini CLI and Qwen Code write them: whose words they are.

A user message may carry what the program put beside the person's words: files named with @, hook output, reminders.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, UnsetType

from memoryd.sources.items import HARNESS_CONTEXT, HUMAN, OTHER_AGENT, Item, ItemKind
from memoryd.sources.parts import Part, Spot
from memoryd.sources.rawjson import UNREADABLE, as_fields, as_list, as_text, is_text, is_true


class UsualCall(msgspec.Struct, gc=False):
    """A functionCall as it is nearly always written; its arguments stay raw."""

    id: str | None = None
    name: str | None = None
    args: Raw = Raw()


class UsualAnswer(msgspec.Struct, gc=False):
    """What a tool gave back, as it is nearly always written: one text."""

    output: str | None = None
    error: str | None = None

    def text(self) -> str | None:
        """Return the text that the tool gave back; None where there is none and something else must be looked for."""
        return self.error if self.output is None else self.output


class UsualResponse(msgspec.Struct, gc=False):
    """A functionResponse as it is nearly always written."""

    response: UsualAnswer
    id: str | None = None
    name: str | None = None


class GivenResponse(msgspec.Struct, gc=False):
    """A functionResponse that may repeat one that was told before: what the tool gave back is not even decoded."""

    response: Raw
    id: str | None = None
    name: str | None = None


class UsualMedium(msgspec.Struct, gc=False):
    """An image or a file; its content is passed over."""

    mime: str | None = msgspec.field(default=None, name="mimeType")


class _AnyPart(msgspec.Struct, gc=False):
    text: str | UnsetType = UNSET
    thought: bool = False
    call: UsualCall | UnsetType = msgspec.field(default=UNSET, name="functionCall")
    inline: UsualMedium | UnsetType = msgspec.field(default=UNSET, name="inlineData")
    file: UsualMedium | UnsetType = msgspec.field(default=UNSET, name="fileData")


class UsualPart(_AnyPart, gc=False):
    """A part as it is nearly always written, decoded in one go with the line that it stands in."""

    response: UsualResponse | UnsetType = msgspec.field(default=UNSET, name="functionResponse")


class GivenPart(_AnyPart, gc=False):
    """The same where responses are mostly repetitions."""

    response: GivenResponse | UnsetType = msgspec.field(default=UNSET, name="functionResponse")


UsualParts = Sequence[UsualPart | GivenPart] | str
Called = Raw | UsualCall
Answered = Raw | UsualResponse | GivenResponse


class Content(msgspec.Struct, frozen=True, gc=False):
    """A message's content, sorted; calls and responses are as they were decoded, `dropped` counts what is no text."""

    texts: Sequence[str] = ()
    calls: Sequence[Called] = ()
    responses: Sequence[Answered] = ()
    dropped: Sequence[str] = ()


class _Part(msgspec.Struct):
    text: Raw = Raw()
    thought: Raw = Raw()
    call: Raw = msgspec.field(default=Raw(), name="functionCall")
    response: Raw = msgspec.field(default=Raw(), name="functionResponse")
    inline: Raw = msgspec.field(default=Raw(), name="inlineData")
    file: Raw = msgspec.field(default=Raw(), name="fileData")


HARNESS = Part(HARNESS_CONTEXT, "")
CONTEXT_MARKER = "<session_context>"
SUMMARY_MARKER = "<state_snapshot>"

# how a text begins that the program wrote, and whose it is; compared without regard to letter case
MARKERS = (
    (CONTEXT_MARKER, HARNESS),
    ("<environment_context>", HARNESS),
    ("this is the gemini cli. we are setting up the context", HARNESS),
    ("this is the qwen code. we are setting up the context", HARNESS),
    ("i ran the following shell command:", HARNESS),
    ("<task-notification>", Part(OTHER_AGENT, "")),
    (SUMMARY_MARKER, Part(None, "", "compaction")),
    ("<project_context>", Part(None, "", "agents_md")),
    ("<loaded_context>", Part(None, "", "agents_md")),
    ("--- context from: ", Part(None, "", "agents_md")),
    ("here is the user's editor context", Part(None, "", "editor_context")),
    ("here is a summary of changes in the user's editor context", Part(None, "", "editor_context")),
    ("system: please continue.", Part(None, "", "harness")),
)
_OPENINGS = tuple(opening for opening, _ in MARKERS)
_LONGEST_MARKER = max(map(len, _OPENINGS))
_PERSON = Part(HUMAN, "")
_FILES_LINE = "--- Content from referenced files ---"
_FILES_OPEN = re.compile(rf"^[ \t]*{_FILES_LINE}[ \t]*$", re.MULTILINE)
_FILES_CLOSE = re.compile(r"^[ \t]*--- End of content ---[ \t]*$", re.MULTILINE)
_INJECTED = re.compile(r"(?ims)^[ \t]*<(system-reminder|hook_context)>.*?(?:</\1>|\Z)")
_COMMAND = re.compile(r"\?|/[a-z?][\w.:-]*", re.IGNORECASE)

_part = msgspec.json.Decoder(_Part)
_list = msgspec.json.Decoder(list[_Part])
_NOTHING = Content()


def parse_content(raw: Raw | None) -> Content:
    """Sort a content value: a text, one part, or a list of texts and parts."""
    if not raw:
        return _NOTHING
    if is_text(raw):
        text = as_text(raw) or ""
        return Content((text,)) if text.strip() else _NOTHING
    found = _Sorted([], [], [], [])
    for part in _parts(raw):
        found.add(part)
    return Content(tuple(found.texts), tuple(found.calls), tuple(found.responses), tuple(found.dropped))


def usual_content(parts: UsualParts) -> Content | None:
    """Sort a content that is decoded already; None where a response has no text and wants a closer look."""
    if isinstance(parts, str):
        return Content((parts,)) if parts and not parts.isspace() else _NOTHING
    texts: list[str] = []
    calls: list[Called] = []
    responses: list[Answered] = []
    dropped: list[str] = []
    for part in parts:
        if part.call is not UNSET:
            calls.append(part.call)
        elif part.response is not UNSET:
            response = part.response
            if isinstance(response, UsualResponse) and response.response.text() is None:
                return None
            responses.append(response)
        elif (reason := _why_no_text(part)) is not None:
            dropped.append(reason)
        elif part.text is not UNSET and part.text and not part.text.isspace():
            texts.append(part.text)
    return Content(texts, calls, responses, dropped)


def _why_no_text(part: _AnyPart) -> str | None:
    medium = part.file if part.inline is UNSET else part.inline
    if medium is not UNSET:
        return _kind_of_medium(medium.mime)
    return "reasoning" if part.thought else None


def human_parts(texts: Sequence[str]) -> list[Part]:
    """Tell the person's words in the texts of one user message from what the program put beside them."""
    own, had_files = _without_files(texts)
    parts = [Part(None, "", "referenced_files")] if had_files else []
    for text in own:
        words, removed = _INJECTED.subn("", text) if "<" in text else (text, 0)
        parts += [Part(None, "", "reminder")] * removed
        trimmed = words.strip()
        if trimmed:
            speaker = _by_marker(trimmed)
            parts.append(Part(speaker.kind, trimmed, speaker.reason))
    if [part.kind for part in parts] == [HUMAN] and _COMMAND.fullmatch(parts[0].text):
        return [Part(None, "", "command")]
    return parts


def part_items(parts: Sequence[Part], spot: Spot, dropped: Counter[str]) -> list[Item]:
    """Turn parts into items, one per run of the same speaker; what is dropped is counted."""
    runs: list[tuple[ItemKind, list[str]]] = []
    for part in parts:
        if part.kind is None:
            dropped[part.reason] += 1
        elif runs and runs[-1][0] is part.kind:
            runs[-1][1].append(part.text)
        else:
            runs.append((part.kind, [part.text]))
    return [Item(kind, "\n\n".join(texts), spot.ordinal, spot.at, spot.cwd) for kind, texts in runs]


@dataclass(slots=True)
class _Sorted:
    texts: list[str]
    calls: list[Called]
    responses: list[Answered]
    dropped: list[str]

    def add(self, part: _Part) -> None:
        if part.call:
            self.calls.append(part.call)
        elif part.response:
            self.responses.append(part.response)
        elif part.inline or part.file:
            self.dropped.append(_medium(part.inline or part.file))
        elif is_true(part.thought):
            self.dropped.append("reasoning")
        elif (text := as_text(part.text)) and text.strip():
            self.texts.append(text)


def _parts(raw: Raw) -> list[_Part]:
    """Decode the parts of a list, or the one part; texts in a list are parts too, anything else is left out."""
    try:
        return _list.decode(raw)
    except UNREADABLE:
        pass
    values = as_list(raw) or [raw]
    return [_Part(text=value) if is_text(value) else _decode(value) for value in values]


def _decode(value: Raw) -> _Part:
    try:
        return _part.decode(value)
    except UNREADABLE:
        return _Part()


def _medium(raw: Raw) -> str:
    return _kind_of_medium(as_text(as_fields(raw).get("mimeType")))


def _kind_of_medium(mime: str | None) -> str:
    kind = (mime or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "attachment"


def _by_marker(text: str) -> Part:
    start = text[:_LONGEST_MARKER].lower()
    if not start.startswith(_OPENINGS):
        return _PERSON
    return next(speaker for opening, speaker in MARKERS if start.startswith(opening))


def _without_files(texts: Sequence[str]) -> tuple[list[str], bool]:
    """Return the texts without the files that the program put in for @names, and whether there were any.

    A file may itself hold the closing line: the last one counts, and where there is none the files go to the end.
    """
    opened = next(
        (
            (index, found)
            for index, text in enumerate(texts)
            if _FILES_LINE in text and (found := _FILES_OPEN.search(text))
        ),
        None,
    )
    if opened is None:
        return list(texts), False
    first, opening = opened
    kept = [*texts[:first], texts[first][: opening.start()]]
    closings = [(index, found) for index in range(first, len(texts)) for found in _FILES_CLOSE.finditer(texts[index])]
    if closings and (closings[-1][0] > first or closings[-1][1].start() >= opening.end()):
        last, closing = closings[-1]
        kept += [texts[last][closing.end() :], *texts[last + 1 :]]
    return kept, True
