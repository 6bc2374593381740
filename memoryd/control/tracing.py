"""Where a claim of the memory comes from: found by its id or its words, traced to sessions, their files and lines."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

from memoryd.ledger import claims, holds, outputs, sessions
from memoryd.ledger.claims import ClaimRow
from memoryd.ledger.outputs import SelectedOutput
from memoryd.ledger.sessions import FORGOTTEN, SessionRow
from memoryd.workspace.layout import ROLLOUT_SUMMARIES, Home

MOST_CLAIMS: Final = 5
"""How many of the claims that are found are told."""
MOST_ROWS: Final = 200_000
MOST_LINES: Final = 3
MOST_BYTES: Final = 1024 * 1024
LEAST_FOUND: Final = 0.6
"""Share of the words that are looked for which a claim must have."""
LEAST_SUPPORT: Final = 0.5
"""Share of a claim's words that a line must have to be shown as its support."""
NEAR_BEST: Final = 0.8
"""A line that says much less than the best one is left out."""
_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"#?(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Traced:
    """A claim with its history and what it rests on."""

    row: ClaimRow
    earlier: Sequence[claims.EarlierText]
    successor: ClaimRow | None
    predecessors: Sequence[ClaimRow]
    supports: Sequence[tuple[str, SessionRow | None, SelectedOutput | None]]
    held: Mapping[str, str]
    """Sessions that stay out of the memory until they grow, and why (undone, rejected)."""


def trace(conn: Connection, wanted: str) -> tuple[list[Traced], int]:
    """Return the claims that are meant, the best match first, and how many there are in all."""
    found = _find(conn, wanted)
    traced = [_traced(conn, row) for row in (claims.get(conn, claim_id) for claim_id in found[:MOST_CLAIMS]) if row]
    return traced, len(found)


def told(traced: Traced, home: Home) -> dict[str, Any]:
    """Return everything that is known of a claim, as `--json` prints it; reads the folder's summaries."""
    row = traced.row
    return {
        "id": row.id,
        "text": row.text,
        "section": row.section,
        "scope": row.scope,
        "status": row.status,
        "author": row.author,
        "valid_from": row.valid_from,
        "invalidated_at": row.invalidated_at,
        "closed_because": row.closed_because,
        "successor": _short(traced.successor) if traced.successor else None,
        "predecessors": [_short(each) for each in traced.predecessors],
        "earlier": [{"text": each.text, "status": each.status, "until": each.until} for each in traced.earlier],
        "sessions": [
            {**_support(row.text, *support, home), "held_because": traced.held.get(support[0])}
            for support in traced.supports
        ],
        "usage_count": sum(output.usage_count for _, _, output in traced.supports if output),
        "last_usage": max((o.last_usage for _, _, o in traced.supports if o and o.last_usage), default=None),
    }


def supporting_lines(claim: str, summary: str) -> list[tuple[int, str]]:
    """Return the lines of a session's summary that say most of what a claim says, best first, with their numbers."""
    wanted = set(_words(claim))
    scored = []
    for number, line in enumerate(summary.split("\n"), start=1):
        share = len(wanted & set(_words(line))) / len(wanted) if wanted else 0.0
        if share >= LEAST_SUPPORT:
            scored.append((-share, number, line.strip()))
    scored.sort()
    return [(number, line) for share, number, line in scored[:MOST_LINES] if -share >= NEAR_BEST * -scored[0][0]]


def _find(conn: Connection, wanted: str) -> list[int]:
    number = _NUMBER.fullmatch(wanted.strip())
    if number and claims.get(conn, int(number[1])):
        return [int(number[1])]
    rows = claims.every(conn, limit=MOST_ROWS)
    standing = {row.id: row.invalidated_at is None for row in rows}
    texts = [(row.id, row.text) for row in rows] + claims.every_earlier_text(conn, limit=MOST_ROWS)
    scores: dict[int, tuple[float, float]] = {}
    for claim_id, score in _scored(wanted, texts):
        scores[claim_id] = max(score, scores.get(claim_id, (0.0, 0.0)))
    return sorted(scores, key=lambda each: (scores[each][0], standing[each], scores[each][1], each), reverse=True)


def _scored(wanted: str, texts: Iterable[tuple[int, str]]) -> Iterable[tuple[int, tuple[float, float]]]:
    """Yield how well texts match: the share of the words looked for that they have, then how little else they say."""
    words = set(_words(wanted))
    for claim_id, text in texts:
        has = set(_words(text))
        share = sum(word in has or any(word in each for each in has) for word in words) / len(words) if words else 0.0
        if share >= LEAST_FOUND:
            yield claim_id, (round(share, 3), len(words & has) / len(has))


def _traced(conn: Connection, row: ClaimRow) -> Traced:
    return Traced(
        row=row,
        earlier=claims.earlier_texts(conn, row.id),
        successor=claims.get(conn, row.successor_id) if row.successor_id is not None else None,
        predecessors=claims.predecessors(conn, row.id),
        supports=[
            (thread_id, sessions.get_exact(conn, thread_id), outputs.get(conn, thread_id))
            for thread_id in row.thread_ids
        ],
        held={held.thread_id: held.because for held in holds.held(conn)},
    )


def _short(row: ClaimRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "text": row.text,
        "invalidated_at": row.invalidated_at,
        "closed_because": row.closed_because,
    }


def _support(
    claim: str, thread_id: str, session: SessionRow | None, output: SelectedOutput | None, home: Home
) -> dict[str, Any]:
    forgotten = session is not None and session.excluded == FORGOTTEN
    path = session.path if session and not forgotten else None
    file, summary = _summary(output, home)
    return {
        "thread_id": thread_id,
        "agent": session.agent if session else None,
        "path": path,
        "exists": Path(path).exists() if path else False,
        "cwd": session.cwd if session else None,
        "last_record_at": session.updated_at if session else None,
        "forgotten": forgotten,
        "summary_file": file,
        "lines": [{"line": number, "text": line} for number, line in supporting_lines(claim, summary)],
        "usage_count": output.usage_count if output else 0,
        "last_usage": output.last_usage if output else None,
    }


def _summary(output: SelectedOutput | None, home: Home) -> tuple[str | None, str]:
    """Return the session's file in the memory folder and its text; None where it is not there."""
    if output is None or output.stem is None:
        return None, ""
    name = f"{ROLLOUT_SUMMARIES}/{output.stem}.md"
    try:
        with (home.memories / name).open(encoding="utf-8", errors="replace") as file:
            return name, file.read(MOST_BYTES)
    except OSError:
        return None, ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
