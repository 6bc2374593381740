"""The state of memories/.git between runs: made, mended, and moved forward without losing anybody's commit."""

import hashlib
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Final

from memoryd.errors import GitError
from memoryd.workspace.files import translated
from memoryd.workspace.git import ACCEPTED, INDEX_PREFIX, KEPT, MAIN, Repository

_NO_COMMIT: Final = "0" * 40
LOOSE_PREFIX: Final = 2
"""Loose objects lie in folders named by the first two digits of their names."""


def ensure(repo: Repository) -> Path | None:
    """Make the repository, or build it anew where it is broken; return where a broken one was set aside.

    Broken: `.git` is no folder of its own, does not open, or its accepted commit cannot be read whole. What can still
    be read of its history is taken over. Never looks for a repository further up.
    """
    if not os.path.lexists(repo.git_dir):
        _create(repo)
        return None
    if _is_sound(repo):
        _sweep_indexes(repo)
        return None
    aside = _set_aside(repo.git_dir)
    _create(repo)
    _salvage(repo, aside)
    return aside


def accept(repo: Repository, commit: str) -> None:
    """Move refs/memoryd/accepted and HEAD to `commit` together; a commit that HEAD alone held is kept under a ref.

    Idempotent. Raises GitError when the accepted commit is one that `commit` does not follow.
    """
    accepted, head = repo.accepted(), repo.head()
    if accepted is not None and not repo.is_ancestor(accepted, commit):
        raise GitError(
            f"cannot accept {commit[:12]}: the accepted commit {accepted[:12]} is not behind it",
            remedy="run `memoryd sync` to consolidate again",
        )
    lines = [f"update {ACCEPTED} {commit} {accepted or _NO_COMMIT}"]
    if head is None or not repo.is_ancestor(commit, head):
        lines.append(f"update HEAD {commit} {head or _NO_COMMIT}")
        if head is not None and not repo.is_ancestor(head, commit):
            lines.append(f"update {KEPT}/{head} {head}")
    _update_refs(repo, "".join(f"{line}\n" for line in lines))
    _refresh_index(repo, commit)


def _create(repo: Repository) -> None:
    with translated("make the folder", repo.work_tree):
        repo.work_tree.mkdir(mode=0o700, parents=True, exist_ok=True)
    repo.run("init", "--quiet", "--template=")
    repo.run("symbolic-ref", "HEAD", MAIN)
    with translated("protect", repo.git_dir):
        repo.git_dir.chmod(0o700)


def _is_sound(repo: Repository) -> bool:
    if repo.git_dir.is_symlink() or not repo.git_dir.is_dir():
        return False
    if not repo.succeeds("rev-parse", "--git-dir"):
        return False
    if repo.head() is None and not _is_unborn(repo):
        return False
    accepted = repo.accepted()
    if accepted is None:
        return not os.path.lexists(repo.git_dir / ACCEPTED)
    return _is_whole(repo, accepted, depth=1)


def _is_unborn(repo: Repository) -> bool:
    """Say whether HEAD names a branch that has no commit yet, rather than one whose commit cannot be read."""
    branch = repo.run("symbolic-ref", "--quiet", "HEAD", accepts=(0, 1, 128)).decode().strip()
    return bool(branch) and not os.path.lexists(repo.git_dir / branch)


def _is_whole(repo: Repository, commit: str, *, depth: int | None = None) -> bool:
    """Say whether every object behind a commit can be found (of its newest `depth` commits)."""
    limit = [] if depth is None else [f"--max-count={depth}"]
    try:
        names = repo.run("rev-list", "--objects", "--no-object-names", *limit, commit)
        # rev-list asks of a blob only whether its file is there; a power cut leaves empty ones
        return b" missing\n" not in repo.run("cat-file", "--batch-check", stdin=names)
    except GitError:
        return False


def _sweep_indexes(repo: Repository) -> None:
    for left in repo.git_dir.glob(f"{INDEX_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)


def _set_aside(git_dir: Path) -> Path:
    number = 1
    while os.path.lexists(aside := git_dir.with_name(f"{git_dir.name}.broken-{number}")):
        number += 1
    with translated("set aside", git_dir):
        git_dir.rename(aside)
    return aside


def _salvage(repo: Repository, aside: Path) -> None:
    """Take over the objects of a broken repository, and its accepted commit if all of it is there."""
    if aside.is_symlink() or not (aside / "objects").is_dir():
        return
    with translated("copy", aside / "objects"):
        shutil.copytree(
            aside / "objects", repo.git_dir / "objects", dirs_exist_ok=True, symlinks=True, ignore=_unreadable_objects
        )
    for ref in (ACCEPTED, MAIN):
        commit = _recorded(aside, ref)
        if commit and repo.resolve(commit) and _is_whole(repo, commit):
            repo.run("update-ref", ref, commit)


def _unreadable_objects(folder: str, names: list[str]) -> list[str]:
    """Name the loose objects that are damaged: git would take them for there, and refuse to build on them."""
    prefix = Path(folder).name
    if len(prefix) != LOOSE_PREFIX:
        return []
    return [name for name in names if not _is_object(Path(folder) / name, prefix + name)]


def _is_object(path: Path, name: str) -> bool:
    """Say whether a loose object holds what its name is the digest of."""
    try:
        content = zlib.decompress(path.read_bytes())
    except (OSError, zlib.error):
        return False
    return hashlib.sha1(content, usedforsecurity=False).hexdigest() == name


def _recorded(git_dir: Path, ref: str) -> str | None:
    """Read a ref's value from the files of a repository that git no longer opens."""
    try:
        return (git_dir / ref).read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        pass
    try:
        rows = (git_dir / "packed-refs").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    return next((row.split()[0] for row in rows if row.endswith(f" {ref}")), None)


def _update_refs(repo: Repository, commands: str) -> None:
    """Move refs in one transaction; a lock that outlives git's own patience was left by a crash and is removed."""
    try:
        repo.run("update-ref", "--stdin", stdin=commands.encode())
    except GitError as error:
        if "File exists" not in error.message:
            raise
        with translated("remove stale locks in", repo.git_dir):
            for lock in (repo.git_dir / "HEAD.lock", *(repo.git_dir / "refs").rglob("*.lock")):
                lock.unlink(missing_ok=True)
        repo.run("update-ref", "--stdin", stdin=commands.encode())


def _refresh_index(repo: Repository, commit: str) -> None:
    """Let `git status` compare with the new commit; a person's git at work (index.lock) is not disturbed."""
    if os.path.lexists(repo.git_dir / "index.lock"):
        return
    with (
        translated("replace", repo.git_dir / "index"),
        tempfile.TemporaryDirectory(prefix=INDEX_PREFIX, dir=repo.git_dir) as folder,
    ):
        fresh = Path(folder) / "index"
        repo.run("read-tree", commit, environ={"GIT_INDEX_FILE": str(fresh)})
        fresh.replace(repo.git_dir / "index")
