"""Going back to an earlier version in a staged folder, change by change, without what a person wrote since.

Each change is taken back as `git revert` would: a three-way merge in which the person's text wins. Evidence is
not merged: it is set to what the earlier version was made of, as far as it may still be remembered.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from memoryd.errors import UsageError
from memoryd.ledger.outputs import SelectedOutput
from memoryd.workspace.files import write_private
from memoryd.workspace.folder import Folder, Odd, decode_text
from memoryd.workspace.git import Change as PathChange
from memoryd.workspace.git import Repository
from memoryd.workspace.history import MAX_ENTRIES, UNDOABLE, Change, Entry, entries
from memoryd.workspace.layout import ALWAYS_THERE, RAW_MEMORIES, ROLLOUT_SUMMARIES, SKILLS
from memoryd.workspace.materialise import materialise
from memoryd.workspace.mending import empty_folder
from memoryd.workspace.rereading import ReadBack, reread

NEVER_USED: Final = 0


def changes_to_undo(repo: Repository, start: str, count: int) -> list[Entry]:
    """Return memoryd's changes down to the `count`-th that can be undone, newest first; none if there is none at all.

    Clean-ups among them are taken back too: their text was made for what comes after, and what was forgotten is taken
    out of the result anew. Raises UsageError when there are some to undo, but not so many.
    """
    own = [entry for entry in entries(repo, limit=MAX_ENTRIES, start=start) if entry.change is not Change.PERSON]
    places = [number for number, entry in enumerate(own) if entry.change in UNDOABLE]
    if places and len(places) < count:
        raise UsageError(
            f"cannot undo {count} changes: the history holds {len(places)} that can be undone",
            remedy="`memoryd history` lists them",
        )
    return own[: places[count - 1] + 1] if places else []


def take_back(repo: Repository, work: Path, undone: Sequence[Entry], scratch: Path) -> None:
    """Take changes back in a staged folder, newest first: MEMORY.md, memory_summary.md and skills/."""
    empty = scratch / "empty"
    empty_folder(empty)
    nothing = {path: (empty / path).read_bytes() for path in ALWAYS_THERE}
    for entry in undone:
        before, after = repo.tree_of(entry.base), repo.tree_of(entry.result)
        changed = [change for change in repo.changes(before, after) if _is_restored(change)]
        paths = [change.path for change in changed]
        old, new = repo.read_all(before, paths), repo.read_all(after, paths)
        for path in paths:
            _take_back_file(repo, work / path, new.get(path), old.get(path, nothing.get(path)), scratch)


def evidence_of(repo: Repository, commit: str | None) -> dict[str, ReadBack]:
    """Return what a version was made of, by thread id; nothing of none."""
    return by_thread(folder_of(repo, commit))


def folder_of(repo: Repository, commit: str | None) -> Folder:
    """Return the handbook, the summary and the evidence of a version; nothing of none."""
    if commit is None:
        return Folder()
    wanted = {RAW_MEMORIES, *ALWAYS_THERE}
    paths = [path for path in repo.files(commit) if path in wanted or path.startswith(f"{ROLLOUT_SUMMARIES}/")]
    texts = {path: decode_text(path, data) for path, data in repo.read_all(commit, sorted(paths)).items()}
    return Folder({path: text for path, text in texts.items() if not isinstance(text, Odd)})


def by_thread(folder: Folder) -> dict[str, ReadBack]:
    """Return the evidence that lies in a folder, by thread id."""
    return {each.thread_id: each for each in reread(folder)}


def states_of(evidence: Mapping[str, ReadBack]) -> dict[str, int]:
    """Return the state at which each session stands in some evidence."""
    return {thread_id: each.updated_at for thread_id, each in evidence.items()}


def restore_evidence(work: Path, evidence: Mapping[str, ReadBack], remembered: Collection[str]) -> dict[str, int]:
    """Set a staged folder's evidence to an earlier one, of sessions that may be remembered; return their states."""
    kept = {thread_id: each for thread_id, each in evidence.items() if thread_id in remembered}
    materialise(work, [_as_output(each) for each in kept.values()])
    return states_of(kept)


def with_standing(selected: Sequence[SelectedOutput], folder: Folder) -> list[SelectedOutput]:
    """Put the state that lies in the folder in the place of each row that is kept out; drop what lies nowhere."""
    if all(row.standing_updated_at is None for row in selected):
        return list(selected)
    there = by_thread(folder)
    rows = []
    for row in selected:
        each = there.get(row.thread_id)
        if row.standing_updated_at is None:
            rows.append(row)
        elif each is not None and each.updated_at == row.standing_updated_at:
            rows.append(replace(_as_output(each), usage_count=row.usage_count, last_usage=row.last_usage))
    return rows


def _is_restored(change: PathChange) -> bool:
    return change.path in ALWAYS_THERE or change.path.startswith(f"{SKILLS}/")


def _take_back_file(repo: Repository, path: Path, new: bytes | None, old: bytes | None, scratch: Path) -> None:
    """Bring one file from `new` back to `old` (None: no such file), keeping what was changed in it since."""
    now = path.read_bytes() if path.is_file() else None
    if now == old:
        return
    if now == new:
        if old is None:
            path.unlink()
        else:
            write_private(path, old)
    elif now is not None and new is not None and old is not None:
        merged = repo.merge(new, now, old, scratch=scratch)
        if merged is not None:
            write_private(path, merged)


def _as_output(each: ReadBack) -> SelectedOutput:
    return SelectedOutput(
        thread_id=each.thread_id,
        updated_at=each.updated_at,
        raw_memory=each.raw_memory,
        rollout_summary=each.rollout_summary,
        rollout_slug=each.slug,
        generated_at=each.updated_at,
        usage_count=NEVER_USED,
        last_usage=None,
        selected_for_phase2=True,
        selected_for_phase2_source_updated_at=each.updated_at,
        agent=each.agent,
        cwd=each.cwd,
        git_branch=each.git_branch,
        rollout_path=each.rollout_path,
        stem=each.stem,
        started_at=None,
    )
