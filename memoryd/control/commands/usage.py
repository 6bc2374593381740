"""`memoryd usage`: what was asked of models, by day, job or model, and what it took."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import plural, print_json
from memoryd.errors import UsageError
from memoryd.ledger import spend
from memoryd.ledger.database import Ledger
from memoryd.ledger.spend import By, UsageRow
from memoryd.workspace.layout import Home

DAY_SECONDS: Final = 86_400
DEFAULT_DAYS: Final = 30
SUMS: Final = (
    "requests",
    "estimated",
    "tokens",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "tokens_reasoning",
    "cost",
    "duration_ms",
)
HEADINGS: Final = ("requests", "tokens", "in", "out", "cached", "thought", "USD", "seconds", "how they ended")


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `usage`."""
    parser.add_argument("--by", choices=[by.value for by in By], default=By.DAY.value, help="what to sum up by")
    parser.add_argument(
        "--days", type=int, default=DEFAULT_DAYS, metavar="N", help=f"UTC days up to today ({DEFAULT_DAYS})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the table; it is read beside a running daemon."""
    if not 1 <= args.days <= 36_500:
        raise UsageError("--days must be a number of days, 1 to 36500")
    settings = config.load(args.home, environ=config.environ())
    by, since = By(args.by), first_midnight(SystemClock().now(), args.days)
    rows = asyncio.run(_read(settings, by, since))
    report = as_json(rows, by=by, days=args.days, since=since)
    if args.json:
        print_json(report)
    else:
        print("\n".join(lines(rows, report, has_prices=settings.has_prices)))
    return 0


def first_midnight(now: float, days: int) -> int:
    """Return the beginning of the first of so many UTC days, of which today is the last."""
    return max(0, int(now) - int(now) % DAY_SECONDS - (days - 1) * DAY_SECONDS)


def as_json(rows: Sequence[UsageRow], *, by: By, days: int, since: int) -> dict[str, Any]:
    """Return the sums as data: {by, days, since, rows: [{label, requests, ..., outcomes}], total}."""
    ended: Counter[str] = Counter()
    for row in rows:
        ended.update(row.outcomes)
    total = {name: sum(getattr(row, name) for row in rows) for name in SUMS}
    return {
        "by": by.value,
        "days": days,
        "since": since,
        "rows": [
            {"label": row.label, **{name: getattr(row, name) for name in SUMS}, "outcomes": dict(row.outcomes)}
            for row in rows
        ],
        "total": {**total, "outcomes": dict(ended)},
    }


def lines(rows: Sequence[UsageRow], report: dict[str, Any], *, has_prices: bool) -> list[str]:
    """Lay the sums out for a person."""
    if not rows:
        return [f"no model was asked in the last {plural(report['days'], 'UTC day')}"]
    table: list[tuple[str, ...]] = [(str(report["by"]), *HEADINGS)]
    table += [(row["label"], *_cells(row, has_prices)) for row in report["rows"]]
    table.append(("total", *_cells(report["total"], has_prices)))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]
    told = [
        "  ".join(
            [row[0].ljust(widths[0]), *(row[at].rjust(widths[at]) for at in range(1, len(widths))), row[-1]]
        ).rstrip()
        for row in table
    ]
    if report["total"]["estimated"]:
        count = plural(report["total"]["estimated"], "request")
        told.append(
            f"{count} counted as estimated: the server did not say what it took, or memoryd was killed meanwhile"
        )
    if not has_prices:
        told.append("no prices are set, so the cost is not known: set prices of the provider")
    return told


def _cells(row: dict[str, Any], has_prices: bool) -> tuple[str, ...]:
    numbers = [f"{row[name]:,}" for name in ("requests", *SUMS[2:7])]
    ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(row["outcomes"].items()))
    cost = f"{row['cost']:.4f}" if has_prices or row["cost"] else "?"
    return (*numbers, cost, f"{row['duration_ms'] / 1000:.1f}", ended)


async def _read(settings: Settings, by: By, since: int) -> list[UsageRow]:
    file = Home(settings.home).ledger_file
    if not file.exists():
        return []
    async with await Ledger.open(file, clock=SystemClock(), read_only=True) as ledger:
        return await ledger.read(spend.usage, by=by, since=since)
