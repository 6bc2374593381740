"""Undo: MEMORY.md, memory_summary.md and skills/ as they were before the last changes, as a change of its own.

stage a copy -> take the changes back, without what a person wrote since -> git objects -> one deciding transaction ->
published like any other result. What the undone runs took in stays out until its session grows; an undo is a change
too, so that undoing it brings everything back. What was forgotten stays forgotten.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

from memoryd import logs
from memoryd.errors import StorageError
from memoryd.ledger import holds, outputs, proposals, publications
from memoryd.ledger.enqueueing import enqueue_consolidation
from memoryd.ledger.holds import Because
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.states import JobKind
from memoryd.ledger.takeover import revoke
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.discover import enqueueing
from memoryd.redact import Redactor
from memoryd.workspace import mending, protection, publish, staging
from memoryd.workspace.claims import reparse
from memoryd.workspace.cleaning import clean_up
from memoryd.workspace.files import write_texts
from memoryd.workspace.folder import Folder
from memoryd.workspace.history import UNDOABLE, Change, Entry, message
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.protection import Protection
from memoryd.workspace.rereading import ReadBack
from memoryd.workspace.staging import Staging
from memoryd.workspace.summary import summary_budget
from memoryd.workspace.undoing import (
    by_thread,
    changes_to_undo,
    evidence_of,
    restore_evidence,
    states_of,
    take_back,
)

log = logs.get()

MAX_TRIES = 5
"""A run that is decided in the same moment is put in place first; then we look again."""
MAX_NAMED = 20
SHORT_ID = 12


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did: its commit, the changes that it took back, and the sessions that stay out until they grow."""

    commit: str
    changes: tuple[Entry, ...]
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """An undo that is written as git objects; `left` and `restored` are the states in the evidence before and after."""

    commit: str
    base: str | None
    changes: tuple[Entry, ...]
    left: dict[str, int]
    restored: dict[str, int]
    folder: Folder
    persons: Collection[str]


async def undo(context: Context, count: int = 1) -> Undone | None:
    """Take the last `count` changes of the memory back; None where there is nothing to undo.

    A consolidation that is running is ended and begins anew. Raises UsageError when the history holds fewer, GitError,
    StorageError.
    """
    async with context.forgetting:
        return await _undo(context, count)


async def _undo(context: Context, count: int) -> Undone | None:
    for _ in range(MAX_TRIES):
        await publish_decided(context)
        seen = await context.ledger.read(publications.latest)
        remembered = {row.thread_id for row in await context.ledger.read(holds.remembered)}
        context.still_ours()
        plan = await in_thread(_prepare, context, count, remembered)
        if plan is None:
            return None
        context.reached("undo_written")
        held = await context.ledger.write(_decide, context, plan, seen.id if seen else None)
        if held is not None:
            context.reached("undo_decided")
            await publish_decided(context)
            log.info("undo.completed", commit=plan.commit[:SHORT_ID], count=len(plan.changes), held=len(held))
            return Undone(plan.commit, plan.changes, held)
    raise StorageError(
        "cannot undo: the memory was changed anew each time that it was tried", remedy="try again in a moment"
    )


def _prepare(context: Context, count: int, remembered: Collection[str]) -> _Plan | None:
    """Write the undo as git objects that no ref names yet (blocking)."""
    staged = staging.stage(
        context.home,
        context.repository,
        f"undo-{os.urandom(8).hex()}",
        now=context.clock.now(),
        redactor=context.redactor,
    )
    try:
        changes = changes_to_undo(context.repository, staged.parent, count) if staged.parent else []
        return _written(context, staged, changes, remembered) if changes else None
    finally:
        staging.discard(staged)


def _written(context: Context, staged: Staging, changes: list[Entry], remembered: Collection[str]) -> _Plan:
    repo, work = context.repository, staged.work
    left = states_of(by_thread(Folder.read(staged.base)))
    undone = [entry for entry in changes if entry.change in UNDOABLE]
    evidence = evidence_of(repo, changes[-1].base)
    restored = restore_evidence(work, evidence, remembered)
    guarded = protection.read_protection(repo, staged)  # before a line is lost: what is not there is no person's
    take_back(repo, work, changes, staged.root)
    _clean(work, context.redactor)
    _leave_out_forgotten(context, staged, evidence, guarded)
    kept = protection.keep_lines(guarded, Folder.read(work), may_move=False)
    write_texts(work, kept.texts)
    mending.rewrite_provenance(work)
    commit = publish.prepare_commit(
        repo, staged, _message(undone, left, restored), now=context.clock.now(), persons=kept.lines
    )
    folder = Folder.read(work)
    return _Plan(commit, staged.parent, tuple(undone), left, restored, folder, kept.lines.get(MEMORY_FILE, frozenset()))


def _leave_out_forgotten(
    context: Context, staged: Staging, evidence: Mapping[str, ReadBack], guarded: Protection
) -> None:
    """Take out what rests on sessions alone that may not be remembered any more: undoing does not unforget."""
    work = staged.work
    whole, left = staged.root / "whole", Folder.read(work)
    if evidence.keys() <= by_thread(left).keys():
        return
    write_texts(whole, left.files)
    restore_evidence(whole, evidence, evidence.keys())
    persons = {
        path: [row for number, row in enumerate(rows.split("\n"), start=1) if number in guarded.guarded[path].persons]
        for path, rows in guarded.texts.items()
    }
    room = summary_budget(context.settings.recall.max_tokens) - guarded.size(SUMMARY_FILE)
    cleaning = clean_up(Folder.read(whole), left, persons=persons, max_summary_bytes=room)
    write_texts(work, cleaning.texts)


def _clean(work: Path, redactor: Redactor) -> None:
    """Take out what counts as a secret by now: an earlier version may be older than the patterns."""
    texts = Folder.read(work).files
    cleaned = {path: redactor.clean(text) for path, text in texts.items()}
    write_texts(work, {path: clean for path, clean in cleaned.items() if clean != texts[path]})


def _message(changes: list[Entry], left: dict[str, int], restored: dict[str, int]) -> str:
    number = len(changes)
    ids = [entry.commit[:SHORT_ID] for entry in changes[:MAX_NAMED]]
    more = f" and {number - MAX_NAMED} more" if number > MAX_NAMED else ""
    added, removed = restored.keys() - left.keys(), left.keys() - restored.keys()
    changed = [thread for thread in restored.keys() & left.keys() if restored[thread] != left[thread]]
    trailers = [
        ("Undone", ", ".join(ids) + more),
        ("Sessions", f"{len(restored)} ({len(added)} added, {len(changed)} changed, {len(removed)} removed)"),
    ]
    return message(Change.UNDO, _subject(changes), trailers)


def _subject(changes: list[Entry]) -> str:
    if len(changes) > 1:
        return f"Undo the last {len(changes)} changes"
    is_undo = changes[0].change is Change.UNDO
    return "Bring back what was undone" if is_undo else f"Undo: {changes[0].subject}"


def _decide(conn: Connection, context: Context, plan: _Plan, seen: int | None) -> tuple[str, ...] | None:
    """Decide the undo, all or nothing; None when something else was decided, or forgotten, since it was prepared.

    Returns the sessions that stay out. A run that works on the version left is ended; a proposal made from it is out
    of date, and its evidence is consolidated anew.
    """
    latest = publications.latest(conn)
    remembered = holds.remembered(conn)
    if (latest.id if latest else None) != seen or publications.pending(conn) is not None:
        return None
    if not plan.restored.keys() <= {row.thread_id for row in remembered}:
        return None
    now = context.clock.now()
    revoke(conn, JobKind.CONSOLIDATE, now=now)
    if proposals.supersede(conn, now=now):
        ask_again(conn, context)
    publications.decide(conn, NewPublication(plan.commit, plan.base), attempt_id=None, now=now)
    held = [row.thread_id for row in holds.held(conn)]
    holding = holds.decide_holding(remembered, left=plan.left, restored=plan.restored, held=held)
    holds.apply_holding(conn, holding, because=Because.UNDONE, now=now)
    outputs.mark_consumed(conn, [])
    holds.mark_standing(conn, plan.restored)
    reparse(conn, plan.folder, now=now, persons=plan.persons)
    return tuple(hold.thread_id for hold in holding.holds)


def ask_again(conn: Connection, context: Context) -> None:
    """Ask for a consolidation of what a proposal that is out of date was made from."""
    enqueue_consolidation(conn, reason="outdated", **enqueueing(context))
