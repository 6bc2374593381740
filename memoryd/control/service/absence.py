"""Why there is no systemd for this user, and what to do instead: a pure decider over what can be seen."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.control.service.ground import Ground
from memoryd.errors import NoServiceManager

INSTEAD: Final = "let whatever starts programs here start `memoryd run`: an entry point, a supervisor, cron's @reboot"
_BOOTED: Final = Path("/run/systemd/system")
"""It exists where systemd started the machine: sd_booted(3)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What can be seen without a service manager. `sudo_user` is who became root, empty otherwise."""

    has_systemctl: bool
    is_booted: bool
    is_root: bool
    is_wsl: bool
    sudo_user: str = ""
    has_runtime_folder: bool = False


def see(ground: Ground) -> Seen:
    """Look at this machine."""
    environ = ground.environ
    return Seen(
        has_systemctl=shutil.which("systemctl", path=environ.get("PATH", "")) is not None,
        is_booted=_BOOTED.is_dir(),
        is_root=ground.uid == 0,
        is_wsl="WSL_DISTRO_NAME" in environ or "microsoft" in os.uname().release.lower(),
        sudo_user=environ.get("SUDO_USER", "") if ground.uid == 0 else "",
        has_runtime_folder=bool(environ.get("XDG_RUNTIME_DIR")),
    )


def explain_absence(seen: Seen, user: str) -> NoServiceManager:
    """Return the error that says why the user's systemd cannot be reached."""
    if not seen.has_systemctl:
        return NoServiceManager("there is no systemd on this machine", remedy=INSTEAD)
    if not seen.is_booted and seen.is_wsl:
        return NoServiceManager(
            "systemd does not run in this WSL",
            remedy="put `systemd=true` under [boot] in /etc/wsl.conf and run `wsl --shutdown`, or start `memoryd run`",
        )
    if not seen.is_booted:
        return NoServiceManager("systemd does not run here, as in most containers", remedy=INSTEAD)
    if seen.sudo_user:
        return NoServiceManager(
            "the service belongs to the user whose agents it serves, and this is root by sudo",
            remedy=f"run it as {seen.sudo_user}, without sudo",
        )
    if seen.is_root or not seen.has_runtime_folder:
        return NoServiceManager(
            f"{user} has no session with systemd (XDG_RUNTIME_DIR is not set): su and sudo do not open one",
            remedy=f"log in as the user whose agents it serves, or run `loginctl enable-linger {user}` and set"
            " XDG_RUNTIME_DIR=/run/user/$(id -u)",
        )
    return NoServiceManager(
        "the user's systemd does not answer", remedy=f"look at `systemctl status user@{os.getuid()}`, or: {INSTEAD}"
    )
