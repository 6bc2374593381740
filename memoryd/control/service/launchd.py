"""memoryd as a LaunchAgent of macOS.

    refuse a foreign plist -> write -> bootout -> enable -> bootstrap (again after error 5) -> it runs and has the lock

launchd knows no readiness: the daemon is ready when memoryd.lock is held by the very process that launchd started.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from memoryd.config import HOME_VARIABLE, LAUNCHD_LABEL
from memoryd.control.service import placing, shipped
from memoryd.control.service.calling import Answer, call
from memoryd.control.service.ground import Ground, Wish
from memoryd.control.service.outcome import Installed, Uninstalled
from memoryd.control.service.plist import LOG, log_of, read_plist, render_plist
from memoryd.control.service.state import State
from memoryd.daemon import lock, starts
from memoryd.errors import NoServiceManager, ServiceError, ServiceNotStarted, UsageError
from memoryd.workspace.layout import Home

NAME: Final = "launchd"
LABEL: Final = LAUNCHD_LABEL
LOG_LINES: Final = 15
PAUSE_SECONDS: Final = 0.5
DAEMON: Final = "daemon"
"""The role in which a daemon holds the lock: daemon.house says so, and takes half a second to import."""
STOP_SECONDS: Final = 60.0
"""Above ExitTimeOut: bootout returns before the daemon has ended."""
START_SECONDS: Final = 60.0
BOOTSTRAP_TRIES: Final = 6
"""`Bootstrap failed: 5: Input/output error` is what launchd says while it still cleans up; it passes in seconds."""
_INPUT_OUTPUT: Final = re.compile(r"failed: 5: ")
_NO_SUCH: Final = re.compile(r"No such process|Could not find service|failed: (?:3|113): ")
_NO_DOMAIN: Final = re.compile(r"Domain does not support|Could not find domain|failed: (?:112|125): ")


def reach(ground: Ground) -> None:
    """Raise NoServiceManager, with what to do instead, where nobody would start a service."""
    _launchctl(ground, "print", f"gui/{ground.uid}")


def service_file(ground: Ground) -> Path:
    """Return where the agents of the user lie."""
    return ground.home / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def read_installed(ground: Ground) -> Wish | None:
    """Return what the installed property list says, None without one of ours."""
    text = placing.read(service_file(ground))
    return read_plist(text) if text is not None and placing.MARK in text else None


def files_of(ground: Ground, wish: Wish, writable: Sequence[Path], *, harden: bool) -> dict[Path, str]:
    """Return the file of the service. Raises UsageError for paths that it cannot hold, and for hardening."""
    if harden:
        raise UsageError("launchd has no hardening of the kind", remedy="leave --harden out")
    return {service_file(ground): render_plist(shipped.read_shipped(shipped.AGENT), wish, writable[0])}


def is_hardened(_ground: Ground) -> bool:
    """Tell that there is no such thing here."""
    return False


def install(ground: Ground, files: dict[Path, str], *, force: bool) -> Installed:
    """Put the file in place and start the service. Raises UsageError, ServiceError, ServiceNotStarted."""
    file = service_file(ground)
    placing.refuse_foreign(file, force=force)
    if file.is_symlink():
        placing.take_away(file)
    wrote = [path for path, text in files.items() if placing.place(path, text)]
    return Installed(restart(ground), wrote)


def restart(ground: Ground) -> State:
    """Load the property list as it is now, and wait until the daemon holds its lock. Raises ServiceNotStarted."""
    file = service_file(ground)
    if not file.exists():
        raise ServiceNotStarted("the service is not installed", remedy="memoryd service install")
    _boot_out(ground)
    _must(ground, "enable", _target(ground))
    _bootstrap(ground, file)
    _wait(ground, lambda: _is_decided(ground, look(ground)), START_SECONDS)
    state, holder = look(ground), lock.holder(_home(ground).lock_file)
    if _is_ready(ground, state):
        return state
    if holder is not None and holder.role == DAEMON and holder.pid != state.pid:
        raise ServiceNotStarted(
            f"another memoryd is running (pid {holder.pid}), and the service does not start beside it",
            remedy="stop that one, then `memoryd service restart`",
        )
    raise ServiceNotStarted(
        f"the service does not start: {state.how_it_ended}",
        remedy="`memoryd service logs` has more; then `memoryd service restart`",
        lines=last_lines(ground),
    )


def look(ground: Ground) -> State:
    """Return how the service stands; without launchd, what its file says."""
    file, installed = service_file(ground), read_installed(ground)
    interpreter = installed.interpreter if installed else None
    home = installed.environment.get(HOME_VARIABLE) if installed else None
    try:
        answer = _launchctl(ground, "print", _target(ground))
    except ServiceError:  # there is none, or it hangs
        return State(NAME, file, file.exists(), activity="unknown", interpreter=interpreter, home=home)
    told = dict(re.findall(r"(?m)^\s*(state|pid|last exit code|runs) = (.+?)\s*$", answer.out)[::-1])
    pid = told.get("pid", "")
    code = told.get("last exit code", "").partition(":")[0]
    runs = told.get("runs", "")
    return State(
        NAME,
        file,
        file.exists(),
        is_running=told.get("state") == "running",
        activity=told.get("state", "not loaded"),
        pid=int(pid) if pid.isdecimal() else None,
        is_enabled=answer.code == 0 if file.exists() else None,
        exit_status=int(code) if code.isdecimal() else None,
        restarts=max(int(runs) - 1, 0) if runs.isdecimal() else None,
        interpreter=interpreter,
        home=home,
    )


def uninstall(ground: Ground, *, force: bool) -> Uninstalled:
    """Stop the service; its file, log and count of starts go. Raises UsageError for a foreign plist."""
    file = service_file(ground)
    placing.refuse_foreign(file, force=force)
    home = _home(ground)
    notes = []
    try:
        _boot_out(ground)
    except NoServiceManager as error:
        notes.append(f"{error.message}: only the files were removed")
    removed = [*placing.take_away(file), *placing.take_away(home.path / starts.FILE)]
    logs = sorted([*home.path.glob(LOG), *home.path.glob(f"{LOG}.*")])
    return Uninstalled(removed + [gone for path in logs for gone in placing.take_away(path)], notes)


def log_command(ground: Ground, lines: int, *, follow: bool) -> list[str]:
    """Return the program that shows the service's log. Raises ServiceError where no service says where it is."""
    log = log_of(placing.read(service_file(ground)) or "")
    if log is None:
        raise ServiceError("the service is not installed, so that it has no log", remedy="memoryd service install")
    return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(log)]


def last_lines(ground: Ground) -> tuple[str, ...]:
    """Return the end of the service's log."""
    answer = call(log_command(ground, LOG_LINES, follow=False), ground.environ)
    return tuple(line for line in answer.out.splitlines() if line.strip())


def _target(ground: Ground) -> str:
    return f"gui/{ground.uid}/{LABEL}"


def _launchctl(ground: Ground, *words: str) -> Answer:
    try:
        answer = call(["launchctl", *words], ground.environ)
    except NoServiceManager:
        raise NoServiceManager("there is no launchd on this machine", remedy="start `memoryd run` yourself") from None
    if answer.code != 0 and _NO_DOMAIN.search(answer.err + answer.out) and not _NO_SUCH.search(answer.err):
        raise NoServiceManager(
            f"launchd has no graphical session of {ground.user}: {answer.complaint}",
            remedy="log in at the screen of this Mac once, and try again there; or start `memoryd run`",
        )
    return answer


def _must(ground: Ground, *words: str) -> None:
    answer = _launchctl(ground, *words)
    if answer.code != 0:
        raise ServiceError(f"`launchctl {' '.join(words)}`: {answer.complaint}", remedy="see what launchd says")


def _boot_out(ground: Ground) -> None:
    """Unload the service and wait until it is gone; that it was not loaded is as good."""
    answer = _launchctl(ground, "bootout", _target(ground))
    if answer.code != 0 and not _NO_SUCH.search(answer.err + answer.out) and "in progress" not in answer.err:
        raise ServiceError(f"launchd does not stop the service: {answer.complaint}", remedy="try again in a minute")
    _wait(ground, lambda: _launchctl(ground, "print", _target(ground)).code != 0, STOP_SECONDS)


def _bootstrap(ground: Ground, file: Path) -> None:
    for tries_left in reversed(range(BOOTSTRAP_TRIES)):
        answer = _launchctl(ground, "bootstrap", f"gui/{ground.uid}", str(file))
        if answer.code == 0:
            return
        if not _INPUT_OUTPUT.search(answer.err + answer.out) or not tries_left:
            raise ServiceError(
                f"launchd does not take {file}: {answer.complaint}",
                remedy="log in at the screen of this Mac, look at the file with `plutil -lint`, and try again",
            )
        ground.pause(PAUSE_SECONDS * (BOOTSTRAP_TRIES - tries_left))


def _is_ready(ground: Ground, state: State) -> bool:
    """Tell whether the daemon holds the lock, or waits for a command that holds it; beside a daemon it ends at once."""
    holder = lock.holder(_home(ground).lock_file)
    return (
        state.is_running
        and holder is not None
        and state.pid is not None
        and (holder.pid == state.pid or holder.role != DAEMON)
    )


def _is_decided(ground: Ground, state: State) -> bool:
    """Tell whether it is ready, or has ended: launchd would start it again only after ThrottleInterval."""
    return _is_ready(ground, state) or (not state.is_running and state.exit_status is not None)


def _home(ground: Ground) -> Home:
    installed = read_installed(ground)
    moved = installed.environment.get(HOME_VARIABLE) if installed else None
    return Home(Path(moved) if moved else ground.home / ".memoryd")


def _wait(ground: Ground, holds: Callable[[], bool], seconds: float) -> None:
    """Look again and again until it holds or the time is over."""
    for _ in range(int(seconds / PAUSE_SECONDS)):
        if holds():
            return
        ground.pause(PAUSE_SECONDS)
