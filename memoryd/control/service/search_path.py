"""The PATH that a service gets: a service manager's own lacks ~/.local/bin and wherever else agents' programs lie."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from memoryd.config import Settings
from memoryd.control.service.ground import STANDARD_PATH
from memoryd.llm.command.programs import PROGRAMS

ALSO_NEEDED: Final = ("git", "bwrap", "node", "bun")
"""What memoryd itself runs, and what runs agents that are scripts."""


def search_path(settings: Settings, environ: Mapping[str, str], before: str = "") -> str:
    """Return the folders in which programs are found by this command's PATH, those of an earlier install, the usual.

    Only folders that exist and are named absolutely; ":" would end a folder's name, so such a one is left out.
    """
    found = [*_folders(settings, environ.get("PATH", "")), *before.split(":")]
    return ":".join(dict.fromkeys([*(each for each in found if _is_usable(each)), *STANDARD_PATH]))


def programs_in_use(settings: Settings) -> Iterator[str]:
    """Yield the names of the programs that may be run."""
    yield from (each.command[0] for each in settings.providers.values() if each.command)
    yield from PROGRAMS
    yield from ALSO_NEEDED


def _folders(settings: Settings, path: str) -> Iterator[str]:
    for name in programs_in_use(settings):
        place = shutil.which(name, path=path)
        if place is not None:
            yield str(Path(place).parent)


def _is_usable(folder: str) -> bool:
    return folder not in STANDARD_PATH and ":" not in folder and Path(folder).is_absolute() and Path(folder).is_dir()
