"""A history that does not grow for ever: its oldest changes become one, and objects that nothing names are collected.

The new root is the version at which the history is cut; what is a person's in it stays theirs (a commit of their own on
top), so that their lines are protected as before. Everything newer is written again on that root, and the refs move
together, by compare-and-swap: until then nothing has happened.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.workspace.authorship import KEPT_SUBJECT, person_lines
from memoryd.workspace.files import translated
from memoryd.workspace.git import ACCEPTED, DAEMON, INDEX_PREFIX, KEPT, PERSON, Repository
from memoryd.workspace.history import Change, message
from memoryd.workspace.layout import ALWAYS_THERE

LEAST_KEPT: Final = 20
"""Commits that are kept whatever their age and size: the last few changes can always be undone."""
SLACK: Final = 1.1
"""Only a history that is this much too old or too large is cut, so that it is not rewritten every hour."""
MANY_LOOSE: Final = 2_000
"""Loose objects from which on they are packed; a consolidation writes about ten."""
YOUNG: Final = "1.day.ago"
"""What nothing names is kept this long: a run at work has written objects that no ref names yet."""


@dataclass(frozen=True, slots=True)
class Room:
    """What the objects of a history take; `loose` counts those that are not packed."""

    bytes: int
    loose: int


@dataclass(frozen=True, slots=True)
class Shortened:
    """A history that is written anew and not yet in place: what to tell `git update-ref --stdin`."""

    accepted: str
    was_accepted: str
    removed: int
    commands: str


def room(repo: Repository) -> Room:
    """Measure the objects (blocking)."""
    out = repo.run("count-objects", "-v").decode()
    said = dict(row.split(": ", 1) for row in out.splitlines() if ": " in row)
    return Room(1024 * (int(said["size"]) + int(said["size-pack"])), int(said["count"]))


def collect(repo: Repository) -> None:
    """Pack what is named, drop what nothing has named for a day; idempotent, and a crash loses nothing."""
    repo.run("repack", "-a", "-d", "-q")
    repo.run("prune", f"--expire={YOUNG}")
    repo.run("prune-packed", "-q")


def forget_moves(repo: Repository) -> None:
    """Empty the reflogs, which would keep the old history."""
    repo.run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")


def commits_to_keep(commits: Sequence[tuple[str, int]], *, oldest_at: float, is_too_large: bool) -> int | None:
    """Decide how many of the commits (id and instant, newest first) stay; None: all of them.

    `oldest_at`: the instant before which they are too old. A history that is too large is halved.
    """
    if len(commits) <= LEAST_KEPT + 1:
        return None
    young = next((number for number, (_, at) in enumerate(commits) if at < oldest_at), len(commits))
    keep = max(min(young, len(commits) // 2 if is_too_large else len(commits)), LEAST_KEPT)
    return keep if keep < len(commits) - 1 else None


def line_of(repo: Repository) -> list[tuple[str, int]]:
    """Return the commits behind the accepted one, newest first, with their instants."""
    accepted = repo.accepted()
    if accepted is None:
        return []
    out = repo.run("log", "--first-parent", "--format=%H %at", accepted)
    rows = (row.split() for row in out.decode().splitlines())
    return [(name, int(at)) for name, at in rows]


def shorten(repo: Repository, commits: Sequence[tuple[str, int]], keep: int) -> Shortened:
    """Write the history anew from the commit behind the `keep` newest on; no ref is moved (blocking)."""
    cut, at = commits[keep]
    accepted, head = commits[0][0], repo.head()
    removed = len(commits) - keep
    root = _root(repo, cut, at, removed)
    tips = {ACCEPTED: accepted, **_kept_refs(repo)}
    if head is not None and repo.is_ancestor(cut, head):
        tips["HEAD"] = head
    anew = _rewrite(repo, sorted({*tips.values()}), cut, root)
    lines = []
    for ref, tip in tips.items():
        if tip in anew:
            lines.append(f"update {ref} {anew[tip]} {tip}")
        elif ref.startswith(f"{KEPT}/"):
            lines.append(f"delete {ref} {tip}")
    return Shortened(anew[accepted], accepted, removed, "".join(f"{line}\n" for line in lines))


def move_refs(repo: Repository, shortened: Shortened) -> None:
    """Put the new history in the place of the old one, all refs or none; again is no mistake.

    Raises GitError when one has moved since.
    """
    if repo.accepted() != shortened.accepted:
        repo.run("update-ref", "--stdin", stdin=shortened.commands.encode())


def _root(repo: Repository, cut: str, at: int, removed: int) -> str:
    """Write the version at the cut as the first of its history; return the commit to build on."""
    tree = repo.tree_of(cut)
    said = message(Change.SHORTENING, f"Shorten the history by {removed} changes", [("Changes", str(removed))])
    below = _without_persons(repo, cut)
    root = repo.commit_tree(below or tree, [], said, author=DAEMON, at=at)
    return repo.commit_tree(tree, [root], f"{KEPT_SUBJECT}\n", author=PERSON, at=at) if below else root


def _without_persons(repo: Repository, cut: str) -> str | None:
    """Return the tree of a commit without the lines that are a person's; None where there are none."""
    texts: dict[str, bytes] = {}
    for path, data in repo.read_all(cut, ALWAYS_THERE).items():
        persons = person_lines(repo, cut, path)
        rows = data.split(b"\n")
        left = [row for number, row in enumerate(rows, start=1) if number not in persons]
        if len(left) < len(rows):
            texts[path] = b"\n".join(left)
    if not texts:
        return None
    with (
        translated("write an index in", repo.git_dir),
        tempfile.TemporaryDirectory(prefix=INDEX_PREFIX, dir=repo.git_dir) as folder,
    ):
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        repo.run("read-tree", cut, environ=index)
        for path, data in texts.items():
            blob = repo.run("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()
            repo.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environ=index)
        return repo.run("write-tree", environ=index).decode().strip()


def _kept_refs(repo: Repository) -> dict[str, str]:
    out = repo.run("for-each-ref", "--format=%(refname) %(objectname)", f"{KEPT}/").decode()
    return dict(row.split(" ", 1) for row in out.splitlines())


def _rewrite(repo: Repository, tips: Sequence[str], cut: str, root: str) -> Mapping[str, str]:
    """Write the commits behind `tips` that are not behind `cut` again on `root`; return new ids by old ones."""
    out = repo.run("rev-list", "--topo-order", "--reverse", *tips, f"^{cut}")
    names = out.decode().split()
    anew: dict[str, str] = {cut: root}
    bodies: list[bytes] = []
    for name, body in zip(names, _bodies(repo, names), strict=True):
        written = _on_new_parents(body, anew, root)
        digest = hashlib.sha1(b"commit %d\0" % len(written) + written, usedforsecurity=False)
        anew[name] = digest.hexdigest()
        bodies.append(written)
    _write_commits(repo, bodies)
    return anew


def _bodies(repo: Repository, names: Sequence[str]) -> list[bytes]:
    answer = repo.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode()) if names else b""
    found, start = [], 0
    for _ in names:
        end = answer.index(b"\n", start)
        size = int(answer[start:end].rsplit(b" ", 1)[1])
        found.append(answer[end + 1 : end + 1 + size])
        start = end + size + 2
    return found


def _on_new_parents(body: bytes, anew: Mapping[str, str], root: str) -> bytes:
    """Return a commit with its new parents, and without a signature, which would not fit any more."""
    head, blank, text = body.partition(b"\n\n")
    rows: list[bytes] = []
    is_signature = False
    for row in head.split(b"\n"):
        is_signature = row.startswith(b"gpgsig") or (is_signature and row.startswith(b" "))
        if is_signature:
            continue
        if row.startswith(b"parent "):
            row = b"parent " + anew.get(row[7:].decode(), root).encode()  # noqa: PLW2901 - the same row, on new ground
            if row in rows:
                continue
        rows.append(row)
    return b"\n".join(rows) + blank + text


def _write_commits(repo: Repository, bodies: Sequence[bytes]) -> None:
    with (
        translated("write commits in", repo.git_dir),
        tempfile.TemporaryDirectory(prefix=INDEX_PREFIX, dir=repo.git_dir) as folder,
    ):
        paths = []
        for number, body in enumerate(bodies):
            path = Path(folder) / str(number)
            path.write_bytes(body)
            paths.append(f'"{_escaped(path)}"\n')
        if paths:
            repo.run(
                "hash-object", "-t", "commit", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode("".join(paths))
            )


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
