"""Who wrote a line of the memory, and what a person took out of it, as the history of the folder tells."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from memoryd.workspace.git import DAEMON, Repository
from memoryd.workspace.layout import AD_HOC_NOTES, ALWAYS_THERE
from memoryd.workspace.outline import statement_key

MAX_COMMITS: Final = 5000
"""How far back the history is looked at for a person's commits."""
MAX_PERSON_COMMITS: Final = 200
"""What a person deleted longer ago than this many commits of theirs may come back."""
MAX_PATCH_BYTES: Final = 16 * 1024 * 1024

KEPT_SUBJECT: Final = "Keep a person's lines"
"""The subject of a commit by which memoryd gives back to the person what it moved: it tells nothing new of them."""

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_PLAIN: Final = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--text", "--unified=0")


@dataclass(slots=True)
class _Hunk:
    path: str
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def person_lines(repo: Repository, commit: str, path: str) -> frozenset[int]:
    """Return the numbers of the lines of a file whose last author is not memoryd."""
    return frozenset(number for number, author, _ in _blamed(repo, commit, path) if author != DAEMON.email)


def given_back_lines(repo: Repository, commit: str, path: str) -> frozenset[int]:
    """Return the numbers of a person's lines that memoryd wrote for them last: moved, or brought by an import."""
    return frozenset(
        number
        for number, author, subject in _blamed(repo, commit, path)
        if author != DAEMON.email and subject == KEPT_SUBJECT
    )


def has_person_commit(repo: Repository, commit: str, path: str) -> bool:
    """Say whether anybody but memoryd ever changed a file; only then it is worth asking who wrote which line."""
    return bool(_person_commits(repo, commit, (path,)))


def removed_by_person(repo: Repository, commit: str) -> Mapping[str, frozenset[str]]:
    """Return, for both files that agents read, what a person took out and did not write again: keys of statements.

    A statement that was moved counts as taken out; whether it stands somewhere is the caller's to see. Text that a
    person put into a note later is written again.
    """
    commits = _person_commits(repo, commit, (*ALWAYS_THERE, AD_HOC_NOTES))
    removed: dict[str, set[str]] = {path: set() for path in ALWAYS_THERE}
    for hunks in _patches(repo, list(reversed(commits))):
        taken: dict[str, set[str]] = {path: set() for path in ALWAYS_THERE}
        for hunk in hunks:
            before, after = ({_key(row) for row in rows} for rows in (hunk.removed, hunk.added))
            for path in ALWAYS_THERE if hunk.path not in ALWAYS_THERE else (hunk.path,):
                removed[path] -= after
            if hunk.path in ALWAYS_THERE:
                taken[hunk.path] |= before - after
        for path in ALWAYS_THERE:
            removed[path] |= taken[path]
    return {path: frozenset(keys - {""}) for path, keys in removed.items()}


def _blamed(repo: Repository, commit: str, path: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each line of a file with the author and the subject of the commit that it is from."""
    out = repo.run("blame", "--no-textconv", "--porcelain", commit, "--", path)
    authors: dict[str, str] = {}
    subjects: dict[str, str] = {}
    name, number = "", 0
    for row in out.decode("utf-8", "replace").split("\n"):
        if row.startswith("\t"):
            yield number, authors.get(name, ""), subjects.get(name, "")
        elif row.startswith("author-mail "):
            authors[name] = row.removeprefix("author-mail ").strip("<>")
        elif row.startswith("summary "):
            subjects[name] = row.removeprefix("summary ")
        elif header := re.match(r"([0-9a-f]{40,64}) \d+ (\d+)", row):
            name, number = header[1], int(header[2])


def _person_commits(repo: Repository, commit: str, paths: Iterable[str]) -> list[str]:
    """Return the newest commits on these paths that are not memoryd's, newest first."""
    out = repo.run("log", f"--max-count={MAX_COMMITS}", "--no-merges", "--format=%H %ae%x1f%s", commit, "--", *paths)
    rows = (row.partition(" ") for row in out.decode("utf-8", "replace").split("\n") if row)
    by_person = (name for name, _, rest in rows if not rest.startswith(f"{DAEMON.email}\x1f"))
    return list(by_person)[:MAX_PERSON_COMMITS]


def _patches(repo: Repository, commits: list[str]) -> Iterator[list[_Hunk]]:
    """Yield the hunks of each commit; what does not fit is forgotten, the oldest first."""
    room = MAX_PATCH_BYTES
    texts: list[str] = []
    for commit in reversed(commits):
        arguments = ("diff-tree", "--root", "-r", "--no-commit-id", *_PLAIN, commit, "--")
        out = repo.run(*arguments, *ALWAYS_THERE, AD_HOC_NOTES)
        room -= len(out)
        if room < 0:
            break
        texts.append(out.decode("utf-8", "replace"))
    for text in reversed(texts):
        yield list(_hunks(text))


def _hunks(patch: str) -> Iterator[_Hunk]:
    """Read a patch without context; the counts of a hunk tell its lines from the patch's own."""
    old_path = path = ""
    hunk, old_left, new_left = None, 0, 0
    for row in patch.split("\n"):
        if hunk is not None and old_left and row.startswith("-"):
            hunk.removed.append(row[1:])
            old_left -= 1
        elif hunk is not None and new_left and row.startswith("+"):
            hunk.added.append(row[1:])
            new_left -= 1
        elif match := _HUNK.match(row):
            old_left, new_left = (int(count) if count is not None else 1 for count in match.groups())
            hunk = _Hunk(path)
            yield hunk
        elif row.startswith("--- "):
            old_path = row.removeprefix("--- ").removeprefix("a/")
        elif row.startswith("+++ "):
            new_path = row.removeprefix("+++ ").removeprefix("b/")
            path = old_path if new_path == "/dev/null" else new_path


def _key(row: str) -> str:
    return "" if row.startswith("#") or not row.strip() else statement_key((row,))
