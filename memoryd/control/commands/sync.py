"""`memoryd sync`: one full pass, here or, when a daemon holds the lock, by asking it."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Mapping
from typing import Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import moment, plural, print_json, progress_reporter, start_logging
from memoryd.control.history import Bound, sentence, waiting_history
from memoryd.control.wording import MEANING_OF_WAIT
from memoryd.daemon import control_socket, house
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.daemon.passes import as_json, run_pass
from memoryd.daemon.progress import Progress, Step
from memoryd.errors import LedgerBusy
from memoryd.pipeline.eligibility import MEANING
from memoryd.workspace.layout import Home

SHOWN_KEYS = 3
CONSENTS: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("recent", "yes", "y"), "recent"),
    "all": "all",
    **dict.fromkeys(("no", "n", ""), None),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `sync`."""
    parser.add_argument(
        "--now",
        action="store_true",
        help="ignore idle time, debounce and min_interval; failed jobs still wait: `memoryd jobs retry`",
    )
    parser.add_argument("--thread", metavar="ID", help="extract this session only")
    parser.add_argument(
        "--backfill",
        choices=["recent", "all"],
        help="consent to sessions recorded before memoryd's first start: those within max_age, or all",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Make the pass. Exit 0 done, 1 a job failed, 3 due work was left undone for a stated reason."""
    settings = config.load(args.home, environ=config.environ())
    if not daemon_holds(Home(settings.home)):  # a service may have keys that this shell has not
        house.check_settings(settings, config.environ())
    start_logging(settings, beside_bars=True)
    result = _passed(settings, args)
    if not args.json and args.backfill is None and _waiting_for_consent(result):
        bounds = asyncio.run(waiting_history(settings))
        args.backfill = _consent(_waiting_for_consent(result), bounds)
        if args.backfill:
            result = _passed(settings, args)
    if args.json:
        print_json(result)
    else:
        print("\n".join(summary_lines(result)))
    return int(str(result["exit_code"]))


def _passed(settings: Settings, args: argparse.Namespace) -> dict[str, object]:
    with progress_reporter() as progress:
        try:
            return asyncio.run(_sync(settings, args, progress))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def _waiting_for_consent(result: Mapping[str, object]) -> int:
    waiting = result.get("waiting")
    return int(waiting.get("consent", 0)) if isinstance(waiting, dict) else 0


def _consent(count: int, bounds: Mapping[str, Bound]) -> str | None:
    """Say what sending history would take, and ask a person on a terminal, and nobody else, whether it may be sent."""
    print(f"{plural(count, 'session')} from before memoryd's first start may be sent to the provider.")
    for backfill, found in bounds.items():
        print(f"  {backfill}: {sentence(found)}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("Nothing of it is sent before you consent: `memoryd sync --backfill recent`, or all.")
        return None
    while True:
        print("Send them? recent, all or no [no]: ", end="", flush=True)
        answer = sys.stdin.readline().strip().lower()
        if answer in CONSENTS:
            return CONSENTS[answer]
        print("please write one of: recent, all, no")


def summary_lines(result: Mapping[str, object]) -> list[str]:
    """Tell a pass's result (the JSON of `as_json`) to a person."""
    stage1 = _counts(result, "memory_stage1")
    stage2 = _counts(result, "memory_consolidate_global")
    remembered, nothing = stage1.get("remembered", 0), stage1.get("nothing_to_remember", 0)
    seen = plural(_number(result, "seen"), "session")
    lines = [f"read {seen}: {remembered} remembered, {nothing} with nothing to remember"]
    lines += _reasons("left out", result.get("excluded"), MEANING)
    lines += _reasons("not yet", result.get("waiting"), MEANING)
    if stage2.get("published"):
        lines.append("the memory folder was consolidated, accepted and committed")
    elif stage2.get("proposed"):
        lines.append("a consolidation is made and waits for your word: `memoryd review show`")
    elif stage2.get("unchanged"):
        lines.append("the memory folder stands as it was: nothing to change")
    elif result.get("consolidates_at"):
        until = moment(float(str(result["consolidates_at"])))
        lines.append(f"the consolidation waits until {until}, for more sessions or its interval (--now: at once)")
    elif result.get("agents") and not (stage1 or stage2 or result.get("undone")):
        lines.append("nothing new for the memory folder")
    lines += _failures(_list(result, "failures"))
    lines += _reasons("waits", result.get("undone"), MEANING_OF_WAIT)
    if dead := _number(result, "dead"):
        lines.append(f"out of attempts: {plural(dead, 'job')}; `memoryd jobs retry --all` tries again")
    lines += [f"no sessions to read at {root}" for root in _list(result, "missing_roots")]
    if not result.get("agents"):
        lines.append("no agent is configured, so nothing was looked for: run `memoryd init`")
    return lines


async def _sync(settings: Settings, args: argparse.Namespace, progress: Progress) -> dict[str, object]:
    task = asyncio.current_task()
    assert task is not None
    # As ^C does: what is in hand is given back, and the stores are closed.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role="sync") as context:
            report = await run_pass(
                context, now=args.now, thread=args.thread, backfill=args.backfill, progress=progress
            )
            return as_json(report)
    except LedgerBusy:
        if not daemon_holds(Home(settings.home)):
            raise
        request = {"do": "sync", "now": args.now, "thread": args.thread, "backfill": args.backfill}
        print("memoryd is running: asking it", file=sys.stderr)
        return await control_socket.ask(Home(settings.home).socket, request, lambda step: progress(_step(step)))


def _step(told: Mapping[str, object]) -> Step:
    return Step(str(told["stage"]), int(str(told["done"])), int(str(told["total"])), str(told["note"]))


def _counts(result: Mapping[str, object], kind: str) -> Mapping[str, int]:
    found = result.get("jobs")
    counts = found.get(kind, {}) if isinstance(found, dict) else {}
    return {str(name): int(count) for name, count in counts.items()}


def _reasons(label: str, counts: object, meaning: Mapping[str, str]) -> list[str]:
    if not isinstance(counts, dict):
        return []
    return [f"{label}: {count} {reason} ({meaning.get(reason, reason)})" for reason, count in sorted(counts.items())]


def _failures(failures: list[dict[str, object]]) -> list[str]:
    """One line a cause: twenty sessions that meet the same refused key are one thing to know."""
    causes: dict[tuple[str, str], list[str]] = {}
    for failure in failures:
        causes.setdefault((str(failure["reason"]), str(failure["message"])), []).append(str(failure["key"]))
    lines = []
    for (reason, message), keys in causes.items():
        shown = ", ".join(keys[:SHOWN_KEYS]) + (f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else "")
        lines.append(f"{reason}: {message} [{shown}; `memoryd jobs show KEY` tells more]")
    return lines


def _number(result: Mapping[str, object], key: str) -> int:
    return int(str(result.get(key, 0)))


def _list(result: Mapping[str, object], key: str) -> list[dict[str, object]]:
    found = result.get(key)
    return found if isinstance(found, list) else []
