"""Putting an accepted result in place: objects first, then file by file, then the refs.

Everything after the deciding transaction may be repeated: a merge whose result stands already changes nothing, and once
the refs have moved the files are not looked at again.
"""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.errors import StorageError
from memoryd.workspace.authorship import KEPT_SUBJECT, person_lines
from memoryd.workspace.files import (
    fsync_folder,
    is_temporary,
    make_private_folder,
    temporary_beside,
    translated,
    write_durably,
    write_private,
)
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import DAEMON, PERSON, Repository, Status
from memoryd.workspace.layout import ALWAYS_THERE, DIFF_FILE, ROLLOUT_SUMMARIES, Home, is_evidence
from memoryd.workspace.live import Live, clear_way, look
from memoryd.workspace.merges import Merges, forget_merges
from memoryd.workspace.protection import without_removed
from memoryd.workspace.repository import accept, ensure
from memoryd.workspace.run_additions import with_added
from memoryd.workspace.staging import Staging

NOBODYS: Final[Mapping[str, Collection[str]]] = {}
_MAX_RACES: Final = 20


@dataclass(frozen=True, slots=True)
class Placement:
    """What publication did: paths written, deleted, and left as the person has them although the run changed them.

    `aside` are the new names of files that stood in the place of a folder.
    """

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()


def prepare_commit(
    repo: Repository,
    staging: Staging,
    message: str,
    *,
    now: float,
    persons: Mapping[str, Collection[str]] = NOBODYS,
) -> str:
    """Write the staged work as a commit on top of Staging.parent, durable, no ref moved; return its id.

    `message` is a subject line, and trailers below a blank one; `now` becomes the time of the commit. `persons` are the
    lines of each file that are a person's: where the run moved some, they are a further commit on top, by the person,
    so that whoever asks for the author of a line is told so.
    """
    files = {path: staging.work / path for path in Folder.read(staging.work).files if path != DIFF_FILE}
    parents = [staging.parent] if staging.parent else []
    tree = repo.write_tree(files)
    whole = repo.commit_tree(tree, parents, message, author=DAEMON, at=now)
    own = _without_moved(repo, staging, whole, {path: lines for path, lines in persons.items() if path in files})
    if not own:
        return whole
    below = repo.commit_tree(repo.write_tree({**files, **own}), parents, message, author=DAEMON, at=now)
    return repo.commit_tree(tree, [below], f"{KEPT_SUBJECT}\n", author=PERSON, at=now)


def _without_moved(
    repo: Repository, staging: Staging, commit: str, persons: Mapping[str, Collection[str]]
) -> dict[str, Path]:
    """Write files without the lines of a person that count as memoryd's in a commit; return those that had some."""
    found: dict[str, Path] = {}
    for path, lines in persons.items():
        rows = (staging.work / path).read_bytes().decode().split("\n")
        owned = person_lines(repo, commit, path) if lines else frozenset()
        own = [row for number, row in enumerate(rows, start=1) if number in owned or row not in lines]
        if len(own) < len(rows):
            found[path] = staging.root / "own" / path
            write_private(found[path], "\n".join(own).encode())
    return found


def put_in_place(
    home: Home,
    repo: Repository,
    commit: str,
    base: str | None,
    *,
    reached: Callable[[str], None] = lambda _name: None,
    still_ours: Callable[[], None] = lambda: None,
) -> Placement:
    """Publish a decided commit; `base` is Staging.base_id, the state that was staged (None: nothing).

    Idempotent: after a crash anywhere, call it again. `reached` is called with the name of each point passed:
    `before_rename:<path>`, `before_delete:<path>`, `before_refs`, `after_refs`; `still_ours`, before each change of
    the folder, raises to stop it.
    """
    ensure(repo)
    placement = Placement()
    if repo.accepted() != commit:
        placement = _Publication(home, repo, commit, base, reached, still_ours).place()
    still_ours()
    _sweep_temporaries(home.memories)
    reached("before_refs")
    still_ours()
    accept(repo, commit)
    forget_merges(repo.git_dir)
    reached("after_refs")
    return placement


class _Publication:
    """One pass over the paths in which a decided commit differs from what was staged."""

    def __init__(
        self,
        home: Home,
        repo: Repository,
        commit: str,
        base: str | None,
        reached: Callable[[str], None],
        still_ours: Callable[[], None],
    ) -> None:
        self.home, self.repo, self.commit = home, repo, commit
        self.base = base or repo.tree_of(None)
        self.reached, self.still_ours = reached, still_ours
        self.kept: list[str] = []
        self.aside: list[str] = []
        self.merges = Merges.of(repo.git_dir, commit)
        self.old: dict[str, bytes] = {}
        self.new: dict[str, bytes] = {}

    def place(self) -> Placement:
        """Write evidence and skills, then the two files that agents read, then delete."""
        changes = self.repo.changes(self.repo.tree_of(self.base), self.repo.tree_of(self.commit))
        paths = list(dict.fromkeys([*(change.path for change in changes), *ALWAYS_THERE]))
        self.old, self.new = self.repo.read_all(self.base, paths), self.repo.read_all(self.commit, paths)
        wanted = [change.path for change in changes if change.status is not Status.DELETED]
        ordinary = [path for path in wanted if path not in ALWAYS_THERE]
        written = [path for path in (*ordinary, *ALWAYS_THERE) if self._write(path)]
        doomed = [change.path for change in changes if change.status is Status.DELETED]
        deleted = [path for path in doomed if path not in ALWAYS_THERE and self._delete(path)]
        return Placement(tuple(written), tuple(deleted), tuple(self.kept), tuple(self.aside))

    def _write(self, path: str) -> bool:
        """Bring one file to its merged text; True when something was written.

        A person who saves between our look and our rename makes us look again, so that no text of theirs is lost.
        """
        theirs, base = self.new.get(path), self.old.get(path)
        if theirs is None:
            return False
        for _ in range(_MAX_RACES):
            self.still_ours()
            if (aside := clear_way(self.home.memories, path)) is not None:
                self.aside.append(aside)
            live = look(self.home.memories, path)
            if live.is_file and self.merges.has(path, live.data):
                return False
            merged = self._merged(path, live, base, theirs)
            if merged is None or (live.is_file and merged == live.data):
                return False
            if merged != theirs:
                self.merges.note(path, merged)
            if self._rename_over(path, live, merged):
                return True
        raise StorageError(
            f"cannot publish {path}: another program keeps changing it", remedy="stop that program, then `memoryd sync`"
        )

    def _merged(self, path: str, live: Live, base: bytes | None, theirs: bytes) -> bytes | None:
        """Decide what the file is to hold; None: it stays as it is. The person's text wins."""
        if path in ALWAYS_THERE:
            if not live.is_text or not live.data.strip():
                return theirs
        elif (live.is_free and base is None) or (live.is_folder and is_evidence(path)):
            return theirs
        elif not live.is_text:
            self.kept.append(path)
            return None
        if live.data == base:
            return theirs
        merged = self.repo.merge(base or b"", live.data, theirs, scratch=self.home.staging)
        if merged is None or base is None or path not in ALWAYS_THERE:
            return merged
        old, mine, new, text = (data.decode("utf-8", "replace") for data in (base, live.data, theirs, merged))
        text = without_removed(path, old, mine, text)
        return with_added(path, old, mine, new, text).encode()

    def _rename_over(self, path: str, live: Live, data: bytes) -> bool:
        """Replace a file whole; False when it is no longer the one that was looked at."""
        target = self.home.memories / path
        self.still_ours()
        if not target.parent.is_dir():
            with translated("make the folder", target.parent):
                make_private_folder(target.parent)
            fsync_folder(target.parent.parent)
        temporary = temporary_beside(target)
        write_durably(temporary, data, mode=0o700 if live.is_executable else 0o600)
        self.reached(f"before_rename:{path}")
        self.still_ours()
        if look(self.home.memories, path) != live:
            return False
        with translated("replace", target):
            live.make_room(target)
            temporary.replace(target)
        fsync_folder(target.parent)
        return True

    def _delete(self, path: str) -> bool:
        """Remove a file that the run removed, unless the person has changed it since; True when it was removed.

        Evidence of a session that is no longer selected goes in any case.
        """
        live = look(self.home.memories, path)
        if live.is_free:
            return False
        may_go = path.startswith(f"{ROLLOUT_SUMMARIES}/") and live.is_file
        if not may_go and (not live.is_file or live.data != self.old.get(path)):
            self.kept.append(path)
            return False
        self.reached(f"before_delete:{path}")
        self.still_ours()
        target = self.home.memories / path
        with translated("remove", target):
            target.unlink(missing_ok=True)
        fsync_folder(target.parent)
        _remove_empty_parents(target.parent, self.home.memories)
        return True


def _remove_empty_parents(folder: Path, root: Path) -> None:
    """Remove folders that a deletion left empty, below the folders that always stand."""
    while folder.parent not in (root, folder) and folder != root:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _sweep_temporaries(root: Path) -> None:
    """Remove what a killed publication left beside its targets."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in filter(is_temporary, names):
            left = Path(folder) / name
            with translated("remove", left):
                left.unlink(missing_ok=True)
