"""Finds the service files that memoryd ships: in the wheel's package, else in the checkout of an editable install."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from memoryd.errors import ServiceError

UNIT: Final = "memoryd.service"
AGENT: Final = "dev.memoryd.plist"
_IN_A_CHECKOUT: Final = {UNIT: "systemd", AGENT: "launchd"}


def read_shipped(name: str) -> str:
    """Return the text of UNIT or AGENT. Raises ServiceError where the installation lacks it."""
    packed = files("memoryd.control").joinpath("service_files", name)
    if packed.is_file():
        return packed.read_text(encoding="utf-8")
    beside = Path(__file__).parents[3] / _IN_A_CHECKOUT[name] / name
    try:
        return beside.read_text(encoding="utf-8")
    except OSError:
        raise ServiceError(
            f"this installation of memoryd lacks its service file {name}", remedy="install memoryd anew"
        ) from None
