"""The history of the memory folder: the only module that runs git, cut off from the user's own configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Status(StrEnum):
    """What became of a path between two trees."""

    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between two trees."""

    status: Status
    path: str


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a commit."""

    name: str
    email: str


class Repository:
    """memories/.git; every method blocks, so callers on the event loop use a thread.

    `environ` is the environment that config.py read; only PATH is taken from it.
    Raises GitMissing without git, GitError where git refuses, DiskFull where git says so.
    """

    def __init__(self, git_dir: Path, work_tree: Path, *, environ: Mapping[str, str]) -> None: ...
