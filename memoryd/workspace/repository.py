"""The state of memories/.git between runs: made, mended, and moved forward without losing anybody's commit."""

import hashlib
import os
import shutil
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

from memoryd.errors import GitError
from memoryd.workspace.files import translated
from memoryd.workspace.git import ACCEPTED, INDEX_PREFIX, KEPT, MAIN, Repository
from memoryd.workspace.unfinished import BUSY

_MAX_WAITS_FOR_LOCKS: Final = 5
_KEPT_REFS: Final = ("refs/heads/", "refs/tags/", "refs/stash", "refs/memoryd/")
LOOSE_PREFIX: Final = 2
"""Loose objects lie in folders named by the first two digits of their names."""


def ensure(repo: Repository) -> Path | None:
    """Make the repository, or build it anew where it is broken; return where a broken one was set aside.

    Broken: `.git` is no folder of its own, does not open, or its accepted commit cannot be read whole. What can still
    be read of its history is taken over, a person's branches included. Never looks for a repository further up. A git
    that does not answer says nothing of the repository: GitError, and everything stays.
    """
    repo.require_usable_git()
    with repo.making:
        if not os.path.lexists(repo.git_dir):
            _create(repo)
            return None
        if _is_sound(repo):
            return None
        aside = _set_aside(repo.git_dir)
        _create(repo)
        _salvage(repo, aside)
        return aside


def sweep(git_dir: Path) -> None:
    """Remove the indexes that killed processes left. Only for the start of the process that holds memoryd.lock.

    Later a tree may be written at any moment, by whoever reads the folder meanwhile.
    """
    if git_dir.is_symlink():
        return
    for left in git_dir.glob(f"{INDEX_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)


def accept(repo: Repository, commit: str) -> None:
    """Move refs/memoryd/accepted and HEAD to `commit` together; a commit that HEAD alone held is kept under a ref.

    In the middle of a person's merge or rebase HEAD is theirs, and stays. Idempotent. Raises GitError when the
    accepted commit is one that `commit` does not follow.
    """
    accepted, head = repo.accepted(), repo.head()
    if accepted is not None and not repo.is_ancestor(accepted, commit):
        raise GitError(
            f"cannot accept {commit[:12]}: the accepted commit {accepted[:12]} is not behind it",
            remedy="run `memoryd sync` to consolidate again",
        )
    nothing, is_busy = "0" * len(commit), _is_busy(repo)
    lines = [f"update {ACCEPTED} {commit} {accepted or nothing}"]
    if not is_busy and (head is None or not repo.is_ancestor(commit, head)):
        lines.append(f"update HEAD {commit} {head or nothing}")
        if head is not None and not repo.is_ancestor(head, commit):
            lines.append(f"update {KEPT}/{head} {head}")
    _update_refs(repo, "".join(f"{line}\n" for line in lines))
    if not is_busy:
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
        return not _has_ref(repo.git_dir, ACCEPTED)
    return _is_whole(repo, accepted, depth=1)


def _is_unborn(repo: Repository) -> bool:
    """Say whether HEAD names a branch that has no commit yet, rather than one whose commit cannot be read."""
    branch = repo.run("symbolic-ref", "--quiet", "HEAD", accepts=(0, 1, 128)).decode().strip()
    return bool(branch) and not _has_ref(repo.git_dir, branch)


def _has_ref(git_dir: Path, ref: str) -> bool:
    """Say whether a ref is written down, whatever it names."""
    return os.path.lexists(git_dir / ref) or any(row.endswith(f" {ref}") for row in _packed_rows(git_dir))


def _is_busy(repo: Repository) -> bool:
    return any(os.path.lexists(repo.git_dir / name) for name in BUSY)


def _is_whole(repo: Repository, commit: str, *, depth: int | None = None) -> bool:
    """Say whether every object behind a commit can be found, or whether those of its newest `depth` can be read."""
    limit = [] if depth is None else [f"--max-count={depth}"]
    names = repo.output("rev-list", "--objects", "--no-object-names", *limit, commit)
    if names is None:
        return False
    # rev-list asks of a blob only whether its file is there; a power cut leaves empty ones
    found = repo.output("cat-file", "--batch-check", stdin=names)
    if found is None or b" missing\n" in found:
        return False
    return depth is None or repo.output("cat-file", "--batch", stdin=names) is not None


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
    _mend_packs(repo)
    for ref in sorted(_refs_recorded(aside)):
        commit = _recorded(aside, ref)
        if commit and repo.resolve(commit) and _is_whole(repo, commit):
            repo.succeeds("update-ref", ref, commit)


def _refs_recorded(git_dir: Path) -> set[str]:
    """Return the names of the refs that a repository which git no longer opens had."""
    loose = {path.relative_to(git_dir).as_posix() for path in (git_dir / "refs").rglob("*") if path.is_file()}
    found = loose | {row.split(" ", 1)[1] for row in _packed_rows(git_dir)} | {ACCEPTED, MAIN}
    return {ref for ref in found if ref.startswith(_KEPT_REFS) and not ref.endswith(".lock")}


def _mend_packs(repo: Repository) -> None:
    """Take out of a damaged pack what can be read of it; the others stay."""
    folder = repo.git_dir / "objects/pack"
    for index in folder.glob("*.idx"):
        if not index.with_suffix(".pack").exists() or not repo.succeeds("verify-pack", str(index)):
            with translated("remove", index):
                index.unlink()
    for pack in [pack for pack in folder.glob("*.pack") if not pack.with_suffix(".idx").exists()]:
        with translated("read", pack):
            content = pack.read_bytes()
            for part in folder.glob(f"{pack.stem}.*"):
                part.unlink()
        repo.output("unpack-objects", "-r", "-q", stdin=content)


def _unreadable_objects(folder: str, names: list[str]) -> list[str]:
    """Name the loose objects that are damaged: git would take them for there, and refuse to build on them.

    What git makes to find objects faster it makes again.
    """
    prefix = Path(folder).name
    if len(prefix) != LOOSE_PREFIX:
        return [name for name in names if name.startswith(("commit-graph", "multi-pack-index"))]
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
    return next((row.split(" ")[0] for row in _packed_rows(git_dir) if row.endswith(f" {ref}")), None)


def _packed_rows(git_dir: Path) -> list[str]:
    try:
        rows = (git_dir / "packed-refs").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [row for row in rows if " " in row and not row.startswith(("#", "^"))]


def _update_refs(repo: Repository, commands: str) -> None:
    """Move refs in one transaction.

    A lock that outlives git's own patience unchanged was left by a crash and is removed; one that comes and goes is a
    person's git at work, and is waited for.
    """
    for _ in range(_MAX_WAITS_FOR_LOCKS):
        before = _locks(repo)
        try:
            repo.run("update-ref", "--stdin", stdin=commands.encode())
        except GitError as error:
            if "File exists" not in error.message:
                raise
            stale = before & _locks(repo)
            with translated("remove stale locks in", repo.git_dir):
                for lock, _, _ in stale:
                    lock.unlink(missing_ok=True)
        else:
            return
    repo.run("update-ref", "--stdin", stdin=commands.encode())


def _locks(repo: Repository) -> set[tuple[Path, int, int]]:
    """Return the locks of refs that stand, each with what tells it from a later one of the same name."""
    found = set()
    own = (repo.git_dir / "HEAD.lock", repo.git_dir / "packed-refs.lock")
    for lock in (*own, *(repo.git_dir / "refs").rglob("*.lock")):
        with suppress(OSError):
            facts = lock.lstat()
            found.add((lock, facts.st_ino, facts.st_mtime_ns))
    return found


def _refresh_index(repo: Repository, commit: str) -> None:
    """Let `git status` compare with the new commit; a person's git at work (index.lock) is not disturbed."""
    index = repo.git_dir / "index"
    if os.path.lexists(repo.git_dir / "index.lock") or (index.is_dir() and not index.is_symlink()):
        return
    with (
        translated("replace", index),
        tempfile.TemporaryDirectory(prefix=INDEX_PREFIX, dir=repo.git_dir) as folder,
    ):
        fresh = Path(folder) / "index"
        repo.run("read-tree", commit, environ={"GIT_INDEX_FILE": str(fresh)})
        fresh.replace(index)
