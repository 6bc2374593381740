"""The history of the memory folder: the only module that runs git, cut off from the user's own configuration.

Trees are built from files by plumbing (hash-object, update-index, write-tree) with an index of their own, so no ignore
file, filter, hook, nested repository or stale index.lock of the live folder has a say in them.
"""

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from memoryd.errors import DiskFull, GitError, GitMissing
from memoryd.workspace.files import fsync_folder, translated
from memoryd.workspace.git_process import INSTALL_GIT, Children
from memoryd.workspace.plain_git import plain_environment, plain_git_dir

ACCEPTED: Final = "refs/memoryd/accepted"
MAIN: Final = "refs/heads/main"
KEPT: Final = "refs/memoryd/kept"
INDEX_PREFIX: Final = ".memoryd-index-"
TIMEOUT_SECONDS: Final = 120.0
LONGER_SECONDS: Final = 900.0
"""For what goes through the whole history: it is never waited for by a publication."""
OLDEST_GIT: Final = (2, 22)
"""An older one lacks `rev-list --no-object-names`, and would find every repository broken."""

_WITHOUT_INDEX: Final = frozenset({"diff-tree", "log", "blame", "rev-list"})
"""They look into the index for attributes only, and die of the live one where that is damaged."""
_THOROUGH: Final = frozenset({"repack", "prune", "fsck", "gc"})
_GIT_CONFIG: Final = (
    "core.hooksPath=/dev/null",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "core.bare=false",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.sparseCheckout=false",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.protectNTFS=false",  # a person's file may be called git~1; nothing is checked out here
    "core.protectHFS=false",
    "core.quotePath=false",
    "core.fsync=all",
    "core.fsyncObjectFiles=true",
    "core.filesRefLockTimeout=2000",
    "core.packedRefsTimeout=2000",
    "commit.gpgsign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
    "protocol.allow=never",  # a clone that is not whole would fetch what it lacks
    "i18n.commitEncoding=utf-8",
    "i18n.logOutputEncoding=utf-8",
    "log.follow=false",
    "log.mailmap=false",
    "mailmap.file=/dev/null",
    "merge.conflictStyle=merge",
    "user.name=memoryd",
    "user.email=memoryd@localhost.invalid",
)
_ISOLATED: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_DEFAULT_REF_FORMAT": "files",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_NEVER_SAID: Final = "warning: core.fsyncObjectFiles"
_NO_ROOM: Final = ("No space left on device", "Read-only file system", "Disk quota exceeded", "couldn't write")
"""The last is all that git says of a reference that finds no room."""
_DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


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


DAEMON: Final = Author("memoryd", "memoryd@localhost.invalid")
PERSON: Final = Author("person", "person@localhost.invalid")


@dataclass(frozen=True, slots=True)
class Commit:
    """An entry of the history; `at` is epoch seconds, `body` all of the message after its first line."""

    id: str
    parents: tuple[str, ...]
    author: str
    at: int
    subject: str
    body: str


class Repository:
    """memories/.git; every method blocks, so callers on the event loop use a thread.

    `environ` is the environment that config.py read; only PATH is taken from it. `objects` makes this a view that
    writes its objects into another folder and leaves the repository as it is.
    Raises GitMissing without git, GitError where git refuses, DiskFull where git says so.
    """

    def __init__(
        self,
        git_dir: Path,
        work_tree: Path,
        *,
        environ: Mapping[str, str],
        objects: Path | None = None,
        children: Children | None = None,
        making: "threading.Lock | None" = None,
    ) -> None:
        self.git_dir = Path(os.path.abspath(git_dir))  # noqa: PTH100 (resolve() would follow a symlink)
        self.work_tree = Path(os.path.abspath(work_tree))  # noqa: PTH100 (resolve() would follow a symlink)
        self._environ = environ
        self._objects = objects
        self._children = children or Children()
        self.making = making or threading.Lock()
        """Held by whoever makes or mends the repository: a scan and a consolidation may both find none."""

    def scratch(self, objects: Path) -> "Repository":
        """Return a view of this repository whose new objects go to `objects` and are gone with it."""
        return Repository(
            self.git_dir,
            self.work_tree,
            environ=self._environ,
            objects=objects,
            children=self._children,
            making=self.making,
        )

    def elsewhere(self, git_dir: Path) -> "Repository":
        """Return another repository of the same folder, which is to take this one's place."""
        return Repository(git_dir, self.work_tree, environ=self._environ, children=self._children, making=self.making)

    def end(self) -> None:
        """End every git that runs for this repository or a view of it, and run none any more: memoryd stops."""
        self._children.end()

    def require_usable_git(self) -> None:
        """Raise GitMissing unless there is a git, and one that knows what it is asked here."""
        if self._children.version is None:
            self._children.version = self._version()
        if self._children.version < OLDEST_GIT:
            found, wanted = (".".join(map(str, version)) for version in (self._children.version, OLDEST_GIT))
            self._children.version = None
            raise GitMissing(f"cannot use git {found}: memoryd needs {wanted} or newer", remedy="install a newer git")

    def _version(self) -> tuple[int, ...]:
        said = self.run("version").decode("utf-8", "replace")
        found = re.search(r"(\d+)\.(\d+)", said)
        return (int(found[1]), int(found[2])) if found else OLDEST_GIT

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environ: Mapping[str, str] | None = None,
        accepts: Iterable[int] = (0,),
    ) -> bytes:
        """Run one git command and return what it printed; an exit status not in `accepts` is a GitError."""
        done = self._call(arguments, stdin, environ or {})
        if done.returncode not in accepts:
            raise _refusal(arguments, done.stderr)
        return done.stdout

    def output(self, *arguments: str, stdin: bytes = b"") -> bytes | None:
        """Return what a git command printed, None where it refused: that is an answer, too."""
        done = self._call(arguments, stdin, {})
        return done.stdout if done.returncode == 0 else None

    def succeeds(self, *arguments: str) -> bool:
        """Say whether a git command ends well."""
        return self._call(arguments, b"", {}).returncode == 0

    def resolve(self, name: str) -> str | None:
        """Return the id of the commit that a ref or name stands for, None when it stands for none."""
        out = self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", accepts=(0, 1, 128))
        return out.decode().strip() or None

    def accepted(self) -> str | None:
        """Return the last accepted commit."""
        return self.resolve(ACCEPTED)

    def head(self) -> str | None:
        """Return the commit that is checked out."""
        return self.resolve("HEAD")

    def is_ancestor(self, old: str, new: str) -> bool:
        """Say whether `old` is `new` or lies behind it."""
        return self.succeeds("merge-base", "--is-ancestor", old, new)

    def tree_of(self, commit: str | None) -> str:
        """Return the tree of a commit; of None, the empty tree."""
        if commit is None:
            return self.run("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()

    def write_tree(self, files: Mapping[str, Path]) -> str:
        """Write files, by their path in the tree, as a tree; return its id."""
        ids = self._write_blobs(list(files.values()))
        rows = [f"100644 {blob}\t{path}\0" for path, blob in zip(files, ids, strict=True)]
        with (
            translated("write an index in", self.git_dir),
            tempfile.TemporaryDirectory(prefix=INDEX_PREFIX, dir=self.git_dir) as folder,
        ):
            index = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.run("update-index", "--add", "-z", "--index-info", stdin="".join(rows).encode(), environ=index)
            return self.run("write-tree", environ=index).decode().strip()

    def commit_tree(self, tree: str, parents: Sequence[str], message: str, *, author: Author, at: float) -> str:
        """Write a commit object that no ref names; return its id. `at` is epoch seconds."""
        when = f"@{int(at)} +0000"
        identity = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_AUTHOR_DATE": when,
            "GIT_COMMITTER_NAME": DAEMON.name,
            "GIT_COMMITTER_EMAIL": DAEMON.email,
            "GIT_COMMITTER_DATE": when,
        }
        behind = [word for parent in parents for word in ("-p", parent)]
        commit = self.run("commit-tree", tree, *behind, "-F", "-", stdin=message.encode(), environ=identity)
        self._flush_object_names()
        return commit.decode().strip()

    def changes(self, old_tree: str, new_tree: str) -> tuple[Change, ...]:
        """Return the paths that differ, in path order."""
        out = self.run("diff-tree", "-r", "-z", "--name-status", "--no-renames", old_tree, new_tree)
        words = out.decode("utf-8", "replace").split("\0")
        return tuple(Change(Status(status), path) for status, path in zip(words[0::2], words[1::2], strict=False))

    def diff(self, old_tree: str, new_tree: str, *, max_bytes: int) -> bytes:
        """Return the unified diff (3 lines of context), its first `max_bytes` + 1 bytes where it is longer."""
        arguments = ("diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--text",
                     "--unified=3", "--src-prefix=a/", "--dst-prefix=b/", old_tree, new_tree)  # fmt: skip
        seconds = _seconds(arguments)
        done = self._children.read(
            self._command(arguments), self._environment(arguments), max_bytes=max_bytes, seconds=seconds
        )
        if done.returncode != 0:
            raise _refusal(arguments, done.stderr)
        return done.stdout

    def read(self, commit: str, path: str) -> bytes | None:
        """Return a file as it is in a commit or tree, None where it has none."""
        return self.read_all(commit, [path]).get(path)

    def read_all(self, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Return those of the files that a commit or tree has; names with a line break are in no tree of ours."""
        asked = "".join(f"{commit}:{path}\n" for path in paths)
        answer = self.run("cat-file", "--batch", stdin=asked.encode()) if paths else b""
        found, start = {}, 0
        for path in paths:
            end = answer.index(b"\n", start)
            *_, kind, size = answer[start:end].rsplit(b" ", 2)
            start = end + 1
            if size == b"missing":
                continue
            if kind == b"blob":
                found[path] = answer[start : start + int(size)]
            start += int(size) + 1
        return found

    def files(self, commit: str) -> frozenset[str]:
        """Return the paths of all files in a commit."""
        out = self.run("ls-tree", "-r", "-z", "--name-only", commit)
        return frozenset(filter(None, out.decode("utf-8", "replace").split("\0")))

    def merge(self, base: bytes, ours: bytes, theirs: bytes, *, scratch: Path) -> bytes | None:
        """Merge three versions of a text; where both sides changed the same lines `ours` stands. None: not text.

        Merging the result again may repeat lines: git aligns lines that occur twice differently the second time.
        `scratch` is a private folder in which the versions may lie for a moment.
        """
        with (
            translated("merge texts in", scratch),
            tempfile.TemporaryDirectory(prefix="merge-", dir=scratch) as folder,
        ):
            names = []
            for name, content in (("ours", ours), ("base", base), ("theirs", theirs)):
                names.append(f"{folder}/{name}")
                Path(names[-1]).write_bytes(content)
            done = self._call(("merge-file", "-p", "-q", "--ours", *names), b"", {})
        return done.stdout if done.returncode == 0 else None

    def log(self, *, limit: int, start: str = ACCEPTED) -> tuple[Commit, ...]:
        """Return the newest commits behind `start`, newest first; none in a new repository."""
        newest = self.resolve(start)
        if newest is None:
            return ()
        form = "--format=%H%x1f%P%x1f%an%x1f%at%x1f%s%x1f%b%x1e"
        out = self.run("log", f"--max-count={limit}", "--no-color", "--no-show-signature", form, newest)
        return tuple(_commit(record) for record in out.decode("utf-8", "replace").split("\x1e") if record.strip())

    def _write_blobs(self, files: Sequence[Path]) -> list[str]:
        if not files:
            return []
        names = "".join(f"{_quoted(path)}\n" for path in files)
        out = self.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode(names))
        return out.decode().split()

    def _flush_object_names(self) -> None:
        """Fsync the folders of the objects: git makes contents durable, not the names under which they lie."""
        if self._objects is not None:
            return
        for folder in (self.git_dir / "objects").iterdir():
            if folder.is_dir():
                fsync_folder(folder)

    def _call(
        self, arguments: Sequence[str], stdin: bytes, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        everything = {**self._environment(arguments), **environ}
        return self._children.run(self._command(arguments), everything, stdin=stdin, seconds=_seconds(arguments))

    def _command(self, arguments: Sequence[str]) -> list[str]:
        passing = ("core.fsync=none", "core.fsyncObjectFiles=false") if self._objects is not None else ()
        settings = [word for setting in (*_GIT_CONFIG, *passing) for word in ("-c", setting)]
        git_dir = plain_git_dir(self.git_dir, arguments) or self.git_dir
        return ["git", *settings, f"--git-dir={git_dir}", f"--work-tree={self.work_tree}", *arguments]

    def _environment(self, arguments: Sequence[str]) -> dict[str, str]:
        environ = {**_ISOLATED, "PATH": self._environ.get("PATH") or _DEFAULT_PATH}
        if plain_git_dir(self.git_dir, arguments) is not None:
            environ |= plain_environment(self.git_dir)
        if arguments[0] in _WITHOUT_INDEX:
            environ["GIT_INDEX_FILE"] = str(self.git_dir / f"{INDEX_PREFIX}none")
        if self._objects is not None:
            environ["GIT_OBJECT_DIRECTORY"] = str(self._objects)
            environ["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(self.git_dir / "objects")
        return environ


def _seconds(arguments: Sequence[str]) -> float:
    return LONGER_SECONDS if arguments[0] in _THOROUGH else TIMEOUT_SECONDS


def _quoted(path: Path) -> str:
    """Quote a path for --stdin-paths, where a name may begin with a quotation mark or hold a backslash."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _commit(record: str) -> Commit:
    name, parents, author, at, subject, body = record.lstrip("\n").split("\x1f", 5)
    return Commit(name, tuple(parents.split()), author, int(at), subject, body.strip())


def _refusal(arguments: Sequence[str], stderr: bytes) -> GitError | DiskFull:
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if not line.startswith(_NEVER_SAID)]
    said = " ".join(" ".join(lines).split())[-500:] or "it gave no reason"
    if any(phrase in said for phrase in _NO_ROOM):
        return DiskFull(f"git {arguments[0]} in the memory folder: {said}", remedy="free some space")
    if "xcrun: error" in said:
        return GitMissing(f"cannot run git: {said}", remedy=INSTALL_GIT)
    return GitError(f"git {arguments[0]} in the memory folder failed: {said}", remedy="run `memoryd doctor`")
