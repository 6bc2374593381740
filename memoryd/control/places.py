"""A folder that a person names on the command line, as an absolute path; what names none is their mistake, not ours."""

import os
from contextlib import suppress
from pathlib import Path

from memoryd.errors import UsageError
from memoryd.workspace.files import translated


def absolute_place(named: Path) -> Path:
    """Return the path that is meant, `~` and the working folder filled in; links stay as they are.

    Raises UsageError for `-`, which stands for a stream and for no folder, and for the home of a user whom nobody
    knows; StorageError for a name that no file system takes.
    """
    if str(named) == "-":
        raise UsageError("`-` is no folder", remedy="name one; `./-` if it is called so")
    try:
        path = named.expanduser().absolute()
    except RuntimeError:
        raise UsageError(f"nobody knows where {named} is", remedy="name the folder by its path") from None
    with translated("look at", path, remedy="name another folder"), suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(path)
    return path
