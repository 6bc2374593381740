"""The history of the memory folder as a person reads it: one entry per change, who made it, from what, at what cost.

Git is the truth here: everything is read from commits and their trailers, so it works without a daemon or a ledger.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from memoryd.errors import GitError, UsageError
from memoryd.text import on_one_line, truncate_bytes
from memoryd.workspace.authorship import KEPT_SUBJECT
from memoryd.workspace.git import DAEMON, Repository
from memoryd.workspace.layout import ALWAYS_THERE, SKILLS

SHOWN_PATHS: Final = (*ALWAYS_THERE, SKILLS)
"""What a person reads of a change; evidence is named by its sessions."""
MAX_IDS: Final = 20
"""Thread ids in one trailer; the rest is counted."""
MAX_PATCH_BYTES: Final = 1024 * 1024
MAX_ENTRIES: Final = 10_000
CHANGE: Final = "Change"
_FIELDS: Final = "%x1e%H%x1f%P%x1f%ae%x1f%at%x1f%s%x1f%b%x1f"


class Change(StrEnum):
    """Who or what made an entry of the history; all but PERSON stand in a trailer of that name."""

    CONSOLIDATION = "consolidation"
    UNDO = "undo"
    IMPORT = "import"
    FORGETTING = "forget"
    CLEAN_UP = "clean-up"
    SHORTENING = "shortening"
    PERSON = "person"


UNDOABLE: Final = frozenset({Change.CONSOLIDATION, Change.UNDO, Change.IMPORT})
"""What `memoryd undo` goes back over: what was forgotten stays forgotten, and what a person wrote is theirs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: from `base` (None: nothing) to `result`, whose trailers stand in `commit`.

    The two differ where lines that a run moved were given back to the person in a commit of their own. `at` is epoch
    seconds; lines and files are counted over the whole folder.
    """

    commit: str
    result: str
    base: str | None
    at: int
    change: Change
    subject: str
    trailers: dict[str, str] = field(default_factory=dict)
    paths: frozenset[str] = frozenset()
    lines_added: int = 0
    lines_removed: int = 0


def message(change: Change, subject: str, trailers: Iterable[tuple[str, str]]) -> str:
    """Render a commit's message: a subject line, and trailers that `git interpret-trailers` understands."""
    rows = [(CHANGE, change.value), *trailers]
    return "\n".join([on_one_line(subject), "", *(f"{name}: {on_one_line(value)}" for name, value in rows), ""])


def named(thread_ids: Sequence[str]) -> str:
    """Render thread ids for a trailer: a bounded number of them, and how many more."""
    shown = [thread_id for thread_id in sorted(thread_ids)[:MAX_IDS] if thread_id]
    rest = len(thread_ids) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def check_readable(repo: Repository) -> None:
    """Raise GitError where there is no history to read, or one that cannot be; makes and mends nothing."""
    if not repo.git_dir.is_dir() or repo.git_dir.is_symlink():
        raise GitError(
            f"there is no history of {repo.work_tree} yet",
            remedy="it begins with the first consolidation: run `memoryd sync`",
        )
    if not repo.succeeds("rev-parse", "--git-dir"):
        raise GitError(
            f"the history in {repo.git_dir} cannot be read: git takes it for no repository",
            remedy="`memoryd sync` sets it aside and builds it anew from the folder",
        )


def newest(repo: Repository) -> str | None:
    """Return the commit that history is read from: HEAD where it follows the accepted one, else that one."""
    accepted, head = repo.accepted(), repo.head()
    if head is not None and (accepted is None or repo.is_ancestor(accepted, head)):
        return head
    return accepted


def entries(repo: Repository, *, limit: int, start: str | None = None) -> list[Entry]:
    """Return the newest changes, newest first; none in a new repository. Raises GitError."""
    tip = start or newest(repo)
    if tip is None:
        return []
    out = repo.run(
        "log", "--first-parent", f"--max-count={2 * limit + 1}", "--no-color", "--no-show-signature", "--no-renames",
        "--no-ext-diff", "--no-textconv", "-m", "--numstat", f"--format={_FIELDS}", tip, "--",
    )  # fmt: skip
    found = [_entry(record) for record in out.decode("utf-8", "replace").split("\x1e") if record.strip()]
    return _joined(found)[:limit]


def find_entry(repo: Repository, name: str) -> Entry:
    """Return the change of that number (1: the newest), or of a commit's id or its beginning. Raises UsageError."""
    every = entries(repo, limit=MAX_ENTRIES)
    if name.isdecimal() and len(name) < 4 and 1 <= int(name) <= len(every):
        return every[int(name) - 1]
    found = [entry for entry in every if len(name) >= 4 and name and name in _ids(entry, len(name))]
    if len(found) != 1:
        problem = f"{len(found)} changes begin with" if found else "the history has no change"
        raise UsageError(f"{problem} {name!r}", remedy="`memoryd history` lists them")
    return found[0]


def patch(repo: Repository, base: str | None, result: str, *, paths: Sequence[str] = SHOWN_PATHS) -> str:
    """Return the unified diff of what agents read, at most MAX_PATCH_BYTES; a cut is said."""
    out = repo.run(
        "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--text",
        "--unified=3", "--src-prefix=a/", "--dst-prefix=b/", repo.tree_of(base) if base else _empty_tree(repo),
        repo.tree_of(result), "--", *paths,
    )  # fmt: skip
    text = out.decode("utf-8", "replace")
    if len(out) <= MAX_PATCH_BYTES:
        return text
    return truncate_bytes(text, MAX_PATCH_BYTES) + f"\n[the diff was cut: {MAX_PATCH_BYTES} of {len(out)} bytes]\n"


def _empty_tree(repo: Repository) -> str:
    """Name the empty tree, which git knows without its being there."""
    return repo.run("hash-object", "-t", "tree", "--stdin").decode().strip()


def _ids(entry: Entry, length: int) -> set[str]:
    return {entry.commit[:length], entry.result[:length]}


def _entry(record: str) -> Entry:
    head, _, counts = record.rpartition("\x1f")
    commit, parents, email, at, subject, body = head.split("\x1f", 5)
    trailers = _trailers(body) if email == DAEMON.email else {}
    rows = [row.split("\t", 2) for row in counts.splitlines() if row.count("\t") >= 2]
    return Entry(
        commit=commit,
        result=commit,
        base=parents.split()[0] if parents else None,
        at=int(at),
        change=_change(email, trailers),
        subject=on_one_line(subject),
        trailers=trailers,
        paths=frozenset(row[2] for row in rows),
        lines_added=sum(int(row[0]) for row in rows if row[0].isdecimal()),
        lines_removed=sum(int(row[1]) for row in rows if row[1].isdecimal()),
    )


def _trailers(body: str) -> dict[str, str]:
    last = body.strip().rsplit("\n\n", 1)[-1]
    rows = (row.partition(": ") for row in last.splitlines())
    return {name: value for name, colon, value in rows if colon}


def _change(email: str, trailers: dict[str, str]) -> Change:
    """Tell whose change it is; a run of an earlier version has no trailer that says so, but one that names its job."""
    if email != DAEMON.email:
        return Change.PERSON
    if CHANGE not in trailers and "Job" in trailers:
        return Change.CONSOLIDATION
    try:
        return Change(trailers.get(CHANGE, ""))
    except ValueError:
        return Change.CLEAN_UP


def _joined(found: Sequence[Entry]) -> list[Entry]:
    """Join each run with the commit on top of it that gives the person's moved lines back to them."""
    joined: list[Entry] = []
    above: Entry | None = None
    for entry in found:
        if above is None and entry.change is Change.PERSON and entry.subject == KEPT_SUBJECT:
            above = entry
            continue
        if above is not None and entry.change is not Change.PERSON:
            entry = replace(  # noqa: PLW2901 - the same change, seen whole
                entry,
                result=above.result,
                paths=entry.paths | above.paths,
                lines_added=entry.lines_added + above.lines_added,
                lines_removed=entry.lines_removed + above.lines_removed,
            )
        elif above is not None:
            joined.append(above)
        above = None
        joined.append(entry)
    return joined
