"""A person's lines of the two files that agents read: no run loses one, and none brings back what a person deleted.

A line is the person's when its last author is not memoryd. It stays until the person removes it, every session that it
cites is gone, or a model that was told of it drops it again while a new note speaks of it. A model's loss is a
complaint once; what is still lost then, and whatever the offline writer lost, code puts back, rather than rejecting a
run for ever. What the person deleted, and a run writes again letter for letter, is a complaint once, and then left out.
Headings are structure: they come back only with a line below them, or for the task group or task that a run goes on
with under another name.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from memoryd.text import byte_length
from memoryd.workspace.authorship import has_person_commit, person_lines, removed_by_person
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Repository
from memoryd.workspace.handbook import parse_handbook
from memoryd.workspace.headers import headers_of
from memoryd.workspace.keeping import Guarded, Keeping
from memoryd.workspace.keeping_handbook import is_statement, keep_in_handbook
from memoryd.workspace.keeping_summary import Reach, keep_in_summary
from memoryd.workspace.layout import ALWAYS_THERE, MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.outline import Node, place_of, read_outline, render_outline, walk
from memoryd.workspace.provenance import with_provenance
from memoryd.workspace.staging import Staging

MAX_NAMED: Final = 20
"""How many lost lines are named to a model; code puts the others back."""


@dataclass(frozen=True, slots=True)
class Protection:
    """What is guarded of each file; `texts` are the staged ones."""

    guarded: Mapping[str, Guarded] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def size(self, path: str) -> int:
        """Return how many bytes a person's lines of a file take."""
        guarded = self.guarded.get(path)
        lines = [row for _, line in guarded.lines() for row in line.lines] if guarded else []
        return sum(byte_length(row) + 1 for row in lines)


@dataclass(frozen=True, slots=True)
class Kept:
    """A result put right: the new texts of files that change, the lines in each that are the person's, the complaints.

    The complaints are what a model may put right by itself instead.
    """

    texts: Mapping[str, str]
    lines: Mapping[str, frozenset[str]]
    complaints: tuple[str, ...]


def read_protection(repo: Repository, staged: Staging) -> Protection:
    """Find out what is the person's in a staged folder whose evidence has been put into place (blocking).

    A line with what is by now known to be a secret is nobody's: it does not come back.
    """
    if staged.parent is None or not any(has_person_commit(repo, staged.parent, path) for path in ALWAYS_THERE):
        return Protection()
    before, work = Folder.read(staged.base), Folder.read(staged.work)
    removed = removed_by_person(repo, staged.parent)
    live, known = frozenset(headers_of(work)), frozenset(headers_of(before))
    guarded = {}
    for path in (path for path in ALWAYS_THERE if path in before.files):
        clean = frozenset(work.text(path).split("\n"))
        rows = before.text(path).split("\n")
        persons = frozenset(n for n in person_lines(repo, staged.parent, path) if rows[n - 1] in clean)
        guarded[path] = Guarded(path, read_outline(before.text(path)), persons, removed[path], live, known)
    return Protection(guarded, {path: before.text(path) for path in guarded})


def keep_lines(
    protection: Protection, result: Folder, *, may_move: bool, may_rename: bool = False, notes: str = ""
) -> Kept:
    """Decide how a result is put right; files that are not there or blank are left to acceptance.

    `may_move`: the writer judges meaning, and may have put a line elsewhere. `may_rename`: what changed a heading took
    forgotten words out of it. `notes`: the text of the notes that are
    new to this run and for which a model, that was told of it, drops a person's line.
    """
    texts = {path: result.text(path) for path in ALWAYS_THERE}
    done: list[Keeping] = []
    made: list[Node] = []
    renamed: Mapping[tuple[str, str | None], str] = {}
    handbook = protection.guarded.get(MEMORY_FILE)
    if handbook is not None and texts[MEMORY_FILE].strip():
        texts[MEMORY_FILE], keeping = keep_in_handbook(
            handbook, texts[MEMORY_FILE], may_move=may_move, may_rename=may_rename, notes=notes
        )
        done, made, renamed = [keeping], keeping.made, keeping.renamed
    summary = protection.guarded.get(SUMMARY_FILE)
    if summary is not None and texts[SUMMARY_FILE].strip():
        reach = Reach(
            before=parse_handbook(protection.texts.get(MEMORY_FILE, "")),
            after=parse_handbook(texts[MEMORY_FILE]),
            made=[group for node in made for group in parse_handbook(render_outline(node)).groups],
            renamed=renamed,
        )
        texts[SUMMARY_FILE], keeping = keep_in_summary(
            summary, texts[SUMMARY_FILE], reach, may_move=may_move, notes=notes
        )
        done.append(keeping)
    return Kept(
        texts={path: text for path, text in texts.items() if text != result.text(path)},
        lines={keeping.guarded.path: _as_written(keeping.lines, result) for keeping in done},
        complaints=_bounded([complaint for keeping in done for complaint in keeping.complaints()]),
    )


def without_removed(path: str, base: str, live: str, merged: str) -> str:
    """Return a merged text without the statements that a person took out of the file while a run was at work.

    A run may have put them elsewhere in their section, where a merge of lines does not know them.
    """
    stood, stands = (
        {(place_of(stack, line), line.key) for stack, line in walk(read_outline(text))} for text in (base, live)
    )
    root = read_outline(merged)
    doomed = [
        (stack[-1] if stack else root, line)
        for stack, line in walk(root)
        if (place_of(stack, line), line.key) in stood - stands and (path != MEMORY_FILE or is_statement(stack))
    ]
    for node, line in doomed:
        node.remove([line])
    return render_outline(root) if doomed else merged


def _as_written(lines: Collection[str], result: Folder) -> frozenset[str]:
    """Return lines as they will stand once code has written where the evidence comes from."""
    written = with_provenance("\n".join(lines), result).split("\n")
    return frozenset(line for line in written if line.strip())


def _bounded(complaints: list[str]) -> tuple[str, ...]:
    rest = len(complaints) - MAX_NAMED
    return (*complaints[:MAX_NAMED], f"and {rest} more lines of the person") if rest > 0 else tuple(complaints)
