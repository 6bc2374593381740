"""A folder of memories as a value, and the rule of what in a folder is an input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Odd(StrEnum):
    """Why an entry is no input."""

    SYMLINK = "symlink"
    REPOSITORY = "nested repository"
    HIDDEN = "hidden name"
    EDITOR_FILE = "editor's file"
    BAD_NAME = "unusable name"
    SPECIAL = "not a regular file"
    TOO_LARGE = "larger than 1 MiB"
    BINARY = "not UTF-8 text"
    UNREADABLE = "unreadable"
    SECRET = "contains a secret"


@dataclass(frozen=True, slots=True)
class Folder:
    """The text files of a folder by relative path, and the entries that are no inputs with the reason."""

    files: Mapping[str, str] = field(default_factory=dict)
    odd: Mapping[str, Odd] = field(default_factory=dict)


def read_folder(root: Path) -> Folder:
    """Read a folder; its own `.git` at the root is no entry of it. Raises StorageError where it cannot be listed."""
    raise NotImplementedError
