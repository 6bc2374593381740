"""The service managers there are, in one table, and the one of this system."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from memoryd.control.service import launchd, systemd
from memoryd.control.service.ground import Ground, Wish
from memoryd.control.service.outcome import Installed, Uninstalled
from memoryd.control.service.state import State
from memoryd.errors import NoServiceManager


class ServiceManager(Protocol):
    """What a module of a service manager offers."""

    @property
    def NAME(self) -> str:  # noqa: N802 (a constant of the module)
        """Its name."""
        ...

    def reach(self, ground: Ground) -> None:
        """Raise NoServiceManager, with what to do instead, where nobody would start a service."""
        ...

    def read_installed(self, ground: Ground) -> Wish | None:
        """Return what is installed, None without a service of ours."""
        ...

    def files_of(self, ground: Ground, wish: Wish, writable: Sequence[Path], *, harden: bool) -> dict[Path, str]:
        """Return the files that an install writes; the first of `writable` is memoryd's home."""
        ...

    def is_hardened(self, ground: Ground) -> bool:
        """Tell whether an earlier install hardened it."""
        ...

    def install(self, ground: Ground, files: dict[Path, str], *, force: bool) -> Installed:
        """Write the files, start the service and see it ready."""
        ...

    def restart(self, ground: Ground) -> State:
        """Start it anew and see it ready."""
        ...

    def look(self, ground: Ground) -> State:
        """Return how it stands."""
        ...

    def uninstall(self, ground: Ground, *, force: bool) -> Uninstalled:
        """Stop it and take out all that belongs to it."""
        ...

    def log_command(self, ground: Ground, lines: int, *, follow: bool) -> list[str]:
        """Return the program that shows its log."""
        ...

    def last_lines(self, ground: Ground) -> tuple[str, ...]:
        """Return the end of its log."""
        ...


MANAGERS: Final[Mapping[str, ServiceManager]] = {"linux": systemd, "darwin": launchd}


def manager_of(platform: str) -> ServiceManager:
    """Return the service manager of `sys.platform`. Raises NoServiceManager."""
    if platform not in MANAGERS:
        raise NoServiceManager(f"memoryd knows no service manager of {platform}", remedy="start `memoryd run` yourself")
    return MANAGERS[platform]
