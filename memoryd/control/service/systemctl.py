"""Asks the user's systemd: one function around systemctl, and one look at the unit's state."""

import pwd
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memoryd.control.service.absence import explain_absence, see
from memoryd.control.service.calling import ANSWER_SECONDS, Answer, call
from memoryd.control.service.ground import Ground
from memoryd.errors import NoServiceManager, ServiceError

UNIT: Final = "memoryd.service"
_UNREACHABLE: Final = re.compile(
    r"Failed to connect to (?:user scope )?bus|Failed to get D-Bus connection|not been booted with systemd"
    r"|Failed to create bus connection|DBUS_SESSION_BUS_ADDRESS"
)
LOOK_SECONDS: Final = 10.0
"""For a question that a manager answers within milliseconds: one that hangs is asked several by one command."""
_PROPERTIES: Final = (
    *("LoadState", "ActiveState", "SubState", "Result", "ExecMainCode", "ExecMainStatus", "MainPID"),
    *("StatusText", "NRestarts", "UnitFileState", "FragmentPath", "DropInPaths", "NeedDaemonReload"),
)
_LISTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_EXITED: Final = "1"
"""CLD_EXITED as ExecMainCode: what stands in ExecMainStatus is an exit code, else it is a signal."""


def reaching(ground: Ground) -> Mapping[str, str]:
    """Return the environment with which the user's systemd is found, also after su, which sets no XDG_RUNTIME_DIR."""
    environ = ground.environ
    if environ.get("XDG_RUNTIME_DIR") or not _is_own_home(ground):
        return environ
    folder = Path(f"/run/user/{ground.uid}")
    return {**environ, "XDG_RUNTIME_DIR": str(folder)} if (folder / "systemd").is_dir() else environ


def systemctl(ground: Ground, *words: str, seconds: float = ANSWER_SECONDS) -> Answer:
    """Run `systemctl --user`. Raises NoServiceManager, with what to do instead, where the user's systemd is not there.

    Any other failure is the caller's to judge.
    """
    try:
        answer = call(["systemctl", "--user", *words], reaching(ground), seconds=seconds)
    except NoServiceManager:
        raise explain_absence(see(ground), ground.user) from None
    if answer.code != 0 and _UNREACHABLE.search(answer.err):
        raise explain_absence(see(ground), ground.user)
    return answer


def must(ground: Ground, *words: str, seconds: float = ANSWER_SECONDS) -> None:
    """Run `systemctl --user`. Raises ServiceError when it refuses."""
    answer = systemctl(ground, *words, seconds=seconds)
    if answer.code != 0:
        raise ServiceError(f"`systemctl --user {' '.join(words)}`: {answer.complaint}", remedy="see what systemd says")


def properties(ground: Ground) -> dict[str, str]:
    """Return what systemd knows of the unit. Raises as `systemctl` does."""
    answer = systemctl(ground, "show", UNIT, f"--property={','.join(_PROPERTIES)}", seconds=LOOK_SECONDS)
    return dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)


def listed(told: str) -> list[str]:
    """Return the paths of a property that holds several: systemd quotes odd ones as a shell does, `$` escaped too."""
    return [re.sub(r"\\(.)", r"\1", quoted) or plain for quoted, plain in _LISTED.findall(told)]


def exit_status(told: Mapping[str, str]) -> int | None:
    """Return the exit code of the last run, None when it runs, never ran, or was ended by a signal."""
    code = told.get("ExecMainStatus", "")
    return int(code) if told.get("ExecMainCode") == _EXITED and code.isdecimal() else None


def unit_folder(ground: Ground) -> Path:
    """Return where the user's own units lie: as systemd says, which need not have the XDG_CONFIG_HOME of this shell."""
    try:
        told = listed(systemctl(ground, "show", "--property=UnitPath", "--value", seconds=LOOK_SECONDS).out)
    except ServiceError:
        told = []
    own = [folder for folder in told if folder.endswith("/systemd/user") and not folder.startswith(("/run/", "/usr/"))]
    if own:
        return Path(own[0])
    # its specification: one that is not absolute is none
    named = Path(ground.environ.get("XDG_CONFIG_HOME", ""))
    return (named if named.is_absolute() else ground.home / ".config") / "systemd" / "user"


def _is_own_home(ground: Ground) -> bool:
    try:
        return Path(pwd.getpwuid(ground.uid).pw_dir) == ground.home
    except KeyError:
        return False
