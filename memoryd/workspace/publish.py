"""Putting an accepted result in place: objects first, then file by file, then the refs (DESIGN.md section 7)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home
from memoryd.workspace.staging import Staging


@dataclass(frozen=True, slots=True)
class Placement:
    """What publication did: paths written, deleted, and left as the person has them."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def prepare_commit(
    repo: Repository, staging: Staging, *, subject: str, trailers: Sequence[tuple[str, str]] = (), now: float
) -> str:
    """Write the staged work as a commit on top of Staging.parent, durable, no ref moved; return its id."""
    raise NotImplementedError


def put_in_place(
    home: Home,
    repo: Repository,
    commit: str,
    base: str | None,
    *,
    reached: Callable[[str], None] = lambda _name: None,
    still_ours: Callable[[], None] = lambda: None,
) -> Placement:
    """Publish a decided commit; `base` is Staging.parent. Idempotent: after a crash anywhere, call it again."""
    raise NotImplementedError
