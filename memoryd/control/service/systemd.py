"""memoryd as a service of the user's systemd.

refuse a foreign unit -> write -> daemon-reload -> enable -> restart -> READY, or the end of the log
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from memoryd.config import HOME_VARIABLE
from memoryd.control.service import placing, shipped
from memoryd.control.service.calling import call
from memoryd.control.service.ground import Ground, Wish
from memoryd.control.service.hardening import CANNOT, DROP_IN, render_hardening
from memoryd.control.service.linger import lingers
from memoryd.control.service.outcome import Installed, Uninstalled
from memoryd.control.service.state import CONFIGURATION, State
from memoryd.control.service.systemctl import (
    LOOK_SECONDS,
    UNIT,
    exit_status,
    listed,
    must,
    properties,
    reaching,
    systemctl,
    unit_folder,
)
from memoryd.control.service.unit import read_unit, render_unit
from memoryd.errors import MemorydError, NoServiceManager, ServiceError, ServiceNotStarted

NAME: Final = "systemd"
STOP_SECONDS: Final = 90.0
START_SECONDS: Final = STOP_SECONDS + 120.0
"""Above TimeoutStopSec and TimeoutStartSec of the unit: systemd itself gives up before."""
LOG_LINES: Final = 15


def reach(ground: Ground) -> None:
    """Raise NoServiceManager, with what to do instead, where nobody would start a service."""
    systemctl(ground, "show", "--property=Version", seconds=LOOK_SECONDS)


def read_installed(ground: Ground) -> Wish | None:
    """Return what the installed unit says, None without one of ours."""
    text = placing.read(unit_folder(ground) / UNIT)
    return read_unit(text, ground.home) if text is not None and placing.MARK in text else None


def files_of(ground: Ground, wish: Wish, writable: Sequence[Path], *, harden: bool) -> dict[Path, str]:
    """Return the files of the service. Raises UsageError for paths that no unit can hold."""
    folder = unit_folder(ground)
    files = {folder / UNIT: render_unit(shipped.read_shipped(shipped.UNIT), wish)}
    if harden:
        files[_drop_ins(folder) / DROP_IN] = render_hardening(writable)
    return files


def is_hardened(ground: Ground) -> bool:
    """Tell whether the drop-in of an earlier install is there."""
    return (_drop_ins(unit_folder(ground)) / DROP_IN).exists()


def install(ground: Ground, files: dict[Path, str], *, force: bool) -> Installed:
    """Put the files in place and start the service; hardening that does not work here is taken back.

    Raises UsageError for a foreign unit, ServiceError, ServiceNotStarted.
    """
    unit, hardening = unit_folder(ground) / UNIT, _drop_ins(unit_folder(ground)) / DROP_IN
    placing.refuse_foreign(unit, force=force)
    if unit.is_symlink():
        placing.take_away(unit)
    removed = placing.take_away(hardening) if hardening not in files else []
    wrote = [path for path, text in files.items() if placing.place(path, text)]
    must(ground, "daemon-reload")
    must(ground, "enable", UNIT)
    try:
        return Installed(restart(ground), wrote, removed)
    except ServiceNotStarted:
        if hardening not in files:
            raise
        why = _refused_hardening(ground)
        placing.take_away(hardening)
        placing.take_away_empty(hardening.parent)
        must(ground, "daemon-reload")
        note = f"hardening does not work here ({why}): it was taken back, and the service runs without it"
        return Installed(restart(ground), [path for path in wrote if path != hardening], removed, [note])


def restart(ground: Ground) -> State:
    """Start the service anew and wait for its READY. Raises ServiceNotStarted with the end of its log."""
    systemctl(ground, "reset-failed", UNIT)  # it may have reached the limit of starts; without a failure it complains
    answer = systemctl(ground, "restart", UNIT, seconds=START_SECONDS)
    state = look(ground)
    if answer.code == 0 and state.is_running:
        return state
    why = state.how_it_ended if state.is_installed else answer.complaint
    raise ServiceNotStarted(
        f"the service does not start: {why}",
        remedy="`memoryd service logs` has more; then `memoryd service restart`",
        lines=last_lines(ground),
    )


def look(ground: Ground) -> State:
    """Return how the service stands; without systemd, what its file says."""
    folder = unit_folder(ground)
    file, installed = folder / UNIT, read_installed(ground)
    by_files = State(
        NAME,
        file,
        file.exists(),
        activity="unknown",
        interpreter=installed.interpreter if installed else None,
        home=installed.environment.get(HOME_VARIABLE) if installed else None,
        is_hardened=(_drop_ins(folder) / DROP_IN).exists(),
        linger=lingers(ground),
    )
    try:
        told = properties(ground)
    except ServiceError:  # there is none, or it hangs
        return by_files
    return replace(
        by_files,
        file=Path(told["FragmentPath"]) if told.get("FragmentPath") else file,
        is_installed=told.get("LoadState") == "loaded" or file.exists(),
        is_running=told.get("ActiveState") in {"active", "reloading"},
        activity=f"{told.get('ActiveState', 'unknown')} ({told.get('SubState', '')})",
        pid=int(told.get("MainPID") or 0) or None,
        said=told.get("StatusText", ""),
        is_enabled=told.get("UnitFileState", "").startswith("enabled"),
        exit_status=exit_status(told),
        result=told.get("Result", ""),
        restarts=int(told["NRestarts"]) if told.get("NRestarts", "").isdecimal() else None,
        has_given_up=_has_given_up(told),
        drop_ins=tuple(listed(told.get("DropInPaths", ""))),
    )


def uninstall(ground: Ground, *, force: bool) -> Uninstalled:
    """Stop the service and take out all that belongs to it, drop-ins too. Raises UsageError for a foreign unit."""
    folder = unit_folder(ground)
    unit, wants = folder / UNIT, folder / "default.target.wants"
    placing.refuse_foreign(unit, force=force)
    notes: list[str] = []
    try:
        if unit.exists() or unit.is_symlink():
            systemctl(ground, "disable", "--now", UNIT, seconds=STOP_SECONDS)
    except NoServiceManager as error:
        notes.append(f"{error.message}: only the files were removed")
    removed = [gone for path in (unit, _drop_ins(folder), wants / UNIT) for gone in placing.take_away(path)]
    placing.take_away_empty(wants, folder, folder.parent, folder.parents[1])
    if removed and not notes:
        must(ground, "daemon-reload")
        systemctl(ground, "reset-failed", UNIT)  # it complains where nothing had failed
    if removed and lingers(ground):
        notes.append(f"you linger: `loginctl disable-linger {ground.user}`, if nothing else of yours needs it")
    return Uninstalled(removed, notes)


def log_command(_ground: Ground, lines: int, *, follow: bool) -> list[str]:
    """Return the program that shows the service's log."""
    words = ["journalctl", "--user", f"--unit={UNIT}", f"--lines={lines}", "--output=cat"]
    return [*words, "--follow"] if follow else [*words, "--no-pager"]


def last_lines(ground: Ground) -> tuple[str, ...]:
    """Return the end of the service's log, nothing where the journal keeps none for the user."""
    try:
        answer = call([*log_command(ground, LOG_LINES, follow=False), "--quiet"], reaching(ground))
    except MemorydError:
        return ()
    return tuple(line for line in answer.out.splitlines() if line.strip())


def _has_given_up(told: Mapping[str, str]) -> bool:
    """Tell whether the limit of starts was reached: what fails is started again else, but for wrong settings.

    systemd keeps the result of the last run, and says start-limit-hit only of a start that somebody asked for.
    """
    failed = told.get("ActiveState") == "failed" and exit_status(told) != CONFIGURATION
    return failed and (told.get("NRestarts", "0") != "0" or told.get("Result") == "start-limit-hit")


def _drop_ins(folder: Path) -> Path:
    return folder / f"{UNIT}.d"


def _refused_hardening(ground: Ground) -> str:
    """Say why the service did not start with the drop-in; any failure is tried without it."""
    code = exit_status(properties(ground))
    return f"exit {code}, {CANNOT[code]}" if code in CANNOT else f"exit {code}"
