"""Another program's memory folder becomes part of ours, as a change of its own that can be undone.

stage a copy -> join the handbooks and summaries, add what ours lacks -> evidence of the imported rows -> git objects ->
one deciding transaction -> published like any other result. The bullets that came are the person's own from then on, so
that every consolidation keeps them as they are; the rest is memoryd's to arrange. Nobody is asked for it.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from memoryd import logs
from memoryd.errors import StorageError
from memoryd.ledger import holds, jobs, meta, outputs, proposals, publications
from memoryd.ledger.outputs import SelectedOutput
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.states import JobKind
from memoryd.ledger.takeover import revoke
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.discover import enqueueing
from memoryd.pipeline.importing import ImportReport, record_statements, recorded_statements
from memoryd.text import byte_length
from memoryd.workspace import mending, protection, publish, staging
from memoryd.workspace.claims import reparse
from memoryd.workspace.files import write_texts
from memoryd.workspace.folder import Folder
from memoryd.workspace.headers import headers_of
from memoryd.workspace.history import Change, message, named
from memoryd.workspace.importing import Joined, join_handbooks, join_summaries
from memoryd.workspace.importing_record import digest_of
from memoryd.workspace.layout import (
    AD_HOC_INSTRUCTIONS,
    DIFF_FILE,
    MEMORY_FILE,
    ROLLOUT_SUMMARIES,
    SUMMARY_FILE,
    is_evidence,
    is_misplaced,
)
from memoryd.workspace.rereading import ReadBack
from memoryd.workspace.staging import Staging
from memoryd.workspace.stems import stem_of
from memoryd.workspace.summary import summary_budget
from memoryd.workspace.undoing import by_thread, restore_evidence

log = logs.get()

MAX_TRIES: Final = 5
SHORT_ID: Final = 12
KEY: Final = f"{meta.IMPORTED}folder:"
DIFFERS: Final = "memoryd has another file of that name, which stays"
MISPLACED: Final = "its name is that of one of memoryd's own"
NO_ROOM: Final = "no room is left in memory_summary.md; its sessions are consolidated all the same"


@dataclass(frozen=True, slots=True)
class Joining:
    """What a folder becomes with another one joined to it: the texts that change, the lines that are the person's.

    `keys` are what the statements among those say.
    """

    texts: Mapping[str, str]
    persons: Mapping[str, frozenset[str]]
    bullets: int
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Plan:
    commit: str
    base: str | None
    states: Mapping[str, int]
    folder: Folder
    persons: frozenset[str]
    keys: frozenset[str]


def join_folders(ours: Folder, theirs: Folder, report: ImportReport, *, source: str, max_summary_bytes: int) -> Joining:
    """Decide what of another folder comes into ours, and note in the report what does not."""
    handbook = join_handbooks(ours.text(MEMORY_FILE), theirs.text(MEMORY_FILE), source=source)
    standing = "" if mending.is_empty_summary(ours.text(SUMMARY_FILE)) else ours.text(SUMMARY_FILE)
    summary = join_summaries(standing, theirs.text(SUMMARY_FILE), max_bytes=max_summary_bytes)
    texts = {path: text for path, text in ((MEMORY_FILE, handbook.text), (SUMMARY_FILE, summary.text)) if text}
    texts = {path: text for path, text in texts.items() if text != ours.files.get(path)}
    texts |= _other_files(ours, theirs, report)
    if summary.dropped:
        report.leave_out_file(SUMMARY_FILE, f"{summary.dropped} entries: {NO_ROOM}")
    report.files["imported"] += len(texts)
    bullets = len(handbook.bullets) + len(summary.bullets)
    report.bullets += bullets
    persons = {MEMORY_FILE: handbook.bullets, SUMMARY_FILE: _protected(summary, max_summary_bytes)}
    keys = handbook.keys | summary.keys
    return Joining(texts, {path: lines for path, lines in persons.items() if lines}, bullets, keys)


def _other_files(ours: Folder, theirs: Folder, report: ImportReport) -> dict[str, str]:
    """Return what comes as it is: skills, notes, extensions, a person's own files."""
    made = (MEMORY_FILE, SUMMARY_FILE, DIFF_FILE, AD_HOC_INSTRUCTIONS)
    texts = {}
    for path, text in theirs.files.items():
        if path in made or is_evidence(path):
            continue
        if is_misplaced(path):
            report.leave_out_file(path, MISPLACED)
        elif path not in ours.files:
            texts[path] = text
        elif ours.files[path] == text:
            report.files["unchanged"] += 1
        else:
            report.leave_out_file(path, DIFFERS)
    for path, reason in theirs.odd.items():
        if not path.startswith("."):
            report.leave_out_file(path, reason.value)
    return texts


def _protected(summary: Joined, max_bytes: int) -> frozenset[str]:
    """Return the summary's bullets as the person's, unless they would leave a consolidation no room."""
    size = sum(byte_length(row) + 1 for row in summary.bullets)
    return summary.bullets if size <= max_bytes // 2 else frozenset()


async def import_folder(
    context: Context, theirs: Folder, rows: list[str], report: ImportReport, *, source: str, home: Path
) -> None:
    """Join a folder to ours, once for each state of it; `rows` are the imported sessions that it was made of."""
    key = KEY + sha256(os.fsencode(home)).hexdigest()[:16]
    digest = sha256(repr(sorted(theirs.files.items())).encode("utf-8", "surrogatepass")).hexdigest()
    if not theirs.files or await context.ledger.read(meta.get, key) == digest:
        report.files["unchanged"] += len(theirs.files)
        return
    theirs = Folder({path: context.redactor.clean(text) for path, text in theirs.files.items()}, theirs.odd)
    for _ in range(MAX_TRIES):
        await publish_decided(context)
        seen = await context.ledger.read(publications.latest)
        outputs_of = [await context.ledger.read(outputs.get, thread_id) for thread_id in rows]
        context.still_ours()
        tried = ImportReport(report.agent, report.homes)
        plan = await in_thread(_prepare, context, theirs, [each for each in outputs_of if each], tried, source)
        context.reached("import_written")
        if await context.ledger.write(_decide, context, plan, seen.id if seen else None, key, digest):
            context.reached("import_decided")
            await publish_decided(context)
            report.files.update(tried.files)
            report.left_out += tried.left_out
            report.bullets += tried.bullets
            report.commit = plan.commit if plan else None
            return
    raise StorageError(
        "cannot import the folder: the memory was changed anew each time that it was tried",
        remedy="try again in a moment",
    )


def _prepare(
    context: Context, theirs: Folder, rows: list[SelectedOutput], report: ImportReport, source: str
) -> _Plan | None:
    """Write the joined folder as git objects that no ref names yet (blocking); None where nothing comes."""
    now = context.clock.now()
    token = f"import-{os.urandom(8).hex()}"
    staged = staging.stage(context.home, context.repository, token, now=now, redactor=context.redactor)
    try:
        return _written(context, staged, theirs, rows, report, source)
    finally:
        staging.discard(staged)


def _written(
    context: Context, staged: Staging, theirs: Folder, rows: list[SelectedOutput], report: ImportReport, source: str
) -> _Plan | None:
    work, ours = staged.work, Folder.read(staged.base)
    theirs = _with_our_names(theirs, rows)
    budget = summary_budget(context.settings.recall.max_tokens)
    joining = join_folders(ours, theirs, report, source=source, max_summary_bytes=budget)
    standing = by_thread(ours)
    come = {row.thread_id: _read_back(row) for row in rows if row.thread_id not in standing}
    if not joining.texts and not come:
        return None
    guarded = protection.read_protection(context.repository, staged)
    evidence = {**standing, **come}
    restore_evidence(work, evidence, evidence.keys())
    write_texts(work, joining.texts)
    kept = protection.keep_lines(guarded, Folder.read(work), may_move=False)
    write_texts(work, kept.texts)
    mending.rewrite_provenance(work)
    persons = {
        path: kept.lines.get(path, frozenset()) | joining.persons.get(path, frozenset())
        for path in {*kept.lines, *joining.persons}
    }
    said = message(
        Change.IMPORT,
        f"Import the memory of {source}",
        [
            ("Imported-From", source),
            ("Sessions", f"{len(evidence)} ({len(come)} added, 0 changed, 0 removed)"),
            ("Added", named(sorted(come))),
            ("Bullets", str(joining.bullets)),
        ],
    )
    commit = publish.prepare_commit(context.repository, staged, said, now=context.clock.now(), persons=persons)
    states = {thread_id: each.updated_at for thread_id, each in come.items()}
    own = persons.get(MEMORY_FILE, frozenset())
    return _Plan(commit, staged.parent, states, Folder.read(work), own, joining.keys)


def _with_our_names(theirs: Folder, rows: list[SelectedOutput]) -> Folder:
    """Call summaries as they are called here, where a session had its name before its row came."""
    named = {row.thread_id: f"{ROLLOUT_SUMMARIES}/{stem_of(row)}.md" for row in rows}
    renamed = {
        path: named[header.thread_id]
        for path, header in headers_of(theirs).items()
        if named.get(header.thread_id, path) != path
    }
    if not renamed:
        return theirs
    old = re.compile("|".join(re.escape(path) for path in renamed))
    texts = {path: old.sub(lambda found: renamed[found[0]], text) for path, text in theirs.files.items()}
    return Folder(texts, theirs.odd)


def _read_back(row: SelectedOutput) -> ReadBack:
    return ReadBack(
        thread_id=row.thread_id,
        updated_at=row.source_updated_at,
        raw_memory=row.raw_memory,
        rollout_summary=row.rollout_summary,
        slug=row.rollout_slug,
        stem=stem_of(row),
        agent=row.agent,
        cwd=row.cwd,
        git_branch=row.git_branch,
        rollout_path=row.rollout_path,
    )


def _decide(conn: Connection, context: Context, plan: _Plan | None, seen: int | None, key: str, digest: str) -> bool:
    """Decide the import, all or nothing; False when something else was decided since it was prepared.

    A run that works on the version left is ended, and a proposal made from it is out of date.
    """
    latest = publications.latest(conn)
    if (latest.id if latest else None) != seen or publications.pending(conn) is not None:
        return False
    meta.put(conn, key, digest)
    if plan is None:
        return True
    now = context.clock.now()
    record_statements(conn, recorded_statements(conn) | {digest_of(key) for key in plan.keys})
    revoke(conn, JobKind.CONSOLIDATE, now=now)
    proposals.supersede(conn, now=now)
    publications.decide(conn, NewPublication(plan.commit, plan.base), attempt_id=None, now=now)
    holds.mark_standing(conn, plan.states)
    reparse(conn, plan.folder, now=now, persons=plan.persons)
    jobs.enqueue_consolidation(conn, reason="import", **enqueueing(context))
    return True
