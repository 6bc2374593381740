"""A git folder without settings beside a person's own: what only reads objects looks there, and takes the real objects.

`git -c` overrides a setting, but cannot take back one that git dies of when it reads it (a blame.ignoreRevsFile or a
diff.orderFile that is not there, a diff.algorithm that it does not know), nor those of attributes in info/.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memoryd.workspace.files import temporary_beside, translated

FOLDER: Final = "memoryd-plain"
"""In .git, where nothing is anybody's memory."""
_READERS: Final = frozenset({"blame", "diff-tree", "log", "merge-file"})
"""They heed diff.*, merge.*, blame.*, log.*, color.* and mailmap.*."""
_ID: Final = re.compile(r"[0-9a-f]{40}")
_WITHOUT_IDS: Final = "merge-file"
_HEAD: Final = b"ref: refs/heads/none\n"


def plain_git_dir(git_dir: Path, arguments: Sequence[str]) -> Path | None:
    """Return the folder to give to git as its own for a command, made where it is missing; None: the real one.

    A command that names refs needs the real one; and so does a repository of the longer kind of ids, which says so in
    its settings. Raises StorageError.
    """
    command = arguments[0]
    if command not in _READERS or not (command == _WITHOUT_IDS or any(map(_ID.fullmatch, arguments))):
        return None
    if not (git_dir / "objects").is_dir():
        return None
    folder = git_dir / FOLDER
    head = folder / "HEAD"
    with translated("make the folder", folder):
        (folder / "refs").mkdir(mode=0o700, parents=True, exist_ok=True)
        if not head.is_file() or head.read_bytes() != _HEAD:
            temporary = temporary_beside(head)
            temporary.write_bytes(_HEAD)
            temporary.replace(head)
    return folder


def plain_environment(git_dir: Path) -> dict[str, str]:
    """Return where such a command finds what it does not look for in the folder: objects, and where history ends."""
    shallow = git_dir / "shallow"
    ends = {"GIT_SHALLOW_FILE": str(shallow)} if os.path.lexists(shallow) else {}
    return {"GIT_OBJECT_DIRECTORY": str(git_dir / "objects"), **ends}
