"""`memoryd status`: whether it runs, what it does, what waits and why, what it spent, what is wrong."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.control import overview
from memoryd.control.console import moment, print_json
from memoryd.control.wording import MEANING_OF_WAIT
from memoryd.pipeline.eligibility import MEANING, Waiting


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `status`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the status. Exit 1 when health is degraded."""
    environ = config.environ()
    settings = config.load(args.home, environ=environ)
    report = asyncio.run(overview.status(settings, environ, SystemClock()))
    if args.json:
        print_json(report)
    else:
        print("\n".join(lines(report, asyncio.run(overview.why_running(settings, SystemClock())))))
    return 1 if _is_degraded(report) else 0


def _is_degraded(report: Mapping[str, Any]) -> bool:
    return any(item["severity"] != "info" for item in report["health"])


def lines(report: Mapping[str, Any], why: Mapping[str, str] | None = None) -> list[str]:
    """Tell the status to a person; `why` says of jobs that run, by `kind key`, what asked for them."""
    running = f"running (pid {report['pid']}, since {moment(report['since'])})" if report["running"] else "not running"
    told = [f"memoryd {report['version']}: {running}"]
    reasons = why or {}
    for job in report["doing"]:
        name = f"{job['kind']} {job['key']}"
        reason = f": {reasons[name]}" if name in reasons else ""
        told.append(f"  doing    {name} since {moment(job['since'])}{reason}")
    told += [
        f"  waiting  {job['kind']} {job['key']} until {moment(job['until'])}: {_wait(job['reason'])}"
        for job in report["waiting"][:10]
    ]
    if len(report["waiting"]) > 10:
        told.append(f"           and {len(report['waiting']) - 10} more (memoryd jobs)")
    for kind, stage in report["stages"].items():
        told.append(
            f"  {kind}: {stage['pending']} pending, {stage['running']} running, {stage['done']} done, "
            f"{stage['error']} dead; last success {moment(stage['last_success_at'])}"
        )
    today, caps = report["today"], report["today"]["caps"]
    told.append(
        f"  today: {today['requests']} of {caps['requests_per_day']} requests, "
        f"{today['tokens']} of {caps['tokens_per_day']} tokens, {today['cost']:.2f} {_cost_cap(caps['cost_per_day'])}"
    )
    told += [
        f"  {'not yet' if reason in set(Waiting) else 'left out'}: {number} {reason} ({MEANING.get(reason, reason)})"
        for reason, number in sorted(report["excluded"].items())
    ]
    disk = report["disk"]
    told.append(f"  on disk: ledger {_kib(disk['ledger'])}, memories {_kib(disk['memories'])}")
    told += [f"  {item['severity']}: {item['message']}; {item['remedy']}" for item in report["health"]]
    return told


def _wait(reason: str) -> str:
    return f"{reason} ({MEANING_OF_WAIT[reason]})" if reason in MEANING_OF_WAIT else reason


def _cost_cap(dollars: float) -> str:
    return f"of {dollars:.2f} USD" if dollars else "USD"


def _kib(size: int) -> str:
    return f"{size / 1024:.0f} KiB"
