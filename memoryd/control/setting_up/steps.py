"""What may follow the settings on a person's word: import, service, connection; each is the command itself."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Final

from memoryd import config
from memoryd.control.service.ground import Ground
from memoryd.control.service.managers import manager_of
from memoryd.control.setting_up.choosing import ask_yes, may_ask
from memoryd.control.setting_up.found import Here
from memoryd.errors import MemorydError
from memoryd.workspace.layout import Home

CONNECTED: Final = "new sessions of it begin with what is remembered"


def choose_steps(args: argparse.Namespace, here: Here, connectable: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the commands to run, in their order: those of the options, else those agreed to on a terminal."""
    asks = may_ask(args)
    imports = args.imports
    if imports is None and asks:
        imports = [name for name in here.importable if ask_yes(f"Import what {name} has learned by itself")]
    connects = args.connect
    if connects is None and asks:
        names = [name for name in here.agent_names if name in connectable]
        connects = [name for name in names if ask_yes(f"Connect {name}, so that {CONNECTED}")]
    service = args.service
    if service is None and asks:
        service = _can_be_a_service() and ask_yes("Install memoryd as a service that starts with your session")
    return [
        *(("import", name) for name in imports or ()),
        *([("service", "install")] if service else []),
        *(("connect", name) for name in connects or ()),
    ]


def run_steps(steps: Sequence[tuple[str, ...]], home: Home, *, quiet: bool) -> list[dict[str, object]]:
    """Run commands one by one; one that fails is told, and does not keep the others from running.

    `quiet`: what they print goes to stderr, since stdout is for JSON.
    """
    done: list[dict[str, object]] = []
    for step in steps:
        said = " ".join(("memoryd", *step))
        problem = None
        with _aside(quiet=quiet):
            print(f"{said}:")
            try:
                code = _run(step, home)
            except MemorydError as error:
                code, problem = error.exit_code, str(error)
                print(f"memoryd: {error}", file=sys.stderr)
        done.append({"command": said, "exit_code": code, "problem": problem})
    return done


def _can_be_a_service() -> bool:
    """Tell whether somebody here would start a service; if nobody would, say what to do instead of asking."""
    try:
        manager_of(sys.platform).reach(Ground.of(config.environ(), os.getuid()))
    except MemorydError as error:
        print(f"No service can be installed: {error}")
        return False
    return True


def _run(step: tuple[str, ...], home: Home) -> int:
    from memoryd.control.main import run_command

    name, *rest = step
    return run_command(name, ["--home", str(home.path), *rest])


@contextmanager
def _aside(*, quiet: bool) -> Iterator[None]:
    if quiet:
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield
