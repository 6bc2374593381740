"""The memory folder without what was forgotten: cleaned by code, and decided and published like any other result."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sqlite3 import Connection
from typing import Final

from memoryd import logs
from memoryd.ledger import claims, forgetting, outputs, publications
from memoryd.ledger.claims import Closing
from memoryd.ledger.forgetting import Deed, Forgetting, Step
from memoryd.ledger.outputs import SelectedOutput
from memoryd.ledger.publications import NewPublication
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.forget_imports import Theirs, withdraw_resources
from memoryd.pipeline.importing import (
    know_resources,
    known_resources,
    record_statements,
    recorded_statements,
)
from memoryd.workspace import protection, publish, staging
from memoryd.workspace.authorship import person_lines
from memoryd.workspace.claims import reparse
from memoryd.workspace.cleaning import Cleaning, clean_up
from memoryd.workspace.files import write_private, write_texts
from memoryd.workspace.folder import Folder
from memoryd.workspace.forgotten_words import ForgottenWords
from memoryd.workspace.headers import headers_of
from memoryd.workspace.history import Change, message
from memoryd.workspace.layout import MEMORY_FILE, RAW_MEMORIES, SKILLS, SUMMARY_FILE
from memoryd.workspace.materialise import render_raw_memories
from memoryd.workspace.purging_remains import Remains, remains_of
from memoryd.workspace.rereading import reread
from memoryd.workspace.staging import Staging
from memoryd.workspace.summary import summary_budget

log = logs.get()

SHORT_ID: Final = 12
MAX_CLAIMS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which sessions go and why.

    `recorded` are digests of statements that came with an import, `resources` those of its resources by path.
    """

    threads: Collection[str]
    change: Change
    purge: bool = False
    recorded: Collection[str] = ()
    resources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A cleaned folder as git objects; `commit` None: there was nothing to clean.

    `imported` are digests of the statements in it that came with an import, `resources` those of its resources by path,
    `remains` what still speaks of what went.
    """

    commit: str | None
    base: str | None
    cleaning: Cleaning
    folder: Folder
    persons: Collection[str]
    imported: frozenset[str] = frozenset()
    resources: Mapping[str, str] = field(default_factory=dict)
    remains: tuple[Remains, ...] = ()
    is_purge: bool = False


async def clean_folder(context: Context, now: Forgetting) -> tuple[Forgetting, tuple[Remains, ...]]:
    """Take what only forgotten sessions supported out of the folder, and decide it; `publish_decided` is to follow.

    Returns how far that has brought it, and the lines that still speak of the sessions.
    """
    recorded, resources = await context.ledger.read(_imported)
    wanted = _Wanted(frozenset(now.threads), Change.FORGETTING, now.deed is Deed.PURGE, recorded, resources)
    plan = await _plan(context, wanted)
    after = forgetting.with_step(now, Step.CLEANED, removed=plan.cleaning.removed)
    await context.ledger.write(_decide, context, plan, after)
    return after, plan.remains


def _imported(conn: Connection) -> tuple[frozenset[str], dict[str, str]]:
    return recorded_statements(conn), known_resources(conn)


async def clean_gone(context: Context, threads: Collection[str]) -> int:
    """Take out what only these sessions support, which left the memory by themselves; return how many statements went.

    `publish_decided` is to follow.
    """
    plan = await _plan(context, _Wanted(threads, Change.CLEAN_UP))
    await context.ledger.write(_decide, context, plan, None)
    return plan.cleaning.removed


async def _plan(context: Context, wanted: _Wanted) -> _Plan:
    folder = await in_thread(Folder.read, context.home.memories)
    here = [each.thread_id for each in reread(folder)]
    rows = await context.ledger.read(_rows, here)
    context.still_ours()
    plan = await in_thread(_prepare, context, rows, wanted)
    context.reached("forgetting_written")
    if plan.commit is not None:
        log.info("memory.cleaned", commit=plan.commit[:SHORT_ID], removed=plan.cleaning.removed)
    return plan


def _rows(conn: Connection, threads: Sequence[str]) -> dict[str, SelectedOutput]:
    found = {thread_id: outputs.get(conn, thread_id) for thread_id in threads}
    return {thread_id: row for thread_id, row in found.items() if row is not None}


def _prepare(context: Context, rows: Mapping[str, SelectedOutput], wanted: _Wanted) -> _Plan:
    """Write the cleaned folder as git objects that no ref names yet (blocking)."""
    staged = staging.stage(
        context.home,
        context.repository,
        f"forget-{os.urandom(8).hex()}",
        now=context.clock.now(),
        redactor=context.redactor,
    )
    try:
        return _cleaned(context, staged, rows, wanted)
    finally:
        staging.discard(staged)


def _cleaned(context: Context, staged: Staging, rows: Mapping[str, SelectedOutput], wanted: _Wanted) -> _Plan:
    before = Folder.read(staged.base)
    if not before.files:
        return _Plan(None, staged.parent, Cleaning(), before, ())
    _withdraw_evidence(context, staged, rows, wanted.threads)
    is_asked = wanted.change is Change.FORGETTING
    withdrawn = withdraw_resources(staged, before, wanted.threads, wanted.resources) if is_asked else frozenset()
    theirs = Theirs.of(context, staged, wanted.recorded)
    work = Folder.read(staged.work)
    cleaning = clean_up(
        before,
        work,
        purge=wanted.purge,
        persons=theirs.rows,
        person_files=_person_files(context, staged, work),
        max_summary_bytes=summary_budget(context.settings.recall.max_tokens) - theirs.guarded.size(SUMMARY_FILE),
    )
    write_texts(staged.work, cleaning.texts)
    guarded = theirs.still_guarded(cleaning)
    kept = protection.keep_lines(guarded, Folder.read(staged.work), may_move=False, may_rename=True)
    write_texts(staged.work, kept.texts)
    after = Folder.read(staged.work)
    persons = theirs.standing(after, kept.lines)
    own = persons.get(MEMORY_FILE, frozenset())
    recorded = theirs.recorded(after, wanted.recorded, purge=wanted.purge)
    known = {path: digest for path, digest in wanted.resources.items() if path not in withdrawn}
    own_rows = theirs.without_brought(after, persons)
    remains = remains_of(before, after, wanted.threads, persons=own_rows, purge=wanted.purge) if is_asked else ()
    plan = _Plan(None, staged.parent, cleaning, after, own, recorded, known, tuple(remains), wanted.purge)
    if after.files == before.files:
        return plan
    said = _message(wanted.threads, cleaning, wanted.change, purge=wanted.purge)
    commit = publish.prepare_commit(context.repository, staged, said, now=context.clock.now(), persons=persons)
    return replace(plan, commit=commit)


def _withdraw_evidence(
    context: Context, staged: Staging, rows: Mapping[str, SelectedOutput], threads: Collection[str]
) -> None:
    """Remove the summaries of forgotten sessions, and write the merged raw memories anew without theirs.

    Those of the others are taken from the ledger where it has the very state that the folder holds.
    """
    folder = Folder.read(staged.base)
    standing = [each for each in reread(folder) if each.thread_id not in threads and each.thread_id in rows]
    for path, header in headers_of(folder).items():
        if header.thread_id in threads:
            (staged.work / path).unlink(missing_ok=True)
    if len(standing) == len(reread(folder)):
        return
    left = []
    for each in standing:
        row = rows[each.thread_id]
        raw = row.raw_memory if row.source_updated_at == each.updated_at else each.raw_memory
        left.append(replace(row, updated_at=each.updated_at, raw_memory=raw, stem=each.stem))
    text = context.redactor.clean(render_raw_memories(left))
    write_private(staged.work / RAW_MEMORIES, text.encode("utf-8", "replace"))


def _person_files(context: Context, staged: Staging, work: Folder) -> frozenset[str]:
    """Return the files of skills of which a person wrote every line."""
    own = set()
    for path, text in work.files.items():
        if staged.parent is not None and path.startswith(f"{SKILLS}/"):
            lines = person_lines(context.repository, staged.parent, path)
            own |= {path} if len(lines) >= len(text.rstrip("\n").split("\n")) else set()
    return frozenset(own)


def _message(threads: Collection[str], cleaning: Cleaning, change: Change, *, purge: bool) -> str:
    number = len(threads)
    sessions = f"{number} session{'' if number == 1 else 's'}"
    subject = f"Forget {sessions}" if change is Change.FORGETTING else f"Clean up after {sessions} that left the memory"
    trailers = [("Sessions", f"{number} removed"), ("Cleaned", f"{cleaning.removed} statements")]
    return message(change, subject, [*trailers, ("Purged", "yes")] if purge else trailers)


def _decide(conn: Connection, context: Context, plan: _Plan, after: Forgetting | None) -> None:
    """Decide it: the publication, the claims of what is left, and that the next consolidation looks at it again."""
    if after is not None:
        forgetting.proceed(conn, after)
        record_statements(conn, plan.imported)
        know_resources(conn, plan.resources)
    if plan.commit is None:
        return
    now = context.clock.now()
    publications.decide(conn, NewPublication(plan.commit, plan.base), attempt_id=None, now=now)
    reparse(conn, plan.folder, now=now, because=Closing.EVIDENCE_GONE, persons=plan.persons)
    if plan.is_purge:
        _purge_claims(conn, plan.cleaning.lost.words)
    if plan.cleaning.removed:
        forgetting.mark_untidy(conn, _threads_of(plan.folder, sorted(plan.cleaning.orphans)))


def _purge_claims(conn: Connection, words: ForgottenWords) -> None:
    """Erase what is closed, and what stood in other words before, where it has a word of the forgotten alone.

    What cited the sessions has gone with them; this is what cited nothing, or others.
    """
    standing = {claim.id for claim in claims.valid(conn)}
    every = claims.every(conn, limit=MAX_CLAIMS)
    claims.erase(conn, [claim.id for claim in every if claim.id not in standing and words.are_in(claim.text)])
    earlier = claims.every_earlier_text(conn, limit=MAX_CLAIMS)
    claims.erase_earlier_texts_of(conn, {claim_id for claim_id, text in earlier if words.are_in(text)})


def _threads_of(folder: Folder, paths: Sequence[str]) -> list[str]:
    headers = headers_of(folder)
    return [headers[path].thread_id for path in paths if path in headers]
