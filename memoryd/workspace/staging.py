"""A private copy of the memory folder in which one consolidation works."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.errors import StorageError, UsageError
from memoryd.redact import Redactor
from memoryd.trees import remove_tree
from memoryd.workspace.extensions import seed_instructions
from memoryd.workspace.files import translated, write_private
from memoryd.workspace.folder import Folder, Odd, decode_text
from memoryd.workspace.git import PERSON, Repository
from memoryd.workspace.layout import DIFF_FILE, Home, is_misplaced, prepare
from memoryd.workspace.repository import ensure

_TOKEN: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
_EDITS: Final = "Keep a person's edits of the memory folder\n"


@dataclass(frozen=True, slots=True)
class Staging:
    """One staged run: `work` is changed, `base` stays what was copied and equals the tree of commit `parent`.

    `accepted` is the last accepted commit; `parent` is that commit or the commit of a person's edits made since; both
    are None in a new folder. `base_id` names `base` in git: `parent`, or the empty tree. `left_out` names what was not
    copied, and why (hidden names are not reported).
    """

    token: str
    root: Path
    work: Path
    base: Path
    accepted: str | None
    parent: str | None
    base_id: str
    left_out: tuple[tuple[str, Odd], ...] = ()


def stage(home: Home, repo: Repository, token: str, *, now: float, redactor: Redactor) -> Staging:
    """Copy the live folder into staging/<token>; a person's edits since the accepted commit become a commit first.

    A decided publication must have been put in place before. A file with a secret is not copied: the accepted version
    stands in for it, if there is one, with what is a secret by now taken out of the copy that a model reads. No ref is
    moved, so a run that comes to nothing leaves no trace.
    """
    if not _TOKEN.fullmatch(token):
        raise UsageError(f"cannot stage under the name {token!r}: only letters, digits, - and _ can be used")
    prepare(home)
    ensure(repo)
    accepted = repo.accepted()
    live = Folder.read(home.memories)
    files, left_out = _inputs(repo, accepted, live, redactor)
    root = home.staging / token
    work, base = root / "work", root / "base"
    _copy(root, base, files)
    _copy(root, work, {path: redactor.clean(text) for path, text in files.items()})
    parent = _commit_edits(repo, accepted, base, files, now)
    if accepted is None:
        seed_instructions(work)
    return Staging(token, root, work, base, accepted, parent, parent or repo.tree_of(None), left_out)


def discard(staging: Staging) -> None:
    """Remove a staged run; removing it twice is no error."""
    remove_tree(staging.root)


def sweep(home: Home) -> list[str]:
    """Remove every staged run; return their names. Only the holder of memoryd.lock may call it.

    Raises StorageError when the folder is a symlink: what it leads to is not ours to empty.
    """
    if home.staging.is_symlink():
        raise StorageError(
            f"{home.staging} is a symlink, and memoryd empties this folder at each start", remedy="remove the link"
        )
    with translated("list", home.staging):
        left = sorted(home.staging.iterdir()) if home.staging.is_dir() else []
    for entry in left:
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink(missing_ok=True)
    return [entry.name for entry in left]


def _inputs(
    repo: Repository, accepted: str | None, live: Folder, redactor: Redactor
) -> tuple[dict[str, str], tuple[tuple[str, Odd], ...]]:
    """Return the texts to stage, and what was left out."""
    odd: dict[str, Odd] = {path: reason for path, reason in live.odd.items() if reason is not Odd.HIDDEN}
    files: dict[str, str] = {}
    for path, text in live.files.items():
        if path == DIFF_FILE:
            continue
        reason = _unfit(path, text, redactor)
        if reason is None:
            files[path] = text
        else:
            odd[path] = reason
    if accepted is not None:
        for path in (path for path, reason in odd.items() if reason in (Odd.SECRET, Odd.UNREADABLE)):
            stand_in = _accepted_text(repo, accepted, path)
            if stand_in is not None:
                files[path] = stand_in
    return dict(sorted(files.items())), tuple(sorted(odd.items()))


def _unfit(path: str, text: str, redactor: Redactor) -> Odd | None:
    """Say why a text file is not staged."""
    if is_misplaced(path):
        return Odd.MISPLACED
    if redactor.contains_secret(path):
        return Odd.SECRET_NAME
    return Odd.SECRET if redactor.contains_secret(text) else None


def _accepted_text(repo: Repository, accepted: str, path: str) -> str | None:
    data = repo.read(accepted, path)
    text = decode_text(path, data) if data is not None else None
    return None if isinstance(text, Odd) else text


def _copy(root: Path, folder: Path, files: Mapping[str, str]) -> None:
    remove_tree(folder)
    with translated("make the folder", folder):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    for path, text in files.items():
        write_private(folder / path, text.encode())


def _commit_edits(
    repo: Repository, accepted: str | None, base: Path, files: Mapping[str, str], now: float
) -> str | None:
    """Return the commit whose tree is the staged copy: an existing one, or a new one by the person."""
    start = start_of(repo, accepted)
    if start is None and not files:
        return None
    tree = repo.write_tree({path: base / path for path in files})
    if start is not None and tree == repo.tree_of(start):
        return start
    return repo.commit_tree(tree, [start] if start else [], _EDITS, author=PERSON, at=now)


def start_of(repo: Repository, accepted: str | None) -> str | None:
    """Return what to build on: HEAD where a person committed on top of the accepted commit, else the accepted one."""
    head = repo.head()
    if head is not None and (accepted is None or repo.is_ancestor(accepted, head)):
        return head
    return accepted
