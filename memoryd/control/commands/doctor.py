"""`memoryd doctor`: looks at everything that can be wrong, tests the providers, and says what to do."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Final, Literal

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.checkup import Checked, Patient, examine
from memoryd.control.commands.recall import recalled
from memoryd.control.connecting.selftest import Due
from memoryd.control.console import plural, print_json
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.daemon.probing import Probe, probe
from memoryd.errors import MemorydError
from memoryd.workspace.layout import Home

MARKS: Final = {"info": "info   ", "ok": "ok     ", "warning": "warning", "error": "ERROR  "}


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `doctor`."""
    parser.add_argument(
        "--offline", action="store_true", help="send nothing; else each provider gets one request of a few tokens"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Make all checks. Exit 1 when one of them found an error."""
    environ = config.environ()
    settings = config.load(args.home, environ=environ)

    async def ask(stage: Literal["extract", "consolidate"]) -> Probe:
        return await _probe(settings, stage)

    cwd = Path.cwd()

    def given(agent: str) -> Due:
        due = recalled(settings, cwd, agent=agent)
        return Due(due.text, due.why, due.pending)

    patient = Patient(settings, environ, SystemClock(), None if args.offline else ask, cwd, given)
    found = asyncio.run(examine(patient))
    if args.json:
        print_json([asdict(each) for each in found])
    else:
        print("\n".join(lines(found)))
    return 1 if any(each.severity == "error" for each in found) else 0


def lines(found: list[Checked]) -> list[str]:
    """Tell the findings to a person, what is wrong with its remedy below it."""
    told = []
    for each in found:
        told.append(f"{MARKS[each.severity]} {each.evidence}")
        if each.remedy and each.severity != "ok":
            told.append(f"        -> {each.remedy}")
    wrong = sum(each.severity == "error" for each in found)
    doubtful = sum(each.severity == "warning" for each in found)
    return [*told, f"{plural(len(found), 'finding')}: {plural(wrong, 'error')}, {plural(doubtful, 'warning')}"]


async def _probe(settings: Settings, stage: Literal["extract", "consolidate"]) -> Probe:
    """Ask through the daemon when one runs, so that the request is counted where all are; else from here."""
    home = Home(settings.home)
    try:
        if daemon_holds(home):
            said = await control_socket.ask(home.socket, {"do": "probe", "stage": stage}, lambda _step: None)
            return Probe(**{name: said[name] for name in Probe.__slots__ if name in said})  # type: ignore[arg-type]  # our own answer
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role="doctor") as context:
            return await probe(context.extract if stage == "extract" else context.consolidate, stage)
    except MemorydError as error:
        return Probe(kind=type(error).__name__, problem=error.message, remedy=error.remedy)
