"""`memoryd search QUERY...`: what the memory holds on a question, ranked; or the lines in which texts stand literally.

Reads; needs no daemon.
"""

import argparse
import asyncio
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memoryd import config
from memoryd.agent.literal import Mode
from memoryd.clock import SystemClock
from memoryd.control.console import print_json
from memoryd.control.counts import from_one, from_zero
from memoryd.control.memory_tools import Desk, find_literally, find_ranked, rows_of
from memoryd.errors import UsageError
from memoryd.recall.ranking import DAY_SECONDS
from memoryd.recall.reading import rendered
from memoryd.recall.search import MARKS, SCOPES, Hit, Kind
from memoryd.recall.tools import (
    DEFAULT_LITERAL,
    DEFAULT_RANKED,
    MAX_CONTEXT,
    MAX_RANKED,
    MAX_WITHIN,
    RANKED,
    Search,
    check_search,
)
from memoryd.values import read_duration

NOTHING: Final = (
    "nothing in the memory answers that: try other words, or `memoryd search --any TEXT` for a literal text"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the question, and what limits the answer."""
    parser.add_argument("query", nargs="+", metavar="QUERY", help="a question, or words of the answer")
    parser.add_argument("--limit", metavar="N", type=from_one, default=0, help=_limits())
    parser.add_argument("--json", action="store_true", help="print JSON")
    ranked = parser.add_argument_group("a question")
    ranked.add_argument("--cwd", metavar="DIR", type=Path, default=Path(), help="whose project comes first: here")
    ranked.add_argument("--scope", choices=SCOPES, default=SCOPES[0], help="project: what holds in it and everywhere")
    ranked.add_argument("--mark", action="append", choices=MARKS, default=[], help="how a statement is founded")
    ranked.add_argument("--kind", action="append", choices=tuple(Kind), default=[], help="what is searched")
    age = ranked.add_mutually_exclusive_group()
    age.add_argument("--max-age", metavar="AGE", type=_age_days, help='not older than this, such as "30d"')
    age.add_argument("--since", metavar="DATE", type=_date, help="not older than this day, such as 2026-01-31")
    literal = parser.add_argument_group("a literal search, in which each QUERY is a text")
    mode = literal.add_mutually_exclusive_group()
    mode.add_argument("--any", dest="mode", action="store_const", const=Mode.ANY, help="lines with any of the texts")
    mode.add_argument("--all", dest="mode", action="store_const", const=Mode.ALL, help="lines with all of them")
    mode.add_argument("--near", metavar="N", type=from_one, help="all of them within so many lines")
    literal.add_argument("--context", metavar="N", type=from_zero, default=0, help="lines to show around each match")
    literal.add_argument("--path", default="", help="a file or folder of the memory: there alone")
    literal.add_argument("--case-sensitive", action="store_true", help="tell upper from lower case")
    literal.add_argument("--normalised", action="store_true", help="compare letters and digits alone")
    literal.add_argument("--cursor", default="", help="where the previous answer said to go on")


def run(args: argparse.Namespace) -> int:
    """Search, and print what is found. Exit 1 when nothing is."""
    desk = Desk(config.load(args.home, environ=config.environ()), str(Path.cwd()))
    asked = _asked(args)
    check_search(asked)
    show = _print_lines if asked.is_literal else _print_hits
    return show(desk, asked, as_json=args.json)


def _asked(args: argparse.Namespace) -> Search:
    mode = Mode.NEAR if args.near is not None else args.mode
    if mode is not None:
        return Search(
            queries=tuple(args.query),
            mode=mode,
            path=args.path,
            within_lines=min(args.near or 1, MAX_WITHIN),
            context_lines=min(args.context, MAX_CONTEXT),
            case_sensitive=args.case_sensitive,
            normalised=args.normalised,
            cursor=args.cursor,
            limit=args.limit,
        )
    words = " ".join(args.query)
    if not any(character.isalnum() for character in words):
        raise UsageError("`memoryd search` needs a word to look for")
    age = args.max_age
    if args.since is not None:
        age = max(0.0, SystemClock().now() - args.since) / DAY_SECONDS
    if age is not None and age <= 0:
        raise UsageError("nothing is younger than that", remedy="give an earlier day, or a longer time")
    return Search(
        query=words,
        mode=RANKED,
        scope=args.scope,
        cwd=str(args.cwd.absolute()),
        marks=tuple(args.mark),
        kinds=tuple(args.kind),
        max_age_days=age or 0,
        limit=args.limit,
    )


def _print_hits(desk: Desk, asked: Search, *, as_json: bool) -> int:
    hits, why_not = asyncio.run(find_ranked(desk, asked))
    if as_json:
        print_json({"query": asked.words, "hits": [_told(desk, hit) for hit in hits], "why_not": why_not or None})
    else:
        print("\n".join(rows_of(hits, desk.clean)) or why_not or NOTHING)
    return 0 if hits else 1


def _told(desk: Desk, hit: Hit) -> dict[str, Any]:
    return {**asdict(hit), "text": desk.clean(hit.text), "snippet": desk.clean(hit.snippet)}


def _print_lines(desk: Desk, asked: Search, *, as_json: bool) -> int:
    page = find_literally(desk, asked)
    if as_json:
        print_json(
            {
                "queries": list(asked.queries),
                "mode": asked.mode,
                "matches": [asdict(match) for match in page.matches],
                "cursor": page.cursor,
                "stopped": str(page.stopped) if page.stopped else None,
            }
        )
    else:
        print(rendered(page, go_on="--cursor "))
    return 0 if page.matches else 1


def _limits() -> str:
    return f"how many results (default: {DEFAULT_RANKED}, at most {MAX_RANKED}; literal: {DEFAULT_LITERAL} lines)"


def _age_days(text: str) -> float:
    try:
        return read_duration(text) / DAY_SECONDS
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _date(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day such as 2026-01-31") from None
