"""A private copy of the memory folder in which one consolidation works."""

from dataclasses import dataclass
from pathlib import Path

from memoryd.redact import Redactor
from memoryd.workspace.folder import Odd
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home


@dataclass(frozen=True, slots=True)
class Staging:
    """One staged run: `work` is changed, `base` stays what was copied and equals the tree of commit `parent`.

    `accepted` is the last accepted commit; `parent` is that commit or the commit of a person's edits made since; both
    are None in a new folder. `left_out` names what was not copied, and why.
    """

    token: str
    root: Path
    work: Path
    base: Path
    accepted: str | None
    parent: str | None
    left_out: tuple[tuple[str, Odd], ...] = ()


def stage(home: Home, repo: Repository, token: str, *, now: float, redactor: Redactor) -> Staging:
    """Copy the live folder into staging/<token>; a person's edits since the accepted commit become a commit first."""
    raise NotImplementedError


def discard(staging: Staging) -> None:
    """Remove a staged run."""
    raise NotImplementedError


def sweep(home: Home) -> list[str]:
    """Remove every staged run; return their tokens. Only the holder of memoryd.lock may call it."""
    raise NotImplementedError
