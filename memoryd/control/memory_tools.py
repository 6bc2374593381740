"""What answers the five tools of recall/tools.py, for the MCP server and for the commands of the same names.

Needs no daemon: the folder and the ledger are read as they are, and a note is a file of its own.
"""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memoryd.agent.views import LINE_OFFSET
from memoryd.clock import SystemClock, utc_day
from memoryd.config import Settings
from memoryd.control import claims_told
from memoryd.errors import MemorydError, UsageError
from memoryd.ledger.database import Ledger
from memoryd.recall import hook, reading
from memoryd.recall.reading import Page
from memoryd.recall.ready import excluded_patterns
from memoryd.recall.search import Hit, Kind, Question, has_index, search
from memoryd.recall.tools import (
    DEFAULT_LITERAL,
    DEFAULT_RANKED,
    MAX_RANKED,
    List,
    Note,
    Read,
    Request,
    Search,
    Why,
    parse,
)
from memoryd.redact import Redactor
from memoryd.text import on_one_line, truncate_bytes
from memoryd.workspace.claims import GLOBAL_SCOPE
from memoryd.workspace.layout import Home
from memoryd.workspace.notes import with_origin

MAX_ANSWER_BYTES: Final = 81_000
"""Every answer is bounded; those of the folder are by themselves."""
CUT: Final = "\n[... cut: ask for less]"
MAX_THREADS: Final = 5
"""Sessions that are named of one hit, the last by name; a statement may rest on hundreds, and `why` tells them all."""
AGENT: Final = "agent"
NOT_FOR_A_NAME: Final = re.compile(r"[^\w.:@+-]+")
NOT_INDEXED: Final = (
    "nothing is indexed yet, which the next consolidation does: `memoryd sync --now`;"
    " a literal search (any, all, near) reads the files themselves"
)
WITHHELD: Final = "the user's settings give agents nothing here: {why}"


@dataclass(frozen=True, slots=True)
class Desk:
    """Where questions are answered: the settings, and the directory that whoever asks works in."""

    settings: Settings
    cwd: str

    @property
    def home(self) -> Home:
        """The home that is asked about."""
        return Home(self.settings.home)

    def clean(self, text: str) -> str:
        """Take secrets out of what is shown."""
        return Redactor(self.settings.privacy.patterns).clean(text)


def answer(desk: Desk, name: str, arguments: dict[str, Any], client: str) -> str:
    """Carry out an agent's call. Blocking; raises MemorydError with what to do about it."""
    request = parse(name, arguments)
    if not isinstance(request, Note):
        refuse_withheld(desk)
    said = _answered(desk, request, client)
    return (
        said
        if len(said.encode("utf-8", "replace")) <= MAX_ANSWER_BYTES
        else truncate_bytes(said, MAX_ANSWER_BYTES) + CUT
    )


def refuse_withheld(desk: Desk) -> None:
    """Raise UsageError where the settings say that agents be given nothing."""
    if desk.settings.recall.scope == "off":
        raise UsageError(WITHHELD.format(why='recall.scope is "off"'), remedy="go on without the memory")
    places = [hook.normal(desk.cwd), hook.normal(os.path.realpath(desk.cwd))]
    if hook.is_excluded(excluded_patterns(desk.settings.recall), places):
        raise UsageError(WITHHELD.format(why="recall.exclude_cwd names this folder"), remedy="go on without the memory")


def find_literally(desk: Desk, asked: Search) -> Page:
    """Find texts in the memory folder. Raises UsageError, StorageError."""
    return reading.search_literally(
        desk.home.memories,
        asked.literal,
        path=asked.path,
        context=asked.context_lines,
        cursor=asked.cursor,
        limit=asked.limit or DEFAULT_LITERAL,
        clean=desk.clean,
    )


def read_lines(desk: Desk, asked: Read, *, numbered: bool = True, go_on: str = LINE_OFFSET) -> str:
    """Show lines of a file of the memory folder. Raises UsageError, StorageError."""
    return reading.read_lines(
        desk.home.memories,
        asked.path,
        line_offset=asked.line_offset,
        max_lines=asked.max_lines,
        clean=desk.clean,
        numbered=numbered,
        go_on=go_on,
    )


async def find_ranked(desk: Desk, asked: Search) -> tuple[tuple[Hit, ...], str]:
    """Answer a question from the index; the text says why there can be no answer. Raises UsageError, StorageError."""
    if unknown := sorted(set(asked.kinds) - set(Kind)):
        raise UsageError(f"search: there is no kind {unknown[0][:40]!r}", remedy=f"the kinds are: {', '.join(Kind)}")
    question = Question(
        words=asked.words,
        cwd=str(Path(desk.cwd, asked.cwd)),
        scope=asked.scope,
        marks=frozenset(asked.marks),
        kinds=frozenset(map(Kind, asked.kinds)),
        max_age_days=asked.max_age_days or None,
        limit=min(asked.limit or DEFAULT_RANKED, MAX_RANKED),
    )
    clock = SystemClock()
    if not desk.home.ledger_file.exists():
        return (), "there is no memory yet: `memoryd sync` makes it from recorded sessions"
    async with await Ledger.open(desk.home.ledger_file, clock=clock, read_only=True) as ledger:
        hits = await ledger.read(search, desk.home, question, now=clock.now())
        made = bool(hits) or await ledger.read(has_index)
    return hits, "" if made else NOT_INDEXED


def rows_of(hits: Sequence[Hit], clean: reading.Clean) -> Iterator[str]:
    """Tell what was found: place, kind, mark, scope and date on one line, the words and the sessions below."""
    for hit in hits:
        lines = str(hit.line) if hit.end_line == hit.line else f"{hit.line}-{hit.end_line}"
        facts = [
            hit.kind.value,
            f"[{hit.mark}]" if hit.mark else "",
            "everywhere" if hit.scope == GLOBAL_SCOPE else hit.scope,
        ]
        day = utc_day(hit.updated_at) if hit.updated_at else ""
        yield f"{hit.path}:{lines}  {', '.join(filter(None, (*facts, day)))}"
        yield f"  {clean(on_one_line(hit.snippet or hit.text))}"
        if hit.threads:
            more = len(hit.threads) - MAX_THREADS
            shown = ", ".join(hit.threads[-MAX_THREADS:])
            yield f"  from {shown}{f', and {more} more' if more > 0 else ''}"


def _answered(desk: Desk, request: Request, client: str) -> str:
    match request:
        case Search() if request.is_literal:
            return reading.rendered(find_literally(desk, request))
        case Search():
            hits, why_not = asyncio.run(find_ranked(desk, request))
            return (
                "\n".join(rows_of(hits, desk.clean)) or why_not or "[nothing found: try other words, or a literal mode]"
            )
        case Read():
            return read_lines(desk, request)
        case List():
            return reading.list_folder(desk.home.memories, request.path)
        case Why():
            return _why(desk, request)
        case Note():
            return _noted(desk, request, client)


def _why(desk: Desk, request: Why) -> str:
    if not any(character.isalnum() for character in request.statement):
        raise UsageError("why: give words of a statement, or the number of a claim")
    claims, number = asyncio.run(claims_told.traced(desk.settings, request.statement))
    return desk.clean(claims_told.said(claims, number, request.statement))


def _noted(desk: Desk, request: Note, client: str) -> str:
    from memoryd.control import noting  # what takes the lock is a third of the start, and seldom needed

    by = NOT_FOR_A_NAME.sub("-", client).strip("-")[:60] or AGENT
    text = with_origin(request.text, by=by, session=request.session, quote=request.quote)
    path = noting.write(desk.settings, text)
    try:
        asyncio.run(noting.let_know(desk.settings))
        when = "the next consolidation takes it in"
    except MemorydError:
        when = "it is kept; memoryd takes it in once it runs again"
    return f"written to {path.relative_to(desk.home.memories)}; {when}"
