"""Tells where claims of the memory come from: since when they stand, on whose word, from which sessions."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import moment, plural
from memoryd.control.tracing import told, trace
from memoryd.ledger.claims import Author, Closing
from memoryd.ledger.database import Ledger
from memoryd.text import on_one_line
from memoryd.workspace.claims import GLOBAL_SCOPE, NOTED, UNMARKED
from memoryd.workspace.layout import MEMORY_FILE, Home

MARKS: Final = {
    "stated": "stated by the user",
    "verified": "verified by a tool or a test",
    "inferred": "inferred",
    NOTED: "asked for by a note",
    UNMARKED: "without a mark",
}
CLOSED: Final = {
    Closing.EVIDENCE_GONE: "every session that supported it is gone",
    Closing.REPLACED: "other statements took its place",
    Closing.DROPPED: "a consolidation left it out although its evidence is there",
    Closing.REMOVED: "it was taken out of the handbook",
}
SHORT: Final = 100


async def traced(settings: Settings, wanted: str) -> tuple[list[dict[str, Any]], int]:
    """Return what is known of the claims that are meant, and how many there are in all. Raises StorageError."""
    home = Home(settings.home)
    if not home.ledger_file.exists():
        return [], 0
    async with await Ledger.open(home.ledger_file, clock=SystemClock(), read_only=True) as ledger:
        found, number = await ledger.read(trace, wanted)
    return [told(each, home) for each in found], number


def said(claims: list[dict[str, Any]], number: int, wanted: str) -> str:
    """Tell people and agents where the claims come from, or that there is none."""
    return "\n".join(lines(claims, number)) if claims else f"no claim has these words: {on_one_line(wanted)}"


def lines(claims: list[dict[str, Any]], number: int) -> Iterator[str]:
    """Tell the best match in full, and the others a line each."""
    yield from _told(claims[0])
    if number > 1:
        yield ""
        yield f"{plural(number - 1, 'more claim')} with these words:"
        for claim in claims[1:]:
            state = "" if claim["invalidated_at"] is None else f" (closed: {claim['closed_because'] or 'unknown'})"
            yield f"  {claim['id']:>5}  {_cut(claim['text'])}{state}"
        if number > len(claims):
            yield f"         and {number - len(claims)} more: say more of the words"


def _told(claim: Mapping[str, Any]) -> Iterator[str]:
    yield on_one_line(claim["text"])
    yield ""
    yield f"  claim      {claim['id']}, {claim['section']}, in {MEMORY_FILE}"
    yield f"  founded    {MARKS.get(claim['status'], claim['status'])}{_by(claim['author'])}"
    everywhere = claim["scope"] == GLOBAL_SCOPE
    yield f"  holds      {'everywhere' if everywhere else 'in ' + on_one_line(claim['scope'])}"
    yield f"  since      {moment(claim['valid_from'])}"
    yield from _closed(claim)
    if claim["sessions"]:
        last = f", last {moment(claim['last_usage'])}" if claim["last_usage"] else ""
        times = plural(claim["usage_count"], "time") + last if claim["usage_count"] else "never"
        yield f"  cited      {times}, by the sessions that it comes from"
    yield from _history(claim)
    yield ""
    yield "from sessions" if claim["sessions"] else "from no session"
    for session in claim["sessions"]:
        yield from _session(session)


def _by(author: str) -> str:
    return ", written by a person" if author == Author.PERSON else ""


def _closed(claim: Mapping[str, Any]) -> Iterator[str]:
    if claim["invalidated_at"] is None:
        return
    why = CLOSED.get(claim["closed_because"], "the reason was not kept")
    yield f"  closed     {moment(claim['invalidated_at'])}: {why}"
    if claim["successor"]:
        yield f"  now        {claim['successor']['id']}: {_cut(claim['successor']['text'])}"


def _history(claim: Mapping[str, Any]) -> Iterator[str]:
    for earlier in claim["earlier"]:
        yield f"  before     until {moment(earlier['until'])}: {_cut(earlier['text'])} [{earlier['status']}]"
    for former in claim["predecessors"]:
        yield f"  instead of {former['id']}, closed {moment(former['invalidated_at'])}: {_cut(former['text'])}"


def _session(session: Mapping[str, Any]) -> Iterator[str]:
    when = moment(session["last_record_at"]) if session["last_record_at"] is not None else "unknown time"
    where = on_one_line(session["cwd"] or "unknown directory")
    yield f"  {session['thread_id']}  {session['agent'] or 'unknown agent'}  {when}  {where}"
    if session["held_because"]:
        yield f"    kept out of the memory until the session grows: {session['held_because']}"
    if session["forgotten"]:
        yield "    forgotten"
    elif session["path"]:
        yield f"    {on_one_line(session['path'])}{'' if session['exists'] else ' (the file is gone)'}"
    if session["lines"]:
        yield f"    {session['summary_file']}"
    for line in session["lines"]:
        yield f"      {line['line']:>4}  {_cut(line['text'])}"


def _cut(text: str) -> str:
    line = on_one_line(text)
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"
