"""What stands at a path of the live folder at this moment: a person may have put anything there."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from memoryd.workspace.files import translated
from memoryd.workspace.folder import Odd, decode_text
from memoryd.workspace.layout import OWN_FOLDERS

_OUT_OF_REACH: Final = -1


@dataclass(frozen=True, slots=True)
class Live:
    """One look at a path; two looks are equal when nothing happened in between.

    `mode` is 0 where there is nothing, `_OUT_OF_REACH` where a folder above is a symlink or no folder; `data` is empty
    for all but regular files; `is_text`: a regular file of text stands there, which can be merged.
    """

    mode: int
    identity: tuple[int, ...] = ()
    data: bytes = b""
    is_text: bool = False

    @property
    def is_free(self) -> bool:
        """Nothing stands there."""
        return self.mode == 0

    @property
    def is_file(self) -> bool:
        """A regular file stands there."""
        return self.mode > 0 and stat.S_ISREG(self.mode)

    @property
    def is_folder(self) -> bool:
        """A folder stands there."""
        return self.mode > 0 and stat.S_ISDIR(self.mode)

    @property
    def is_executable(self) -> bool:
        """The owner may run it."""
        return self.is_file and bool(self.mode & stat.S_IXUSR)

    def make_room(self, target: Path) -> None:
        """Keep what cannot be merged beside the target, under a name that is free; a text needs no room made."""
        if self.is_free or self.is_text:
            return
        if self.is_file:
            os.link(target, _free_name(target))
        else:
            target.rename(_free_name(target))


def clear_way(root: Path, path: str) -> str | None:
    """Move a file that stands where a folder of memoryd's above `path` belongs beside that place.

    Return its new name below `root`, None where there is none. A symlink stays: it leads where the person wants.
    """
    for folder in reversed(PurePosixPath(path).parents):
        if folder.as_posix() not in OWN_FOLDERS:
            continue
        target = root / folder
        with translated("set aside", target):
            if target.is_file() and not target.is_symlink():
                aside = _free_name(target)
                target.rename(aside)
                return aside.relative_to(root).as_posix()
    return None


def _free_name(target: Path) -> Path:
    number = 1
    while os.path.lexists(aside := target.with_name(f"{target.name}.set-aside-{number}")):
        number += 1
    return aside


def look(root: Path, path: str) -> Live:
    """Look at a path below `root` without following a symlink anywhere on the way. Raises StorageError."""
    target = root / path
    with translated("read", target):
        for folder in list((Path(path)).parents)[:-1]:
            if not _is_plain_folder(root / folder):
                return Live(_OUT_OF_REACH)
        try:
            facts = target.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return Live(0)
        identity = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        if not stat.S_ISREG(facts.st_mode):
            return Live(facts.st_mode, identity)
        data = target.read_bytes()
        return Live(facts.st_mode, identity, data, is_text=not isinstance(decode_text(path, data), Odd))


def _is_plain_folder(folder: Path) -> bool:
    """Say whether a path is a folder, or free to become one."""
    try:
        return stat.S_ISDIR(folder.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
