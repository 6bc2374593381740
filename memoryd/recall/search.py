"""Finds what the memory holds on a question: by words, ranked by how well they fit, where it holds, use and age.

Reads the ledger's index alone, and looks at the files that it names only to say on which line a passage stands now.
Whoever asks needs no daemon, and nothing is written. One that judges meaning would stand beside `by_words`.
"""

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from memoryd.errors import UsageError
from memoryd.ledger import search as ledger
from memoryd.ledger.search import Filters, Found
from memoryd.recall import near, places_now, ranking
from memoryd.recall.ranking import Ranking, Standing
from memoryd.recall.search_words import Term, any_of, parts_of, prefixes_of, terms_of
from memoryd.recall.snippets import snippet_of
from memoryd.workspace.claims import GLOBAL_SCOPE, NOTED, UNMARKED
from memoryd.workspace.layout import Home

CANDIDATES: Final = 80
"""How many matches are looked at closely: the best by words alone are among them."""
FEW: Final = 10
"""With fewer matches, beginnings of words are looked for as well."""
TELLING_MATCHES: Final = 4_000
"""Where all projects are searched, words are taken, the rarest first, until so many entries match: what stands in most
entries tells least, and costs most."""
FEWEST_TERMS: Final = 3
"""So many terms are taken however common they are."""
MARKS: Final = ("stated", "verified", "inferred", NOTED, UNMARKED)
SCOPES: Final = ("all", "project")


class Kind(StrEnum):
    """What a hit is."""

    BULLET = "bullet"
    TASK = "task"
    SUMMARY = "summary"
    SKILL = "skill"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for.

    `words`: a question, or words of the answer. `cwd`: a directory, whose project's entries (and those that hold
    everywhere) come before others; with the scope `project` there are no others. `marks`: how a bullet is founded;
    empty: all, and what is no bullet.
    """

    words: str
    cwd: str | None = None
    scope: str = "all"
    marks: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    max_age_days: float | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Hit:
    """What was found: a passage of a file of the memory folder, as it stands there now.

    `threads`: the sessions behind it; `updated_at`: when they were recorded last, epoch seconds; `score`: larger is
    better, to compare with other hits of the same answer alone.
    """

    path: str
    line: int
    end_line: int
    kind: Kind
    scope: str
    mark: str | None
    section: str | None
    text: str
    snippet: str
    threads: tuple[str, ...]
    updated_at: int | None
    score: float


Ranker: TypeAlias = Callable[[sqlite3.Connection, Sequence[Term], Filters], Mapping[int, float]]
"""Gives the relevance of at most CANDIDATES entries, by their numbers."""


def search(
    conn: sqlite3.Connection, home: Home, question: Question, *, now: float, rankers: Sequence[Ranker] | None = None
) -> tuple[Hit, ...]:
    """Return the best hits, the best first; none when the question has no letter and no digit.

    `rankers` are those whose opinions are fused, `by_words` alone unless given. Raises UsageError for a scope, a mark
    or a number that does not exist, and sqlite3.Error.
    """
    _check(question)
    terms = terms_of(question.words)
    if not terms or question.limit == 0:
        return ()
    here = near.scopes_here(home, question.cwd, ledger.scopes(conn)) if question.cwd else None
    relevance = _relevance(conn, terms, question, here, now, rankers or (by_words,))
    known = ledger.found(conn, relevance)
    standing = _standing(conn, known, here)
    ranked = ranking.order(relevance, standing, now=now)
    return tuple(_hits(conn, home, [(known[each], score) for each, score in ranked], terms, question.limit))


def by_words(conn: sqlite3.Connection, terms: Sequence[Term], filters: Filters) -> Mapping[int, float]:
    """Rank by BM25 over the telling words; beginnings of words join in when these find little."""
    known = _known(conn, terms)
    telling = _telling(known) if filters.scopes is None else [term for _, term in known]
    ranked = ledger.rank(conn, any_of(telling), filters, limit=CANDIDATES) if telling else []
    if len(ranked) < FEW and (prefixes := prefixes_of(terms)):
        weaker = ledger.rank(conn, any_of(prefixes), filters, limit=CANDIDATES)
        scale = min((score for _, score in ranked), default=1.0)
        best = max((score for _, score in weaker), default=1.0)
        return {each: score / best * scale for each, score in weaker} | dict(ranked)
    return dict(ranked)


def has_index(conn: sqlite3.Connection) -> bool:
    """Say whether there is anything to find: False before the first consolidation, or the first start after one."""
    return not ledger.is_empty(conn)


def _check(question: Question) -> None:
    if question.scope not in SCOPES:
        raise UsageError(f"there is no scope {question.scope!r} to search in", remedy=f"one of {', '.join(SCOPES)}")
    if question.scope == "project" and not question.cwd:
        raise UsageError("a search in a project needs its directory", remedy="give one, or search in all of them")
    unknown = sorted(question.marks - set(MARKS))
    if unknown:
        raise UsageError(f"there is no mark {unknown[0]!r}", remedy=f"one of {', '.join(MARKS)}")
    if question.limit < 0 or (question.max_age_days is not None and not question.max_age_days >= 0):
        raise UsageError("a limit or an age below zero finds nothing", remedy="give a number from 0 on")


def _relevance(
    conn: sqlite3.Connection,
    terms: Sequence[Term],
    question: Question,
    here: Collection[str] | None,
    now: float,
    rankers: Sequence[Ranker],
) -> dict[int, float]:
    """Ask the rankers; what holds here is asked for apart, so that no other project crowds it out."""
    wanted = Filters(
        kinds=question.kinds or None,
        marks=question.marks or None,
        since=None if question.max_age_days is None else now - question.max_age_days * ranking.DAY_SECONDS,
    )
    asked = [] if question.scope == "project" else [wanted]
    if here is not None:
        asked.append(Filters(wanted.kinds, wanted.marks, {*here, GLOBAL_SCOPE}, wanted.since))
    rankings = []
    for ranker in rankers:
        found: dict[int, float] = {}
        for filters in asked:
            found |= ranker(conn, terms, filters)
        rankings.append(Ranking(found))
    return ranking.fuse(rankings)


def _known(conn: sqlite3.Connection, terms: Sequence[Term]) -> list[tuple[int, Term]]:
    """Return in how many entries the terms stand, those in most last; of one that stands nowhere, its parts instead."""
    counted = {term: ledger.count_matches(conn, term.expression) for term in terms}
    for part in parts_of(term for term, count in tuple(counted.items()) if not count):
        counted[part] = ledger.count_matches(conn, part.expression)
    return sorted(((count, term) for term, count in counted.items() if count), key=lambda pair: pair[0])


def _telling(known: Sequence[tuple[int, Term]]) -> list[Term]:
    """Leave out what stands in too many entries, but for the first few."""
    telling: list[Term] = []
    matches = 0
    for count, term in known:
        matches += count
        if len(telling) < FEWEST_TERMS or matches <= TELLING_MATCHES:
            telling.append(term)
    return telling


def _standing(
    conn: sqlite3.Connection, known: Mapping[int, Found], here: Collection[str] | None
) -> dict[int, Standing]:
    used = ledger.usage_of(conn, {thread for entry in known.values() for thread in entry.threads})
    return {
        entry.id: Standing(
            entry.kind,
            _place_share(entry.scope, here),
            entry.updated_at,
            sum(used.get(thread, 0) for thread in entry.threads),
        )
        for entry in known.values()
    }


def _place_share(scope: str, here: Collection[str] | None) -> float:
    if here is None or scope in here:
        return 1.0
    return ranking.EVERYWHERE if scope == GLOBAL_SCOPE else ranking.ELSEWHERE


def _hits(
    conn: sqlite3.Connection, home: Home, ranked: Sequence[tuple[Found, float]], terms: Sequence[Term], limit: int
) -> list[Hit]:
    """Give the best that still stand in their files, each text once for each place it holds in."""
    files = places_now.Files(conn, home)
    hits: list[Hit] = []
    seen: set[tuple[str, str]] = set()
    for entry, score in ranked:
        if len(hits) == limit:
            break
        line, text = files.line_of(entry), ledger.text_of(conn, entry.id)
        if line is None or (entry.scope, text) in seen:
            continue
        seen.add((entry.scope, text))
        hits.append(
            Hit(
                path=entry.path,
                line=line,
                end_line=line + entry.end_line - entry.line,
                kind=Kind(entry.kind),
                scope=entry.scope,
                mark=entry.mark,
                section=entry.section,
                text=text,
                snippet=snippet_of(text, terms),
                threads=entry.threads,
                updated_at=entry.updated_at,
                score=round(score, 6),
            )
        )
    return hits
