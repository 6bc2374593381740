"""`memoryd service`: makes memoryd start with your session, watches over that, and takes it out again."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from memoryd import config
from memoryd.config import HOME_VARIABLE
from memoryd.control.checked import Checked
from memoryd.control.console import print_json
from memoryd.control.counts import from_zero
from memoryd.control.service.calling import show
from memoryd.control.service.checking import INSTALL
from memoryd.control.service.examining import examine
from memoryd.control.service.ground import Ground, Wish, is_fleeting, refuse_unable
from memoryd.control.service.hardening import writable_places
from memoryd.control.service.keys import as_seen, keys_folder, plan_keys, take_away_keys, write_keys
from memoryd.control.service.linger import enable_linger
from memoryd.control.service.managers import ServiceManager, manager_of
from memoryd.control.service.outcome import Installed
from memoryd.control.service.state import State
from memoryd.control.service.wishing import USUAL_HOME, home_of, unseen, wish_of
from memoryd.errors import ServiceError, ServiceNotStarted
from memoryd.workspace.layout import Home, prepare

LINGER: Final = "it stops when you log out and starts when you log in; `memoryd service install --linger` lets it go on"


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the action and its options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="install|uninstall|status|restart|logs")
    install = actions.add_parser("install", help="install it, or bring it up to date after an upgrade, and start it")
    install.add_argument("--dry-run", action="store_true", help="print the files, and write nothing")
    install.add_argument(
        "--store-keys",
        action="store_true",
        help="keep the providers' keys that this shell holds in files of mode 0600, from which the service gets them",
    )
    install.add_argument("--linger", action="store_true", help="let it run without a session of yours (Linux)")
    install.add_argument(
        "--harden",
        action=argparse.BooleanOptionalAction,
        help="let it write to its folder, /tmp and logins alone, where the machine can do that (Linux); else as it was",
    )
    uninstall = actions.add_parser("uninstall", help="stop it and remove all that belongs to it; the memory stays")
    for action in (install, uninstall):
        action.add_argument("--force", action="store_true", help="also where the file is not memoryd's")
    restart = actions.add_parser("restart", help="start it anew, and wait until it is ready")
    for action in (install, uninstall, restart, actions.add_parser("status", help="say how it stands")):
        action.add_argument("--json", action="store_true", help="print JSON")
    logs = actions.add_parser("logs", help="show its log")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until ^C")
    logs.add_argument("-n", "--lines", type=from_zero, default=50, metavar="N", help="how many of the last lines")


def run(args: argparse.Namespace) -> int:
    """Do it; what a service that does not start has said is shown before the error."""
    ground = Ground.of(config.environ(), os.getuid())
    try:
        return ACTIONS[args.action](args, manager_of(sys.platform), ground)
    except ServiceNotStarted as error:
        for line in error.lines:
            print(f"  {line}", file=sys.stderr)
        raise


def install(args: argparse.Namespace, manager: ServiceManager, ground: Ground) -> int:
    """Install the service, or only what has changed of it, and see it ready."""
    from memoryd.daemon import house  # the other actions start twice as fast without it

    before = manager.read_installed(ground)
    settings = config.load(home_of(args.home, ground.environ, before), environ=ground.environ)
    keys = plan_keys(settings, ground.environ, before, store=args.store_keys)
    wish = wish_of(settings, ground, Path(sys.executable).absolute(), keys.files, before)
    harden = manager.is_hardened(ground) if args.harden is None else args.harden
    seen = {"HOME": str(ground.home), **wish.environment}
    files = manager.files_of(ground, wish, writable_places(settings, seen), harden=harden)
    house.check_settings(settings, {**seen, **as_seen(keys)})
    if args.dry_run:
        return _show_files(files, as_json=args.json)
    manager.reach(ground)
    refuse_unable(wish, ground)
    prepare(Home(settings.home))
    written = write_keys(keys)
    done = manager.install(ground, files, force=args.force)
    notes = [*done.notes, *_notes(settings, ground, before, wish)]
    linger = done.state.linger
    if args.linger and not linger:
        try:
            enable_linger(ground)
            linger = True
        except ServiceError as error:
            notes.append(str(error))
    if linger is False:
        notes.append(LINGER)
    _tell_installed(Installed(done.state, [*written, *done.wrote], done.removed, notes), as_json=args.json)
    return 0


def uninstall(args: argparse.Namespace, manager: ServiceManager, ground: Ground) -> int:
    """Take the service out; its keys go with it, the memory stays."""
    before = manager.read_installed(ground)
    home = home_of(args.home, ground.environ, before) or config.default_home(ground.environ)
    done = manager.uninstall(ground, force=args.force)
    removed = [*done.removed, *take_away_keys(keys_folder(Home(home)))]
    if args.json:
        print_json({"removed": [str(path) for path in removed], "notes": done.notes})
        return 0
    told = [f"removed {path}" for path in removed] or ["there was no service to remove"]
    print("\n".join([*told, *(f"note: {note}" for note in done.notes)]))
    if home.is_dir():
        print(f"the memory is still there: {home}")
    return 0


def restart(args: argparse.Namespace, manager: ServiceManager, ground: Ground) -> int:
    """Start the installed service anew."""
    before = manager.look(ground)
    if not before.is_installed:
        raise ServiceError("no service is installed", remedy=f"`{INSTALL}` installs it")
    if before.is_interpreter_gone:
        raise ServiceError(
            f"the interpreter that {before.file} names is gone: {before.interpreter}",
            remedy=f"`{INSTALL}` names the new one",
        )
    state = manager.restart(ground)
    if args.json:
        print_json(state.as_json())
    else:
        print(_running(state))
    return 0


def status(args: argparse.Namespace, manager: ServiceManager, ground: Ground) -> int:
    """Say how the service stands. Exit 1 when it does not run or something is wrong with it."""
    state, found = examine(manager, ground, home=None)
    if args.json:
        print_json({**state.as_json(), "findings": [asdict(each) for each in found]})
    else:
        print("\n".join(_status_lines(state, found)))
    return 0 if state.is_running and all(each.severity == "ok" for each in found) else 1


def logs(args: argparse.Namespace, manager: ServiceManager, ground: Ground) -> int:
    """Show the log with the system's own program."""
    manager.reach(ground)
    return 1 if show(manager.log_command(ground, args.lines, follow=args.follow), ground.environ) else 0


ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace, ServiceManager, Ground], int]]] = {
    "install": install,
    "uninstall": uninstall,
    "restart": restart,
    "status": status,
    "logs": logs,
}


def _notes(settings: config.Settings, ground: Ground, before: Wish | None, wish: Wish) -> list[str]:
    notes = []
    served = Path(before.environment.get(HOME_VARIABLE) or ground.home / USUAL_HOME) if before else settings.home
    if served != settings.home:
        notes.append(f"it served {served} until now, and serves {settings.home} from here on")
    if is_fleeting(wish.interpreter):
        notes.append(f"{wish.interpreter} lies where things are cleaned up: install memoryd, for instance with pipx")
    if not Home(settings.home).config_file.exists():
        notes.append("there is no config.toml yet: `memoryd init` writes it, then `memoryd service restart`")
    if lost := unseen(ground.environ):
        notes.append(
            f"settings of this shell that the service does not see: {', '.join(lost)}; write them to config.toml"
        )
    return notes


def _show_files(files: dict[Path, str], *, as_json: bool) -> int:
    if as_json:
        print_json({"files": {str(path): text for path, text in files.items()}})
        return 0
    for path, text in files.items():
        print(f"# {path}\n{text}")
    print("nothing was written")
    return 0


def _tell_installed(done: Installed, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                **done.state.as_json(),
                "wrote": [str(path) for path in done.wrote],
                "removed": [str(path) for path in done.removed],
                "notes": done.notes,
            }
        )
        return
    print(_running(done.state))
    print("\n".join(f"  wrote {path}" for path in done.wrote) or f"  {done.state.file} is as it was")
    for path in done.removed:
        print(f"  removed {path}")
    for note in done.notes:
        print(f"note: {note}")
    print("its log: `memoryd service logs -f`")


def _running(state: State) -> str:
    said = f": {state.said}" if state.said else ""
    return f"memoryd runs as a service of {state.manager}, pid {state.pid}{said}"


def _status_lines(state: State, found: list[Checked]) -> list[str]:
    stopped = [f"the service of {state.manager} does not run"] if state.is_installed else []
    lines = [_running(state)] if state.is_running else stopped
    if state.is_installed:
        facts = {
            "file": state.file,
            "interpreter": state.interpreter,
            HOME_VARIABLE: state.home,
            "starts with your session": _word(state.is_enabled),
            "goes on without one": _word(state.linger),
            "hardened": _word(state.is_hardened),
            "drop-ins": ", ".join(state.drop_ins),
            "restarts": state.restarts,
        }
        lines += [f"  {name}: {value}" for name, value in facts.items() if value not in (None, "")]
    indent = "  " if lines else ""
    for each in found:
        remedy = f" -> {each.remedy}" if each.remedy else ""
        lines.append(f"{indent}{each.severity}: {each.evidence}{remedy}")
    return lines


def _word(fact: bool | None) -> str:
    return "unknown" if fact is None else "yes" if fact else "no"
