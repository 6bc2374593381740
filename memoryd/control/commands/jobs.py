"""`memoryd jobs list | show | retry`: the ledger of what must be done, readable."""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import plural, print_json
from memoryd.control.job_told import history, line_of
from memoryd.control.prospects import stand
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.errors import LedgerBusy, UsageError
from memoryd.ledger import jobs
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import JobRow
from memoryd.ledger.states import JobKind, Status
from memoryd.workspace.layout import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the actions of `jobs`."""
    parser.add_argument("action", nargs="?", choices=["list", "show", "retry"], default="list")
    parser.add_argument("key", nargs="?", help="a thread id (or a unique beginning of one), or `global`")
    parser.add_argument("--status", choices=[status.value for status in Status], help="list: only these")
    parser.add_argument("--all", action="store_true", help="retry: every job that is out of attempts")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Do the action. Exit 1 when there is nothing to retry."""
    settings = config.load(args.home, environ=config.environ())
    if args.action == "list" and args.key:
        raise UsageError("`memoryd jobs list` takes no key", remedy=f"`memoryd jobs show {args.key}` shows one job")
    if args.action == "list":
        return asyncio.run(_list(settings, args))
    if args.action == "retry" and args.all:
        return asyncio.run(_retry(settings, None, as_json=args.json))
    if not args.key:
        raise UsageError(f"`memoryd jobs {args.action}` needs a job's key", remedy="`memoryd jobs` lists them")
    return asyncio.run(
        _show(settings, args) if args.action == "show" else _retry(settings, args.key, as_json=args.json)
    )


async def _list(settings: Settings, args: argparse.Namespace) -> int:
    status = Status(args.status) if args.status else None
    async with await _reader(settings) as ledger:
        rows = await ledger.read(jobs.list_jobs, status=status)
    if args.json:
        print_json([_row_json(row) for row in rows])
    elif not rows:
        print(f"no job has the status {status.value}" if status else "no jobs yet: `memoryd sync` looks for sessions")
    else:
        now = SystemClock().now()
        print("\n".join(line_of(row, now) for row in rows))
    return 0


async def _show(settings: Settings, args: argparse.Namespace) -> int:
    async with await _reader(settings) as ledger:
        row = await _find(ledger, args.key)
        detail = await ledger.read(jobs.show, JobKind(row.kind), row.job_key)
    assert detail is not None
    if args.json:
        print_json({"job": _row_json(row), "attempts": [asdict(attempt) for attempt in detail.attempts]})
    else:
        clock = SystemClock()
        print("\n".join(history(detail, await stand(settings, clock), now=clock.now())))
    return 0


async def _retry(settings: Settings, key: str | None, *, as_json: bool) -> int:
    """Retry one job, or with None all that are out of attempts."""
    async with await _reader(settings) as ledger:
        rows = [await _find(ledger, key)] if key else await ledger.read(jobs.list_jobs, status=Status.ERROR)
    revived = await _revived(settings, rows)
    exit_code = 0 if revived or not (key or rows) else 1
    if as_json:
        print_json({"revived": [_row_json(row) for row in rows if row in revived]})
        return exit_code
    for row in rows:
        if row not in revived:
            print(f"{row.kind} {row.job_key} is {row.status.value}: there is nothing to try again")
    if revived:
        what = f"{revived[0].kind} {revived[0].job_key}" if len(rows) == 1 else plural(len(revived), "job")
        print(f"{what} will be tried again by the daemon, or by `memoryd sync`")
    elif not rows:
        print("no job is out of attempts")
    return exit_code


async def _revived(settings: Settings, rows: Sequence[JobRow]) -> list[JobRow]:
    """Revive jobs, here or by asking the daemon that holds the lock; return those that were."""
    try:
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role="jobs") as context:
            revived = [
                row
                for row in rows
                if await context.ledger.write(
                    jobs.retry,
                    kind=JobKind(row.kind),
                    job_key=row.job_key,
                    now=context.clock.now(),
                    max_attempts=settings.ledger.max_attempts,
                )
            ]
            await context.look_at_providers(asked=True)
            return revived
    except LedgerBusy:
        home = Home(settings.home)
        if not daemon_holds(home):
            raise
        return [row for row in rows if await _daemon_revives(home, row)]


async def _daemon_revives(home: Home, row: JobRow) -> bool:
    request = {"do": "retry", "kind": row.kind, "key": row.job_key}
    return bool((await control_socket.ask(home.socket, request, lambda _step: None))["revived"])


async def _reader(settings: Settings) -> Ledger:
    return await Ledger.open(Home(settings.home).ledger_file, clock=SystemClock(), read_only=True)


async def _find(ledger: Ledger, key: str) -> JobRow:
    """Find a job by its key, its bare form without the agent's name, or the unique beginning of either."""
    rows = await ledger.read(jobs.list_jobs, limit=1_000_000)
    exact = [row for row in rows if row.job_key == key or f"{row.kind}/{row.job_key}" == key or row.kind == key]
    bare = [row for row in rows if row.job_key.partition(":")[2] == key]
    found = exact or bare or [row for row in rows if row.job_key.startswith(key) or f":{key}" in row.job_key]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} jobs begin with {key!r}", remedy="write more of the key")
    raise UsageError(f"there is no job {key!r}", remedy="`memoryd jobs` lists them")


def _row_json(row: JobRow) -> dict[str, object]:
    hidden = {"ownership_token"}
    return {name: value for name, value in row._asdict().items() if name not in hidden}
