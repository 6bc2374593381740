"""Codex's own memory, of either generation, into ours: its rows as they stand, and its folder with its own words.

Nothing is sent, and nothing is written beside Codex's files. Doing it again brings what is new since.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from memoryd import logs
from memoryd.errors import UsageError
from memoryd.ledger import jobs, sessions
from memoryd.pipeline.adopting import NOTHING_READ
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Agent, Context, in_thread
from memoryd.pipeline.discover import enqueueing
from memoryd.pipeline.import_folder import import_folder, join_folders
from memoryd.pipeline.import_rows import Incoming, Verdict, incoming_of, judge, judge_all, take_all
from memoryd.pipeline.importing import ImportReport
from memoryd.redact import Redactor
from memoryd.sources.codex_memories import AGENT, FOLDERS, CodexMemory, CodexOutput, CodexThread, read_codex_memory
from memoryd.sources.readers import READERS
from memoryd.text import plain
from memoryd.workspace.folder import Folder, Odd
from memoryd.workspace.gauge import read_foreign
from memoryd.workspace.headers import UNKNOWN, headers_of
from memoryd.workspace.importing_withheld import without_sessions
from memoryd.workspace.layout import ALWAYS_THERE, is_evidence
from memoryd.workspace.rereading import reread
from memoryd.workspace.stems import is_stem_of

log = logs.get()

SOURCE: Final = "Codex"
BATCH_ROWS: Final = 100
"""A transaction of some 20 ms."""


class Found:
    """What lies in one Codex home: its rows, made ready, and its folder (empty where there is none)."""

    def __init__(self, home: Path, redactor: Redactor, report: ImportReport) -> None:
        """Read everything (blocking), and note what cannot be used. Raises UsageError where there is no memory."""
        self.home = home
        memory = read_codex_memory(home)
        name, folder = _folder_of(home)
        self.folder = _usable(folder, redactor, report)
        found = [str(path) for path in memory.stores] + ([str(home / name)] if name else [])
        if not memory.outputs and not self.folder.files:
            why = "; ".join(f"{path}: {reason}" for path, reason in memory.unreadable.items())
            raise UsageError(
                f"there is no memory of Codex in {home}{f' ({why})' if why else ''}",
                remedy="name its home with --from DIR, or set CODEX_HOME; Codex remembers with [features] memories",
            )
        report.read += found
        for path, reason in memory.unreadable.items():
            report.leave_out_file(path, reason)
        for thread_id, unfit in memory.unfit:
            report.leave_out_session(thread_id, unfit.value)
        if not memory.outputs:
            _read_back(memory, self.folder)
        _fill_in(memory, self.folder)
        stems = {
            header.thread_id: Path(path).stem
            for path, header in headers_of(self.folder).items()
            if header.thread_id in memory.outputs
            and is_stem_of(Path(path).stem, header.thread_id)
            and not redactor.contains_secret(path)
        }
        agents = {header.thread_id: header.agent for header in headers_of(self.folder).values()}
        rows = incoming_of(memory, Agent(READERS[AGENT], (home,)), stems, redactor)
        self.rows = [_of_agent(each, agents.get(each.output.thread_id, "")) for each in rows]

    def threads(self) -> frozenset[str]:
        """Return the sessions that the rows and the folder are made of."""
        named = {header.thread_id for header in headers_of(self.folder).values()}
        return frozenset({*named, *(each.output.thread_id for each in self.rows)} - {""})

    def withhold(self, verdicts: Mapping[str, Verdict], withheld: Collection[str]) -> None:
        """Take out of the folder what rests on sessions that are not to be remembered, here or there (blocking)."""
        disabled = {thread_id for thread_id, each in verdicts.items() if each is Verdict.DISABLED}
        self.folder = without_sessions(self.folder, disabled.union(withheld))


async def import_codex(context: Context, homes: Sequence[Path]) -> ImportReport:
    """Import the memory of each Codex home. Raises UsageError, StorageError, GitError."""
    report = ImportReport(AGENT, [str(home) for home in homes])
    async with context.forgetting:
        await publish_decided(context)  # of an import that was killed, too: what it decided would seem to be here
        for home in homes:
            found = await in_thread(Found, home, context.redactor, report)
            verdicts = await _take_rows(context, found.rows)
            _note(report, verdicts)
            withheld = await context.ledger.read(_withheld, found.threads())
            await in_thread(found.withhold, verdicts, withheld)
            known = {Verdict.IMPORTED, Verdict.UNCHANGED, Verdict.NEWER}
            made_of = [
                each.output.thread_id
                for each in found.rows
                if each.is_consolidated and verdicts[each.output.thread_id] in known
            ]
            await import_folder(context, found.folder, made_of, report, source=SOURCE, home=home)
    log.info(
        "import.completed",
        agent=AGENT,
        count=report.sessions["imported"],
        files=report.files["imported"],
        left_out=len(report.left_out),
    )
    return report


def preview_codex(
    conn: Connection | None, ours: Folder, homes: Sequence[Path], redactor: Redactor, *, max_summary_bytes: int
) -> ImportReport:
    """Say what an import would do, and do nothing; `conn` None: there is no ledger yet (blocking)."""
    report = ImportReport(AGENT, [str(home) for home in homes], is_dry=True)
    for home in homes:
        found = Found(home, redactor, report)
        verdicts = (
            judge_all(conn, found.rows)
            if conn
            else {each.output.thread_id: judge(each, None, None) for each in found.rows}
        )
        _note(report, verdicts)
        found.withhold(verdicts, _withheld(conn, found.threads()) if conn else ())
        join_folders(ours, found.folder, report, source=SOURCE, max_summary_bytes=max_summary_bytes)
    return report


def _of_agent(each: Incoming, named: str) -> Incoming:
    """Say whose session it was where a summary of memoryd's own, of an export, names the agent and no file is seen."""
    if named not in READERS or each.sighting.size != NOTHING_READ:
        return each
    return replace(each, sighting=replace(each.sighting, agent=named))


def _withheld(conn: Connection, threads: Iterable[str]) -> list[str]:
    rows = (sessions.get_exact(conn, thread_id) for thread_id in threads)
    return [row.thread_id for row in rows if row is not None and row.is_withheld]


async def _take_rows(context: Context, rows: Sequence[Incoming]) -> dict[str, Verdict]:
    verdicts: dict[str, Verdict] = {}
    for start in range(0, len(rows), BATCH_ROWS):
        batch = rows[start : start + BATCH_ROWS]
        verdicts |= await context.ledger.write(_take_batch, context, batch)
    return verdicts


def _take_batch(conn: Connection, context: Context, batch: Sequence[Incoming]) -> dict[str, Verdict]:
    verdicts = take_all(conn, batch, now=context.clock.now())
    if Verdict.IMPORTED in verdicts.values():
        jobs.enqueue_consolidation(conn, reason="import", **enqueueing(context))
    return verdicts


def _note(report: ImportReport, verdicts: dict[str, Verdict]) -> None:
    report.sessions.update(
        Counter(each.name.lower() for each in verdicts.values() if each in {Verdict.IMPORTED, Verdict.UNCHANGED})
    )
    for thread_id, verdict in verdicts.items():
        if verdict not in {Verdict.IMPORTED, Verdict.UNCHANGED}:
            named = "a session" if verdict is Verdict.SECRET else thread_id
            report.leave_out_session(named, verdict.value)


def _folder_of(home: Path) -> tuple[str, Folder]:
    """Return the memory folder of the generation that says most, and its name."""
    for name in FOLDERS:
        folder = read_foreign(home / name)
        if any(folder.text(path).strip() for path in ALWAYS_THERE):
            return name, folder
    return "", Folder()


def _usable(folder: Folder, redactor: Redactor, report: ImportReport) -> Folder:
    """Take what nobody sees out of texts, as from what a model says, and leave out files whose name holds a secret.

    One of evidence, which is named anew here, is called as texts call it. The name as it was is in no report either.
    """
    files = {}
    for path, text in folder.files.items():
        cleaned = redactor.clean(path)
        if cleaned == path or is_evidence(path):
            files[cleaned] = plain(text)
        else:
            report.leave_out_file(cleaned, Odd.SECRET_NAME.value)
    return Folder(files, {redactor.clean(path): reason for path, reason in folder.odd.items()})


def _read_back(memory: CodexMemory, folder: Folder) -> None:
    """Take from the folder what the database does not give: it is damaged, or gone."""
    for each in reread(folder):
        memory.outputs[each.thread_id] = CodexOutput(
            thread_id=each.thread_id,
            source_updated_at=each.updated_at,
            raw_memory=each.raw_memory,
            rollout_summary=each.rollout_summary,
            rollout_slug=each.slug,
            generated_at=each.updated_at,
            usage_count=None,
            last_usage=None,
            is_consolidated=True,
        )


def _fill_in(memory: CodexMemory, folder: Folder) -> None:
    """Take from the headers of the summaries where a session was recorded, if no database says it."""
    for header in headers_of(folder).values():
        if header.thread_id in memory.outputs and header.thread_id not in memory.threads:
            memory.threads[header.thread_id] = CodexThread(
                rollout_path=_known(header.rollout_path), cwd=_known(header.cwd), git_branch=_known(header.git_branch)
            )


def _known(value: str) -> str | None:
    return None if value in {"", UNKNOWN} else value
