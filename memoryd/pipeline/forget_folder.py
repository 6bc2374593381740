"""The memory folder without what was forgotten: cleaned by code, and decided and published like any other result."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Final

from memoryd import logs
from memoryd.ledger import forgetting, outputs, publications
from memoryd.ledger.claims import Closing
from memoryd.ledger.forgetting import Deed, Forgetting, Step
from memoryd.ledger.outputs import SelectedOutput
from memoryd.ledger.publications import NewPublication
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.importing import record_statements, recorded_statements
from memoryd.workspace import importing_record, protection, publish, staging
from memoryd.workspace.authorship import person_lines
from memoryd.workspace.claims import reparse
from memoryd.workspace.cleaning import Cleaning, clean_up
from memoryd.workspace.files import write_private, write_texts
from memoryd.workspace.folder import Folder
from memoryd.workspace.headers import headers_of
from memoryd.workspace.history import Change, message
from memoryd.workspace.layout import MEMORY_FILE, RAW_MEMORIES, SKILLS, SUMMARY_FILE
from memoryd.workspace.materialise import render_raw_memories
from memoryd.workspace.outline import Line, read_outline, walk
from memoryd.workspace.protection import Protection
from memoryd.workspace.purging_remains import Remains, remains_of
from memoryd.workspace.rereading import reread
from memoryd.workspace.staging import Staging
from memoryd.workspace.summary import summary_budget

log = logs.get()

SHORT_ID: Final = 12


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which sessions go and why. `recorded` are digests of statements that came with an import."""

    threads: Collection[str]
    change: Change
    purge: bool = False
    recorded: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """A cleaned folder as git objects; `commit` None: there was nothing to clean.

    `imported` are digests of the statements in it that came with an import, `remains` what still speaks of what went.
    """

    commit: str | None
    base: str | None
    cleaning: Cleaning
    folder: Folder
    persons: Collection[str]
    imported: frozenset[str] = frozenset()
    remains: tuple[Remains, ...] = ()


async def clean_folder(context: Context, now: Forgetting) -> tuple[Forgetting, tuple[Remains, ...]]:
    """Take what only forgotten sessions supported out of the folder, and decide it; `publish_decided` is to follow.

    Returns how far that has brought it, and the lines that still speak of the sessions.
    """
    recorded = await context.ledger.read(recorded_statements)
    wanted = _Wanted(frozenset(now.threads), Change.FORGETTING, now.deed is Deed.PURGE, recorded)
    plan = await _plan(context, wanted)
    after = forgetting.with_step(now, Step.CLEANED, removed=plan.cleaning.removed)
    await context.ledger.write(_decide, context, plan, after)
    return after, plan.remains


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
    theirs = _Theirs.of(context, staged, wanted.recorded)
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
    plan = _Plan(None, staged.parent, cleaning, after, own, recorded, theirs.remains(before, after, persons, wanted))
    if after.files == before.files:
        return plan
    said = _message(wanted.threads, cleaning, wanted.change, purge=wanted.purge)
    commit = publish.prepare_commit(context.repository, staged, said, now=context.clock.now(), persons=persons)
    return replace(plan, commit=commit)


@dataclass(frozen=True, slots=True)
class _Theirs:
    """What is the person's in a staged folder; `brought` came with an import, and is forgotten like memoryd's own.

    `rows` are the rows of each file that the person wrote.
    """

    guarded: Protection
    brought: Mapping[str, tuple[Line, ...]]
    rows: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, context: Context, staged: Staging, recorded: Collection[str]) -> "_Theirs":
        guarded = protection.read_protection(context.repository, staged)
        if staged.parent is None or not guarded.guarded:
            return cls(guarded, {}, {})
        brought = importing_record.brought(context.repository, staged.parent, guarded, recorded)
        own = importing_record.without(guarded, brought)
        files = Folder.read(staged.base)
        rows = {path: _rows_of(files.text(path), each.persons) for path, each in own.guarded.items()}
        return cls(guarded, brought, rows)

    def still_guarded(self, cleaning: Cleaning) -> Protection:
        """Return what is put back where it was lost: of what came with an import, what rests on nothing that is gone.

        The handbook was judged statement by statement; the summary may have been written anew.
        """
        gone = {path: list(lines) for path, lines in self.brought.items()}
        if SUMMARY_FILE in gone:
            gone[SUMMARY_FILE] = [line for line in gone[SUMMARY_FILE] if cleaning.lost.words.are_in(line.key)]
        return importing_record.without(self.guarded, gone)

    def standing(self, after: Folder, kept: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Return the rows of each file that stay the person's, those that came with an import included."""
        return {
            path: kept.get(path, frozenset())
            | importing_record.standing_rows(after.text(path), self.brought.get(path, ()))
            for path in {*kept, *self.brought}
        }

    def recorded(self, after: Folder, recorded: Collection[str], *, purge: bool) -> frozenset[str]:
        """Return the record without what went; after a purge, whose history an undo cannot reach, what stands."""
        keys = {line.key for lines in self.brought.values() for line in lines}
        standing = {line.key for path in self.brought for _, line in walk(read_outline(after.text(path)))}
        stay, go = (frozenset(map(importing_record.digest_of, each)) for each in (keys & standing, keys - standing))
        return stay if purge else frozenset(recorded) - go

    def remains(
        self, before: Folder, after: Folder, persons: Mapping[str, frozenset[str]], wanted: _Wanted
    ) -> tuple[Remains, ...]:
        """Return what still speaks of sessions that a person asked to forget."""
        if wanted.change is not Change.FORGETTING:
            return ()
        own = {
            path: rows - importing_record.standing_rows(after.text(path), self.brought.get(path, ()))
            for path, rows in persons.items()
        }
        return tuple(remains_of(before, after, wanted.threads, persons=own, purge=wanted.purge))


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


def _rows_of(text: str, numbers: Collection[int]) -> frozenset[str]:
    return frozenset(row for number, row in enumerate(text.split("\n"), start=1) if number in numbers)


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
    if plan.commit is None:
        return
    now = context.clock.now()
    publications.decide(conn, NewPublication(plan.commit, plan.base), attempt_id=None, now=now)
    reparse(conn, plan.folder, now=now, because=Closing.EVIDENCE_GONE, persons=plan.persons)
    if plan.cleaning.removed:
        forgetting.mark_untidy(conn, _threads_of(plan.folder, sorted(plan.cleaning.orphans)))


def _threads_of(folder: Folder, paths: Sequence[str]) -> list[str]:
    headers = headers_of(folder)
    return [headers[path].thread_id for path in paths if path in headers]
