"""`memoryd doctor`: looks at everything that can be wrong, tests the providers, and says what to do."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings, Stage
from memoryd.control.checked import Checked
from memoryd.control.checkup import examine, look_again
from memoryd.control.commands.recall import recalled
from memoryd.control.connecting.selftest import Due
from memoryd.control.console import plural, print_json
from memoryd.control.patient import Patient
from memoryd.control.repairs import repair
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.daemon.probing import Probe, probe
from memoryd.errors import ConfigError, MemorydError
from memoryd.workspace.layout import Home

MARKS: Final = {"info": "info   ", "ok": "ok     ", "warning": "warning", "error": "ERROR  "}


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `doctor`."""
    parser.add_argument(
        "--offline", action="store_true", help="send nothing; else each provider gets one request of a few tokens"
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="do what is safe (modes, folders, stale locks, what agents are given), say it",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Make all checks, and repairs where they are asked for. Exit 1 when there is an error, 2 for wrong settings."""
    environ = config.environ()
    try:
        settings = config.load(args.home, environ=environ)
    except ConfigError as error:
        wrong = Checked("configuration", "error", error.message, error.remedy or "correct it, and look again")
        rest = Checked("not_looked", "info", "nothing else was looked at: that takes settings which can be read")
        _tell([wrong, rest], [], as_json=args.json)
        return error.exit_code
    patient = _patient(settings, environ, offline=args.offline)
    found, done = asyncio.run(_examined(patient, fix=args.fix))
    return _tell(found, done, as_json=args.json)


def _patient(settings: Settings, environ: Mapping[str, str], *, offline: bool) -> Patient:
    cwd = Path.cwd()

    async def ask(stage: Stage) -> Probe:
        return await _probe(settings, stage)

    def given(agent: str) -> Due:
        due = recalled(settings, cwd, agent=agent)
        return Due(due.text, due.why, due.pending)

    return Patient(settings, environ, SystemClock(), None if offline else ask, cwd, given)


async def _examined(patient: Patient, *, fix: bool) -> tuple[list[Checked], list[str]]:
    """Return the findings, and what was repaired before they were made."""
    found = await examine(patient)
    wanted = {each.repair for each in found if each.repair is not None}
    if not fix or not wanted:
        return found, []
    done = await repair(patient, wanted)
    return await look_again(patient, found), done


def _tell(found: list[Checked], done: list[str], *, as_json: bool) -> int:
    """Print findings and repairs; return 1 when one of them is an error."""
    if as_json:
        print_json([asdict(each) for each in found])
        for line in done:
            print(f"memoryd: fixed: {line}", file=sys.stderr)
    else:
        print("\n".join([*(f"fixed   {line}" for line in done), *lines(found)]))
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
    mended = sum(each.repair is not None for each in found)
    fix = f"; `memoryd doctor --fix` does something about {mended} of them" if mended else ""
    return [*told, f"{plural(len(found), 'finding')}: {plural(wrong, 'error')}, {plural(doubtful, 'warning')}{fix}"]


async def _probe(settings: Settings, stage: Stage) -> Probe:
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
