"""Rows of another program's stage 1 become ours: judged one by one, kept as they stand, and counted as extracted.

A session whose file says no more than what was remembered of it is not extracted again: nobody pays twice.
"""

import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from memoryd.errors import SourceError
from memoryd.ledger import outputs, sessions
from memoryd.ledger.outputs import ImportedOutput, SelectedOutput
from memoryd.ledger.sessions import Covered, SessionRow, Sighting
from memoryd.pipeline.adopting import NOTHING_READ
from memoryd.pipeline.context import Agent
from memoryd.pipeline.sighting import look_at
from memoryd.redact import Redactor
from memoryd.sources.codex_memories import CodexMemory, CodexOutput, CodexThread
from memoryd.sources.items import MemoryMode
from memoryd.text import on_one_line, plain
from memoryd.workspace.stems import session_stem

ARCHIVED: Final = "archived_sessions"


class Verdict(StrEnum):
    """What becomes of a row; all but the first two are reasons to leave it out."""

    IMPORTED = "imported"
    UNCHANGED = "unchanged"
    NEWER = "memoryd remembers as late a state of the session, or a later one"
    WITHHELD = "the session is forgotten, excluded or not to be remembered here"
    DISABLED = "Codex says that the session is not to be remembered"
    SECRET = "its id holds what looks like a secret"  # noqa: S105 (a reason, no password)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A row that is ready to be stored, without secrets; the sighting is what the ledger will know of its session."""

    output: ImportedOutput
    sighting: Sighting
    stem: str
    is_consolidated: bool
    mode: MemoryMode
    has_secret_id: bool = False


def judge(each: Incoming, stored: SelectedOutput | None, session: SessionRow | None) -> Verdict:
    """Decide about a row, by what the ledger has of its session.

    Codex dates a row by its file, which may be later than the last word in it: what memoryd made of that word stays.
    """
    if each.has_secret_id:
        return Verdict.SECRET
    if session is not None and session.is_withheld:
        return Verdict.WITHHELD
    if each.mode is not MemoryMode.ENABLED and (session is None or session.user_mode is None):
        return Verdict.DISABLED
    if stored is not None and stored.source_updated_at == each.output.source_updated_at:
        return Verdict.UNCHANGED
    state = min(each.output.source_updated_at, each.sighting.updated_at)
    return Verdict.NEWER if stored is not None and stored.source_updated_at >= state else Verdict.IMPORTED


def judge_all(conn: Connection, incoming: Iterable[Incoming]) -> dict[str, Verdict]:
    """Decide about every row, and change nothing."""
    return {each.output.thread_id: _judged(conn, each) for each in incoming}


def take_all(conn: Connection, incoming: Iterable[Incoming], *, now: float) -> dict[str, Verdict]:
    """Store the rows that are to come, with their sessions; part of one transaction."""
    verdicts = {}
    for each in incoming:
        verdicts[each.output.thread_id] = verdict = _judged(conn, each)
        if verdict is Verdict.IMPORTED:
            _take(conn, each, now)
    return verdicts


def incoming_of(memory: CodexMemory, agent: Agent, stems: Mapping[str, str], redactor: Redactor) -> list[Incoming]:
    """Make the rows of a Codex home ready (blocking): redacted, and with a look at the session's own file."""
    found = []
    for thread_id, output in sorted(memory.outputs.items()):
        thread = memory.threads.get(thread_id, CodexThread())
        slug = redactor.clean(plain(output.rollout_slug)) if output.rollout_slug else None
        found.append(
            Incoming(
                output=ImportedOutput(
                    thread_id=thread_id,
                    source_updated_at=output.source_updated_at,
                    raw_memory=redactor.clean(plain(output.raw_memory)),
                    rollout_summary=redactor.clean(plain(output.rollout_summary)),
                    rollout_slug=slug,
                    generated_at=output.generated_at,
                    usage_count=output.usage_count,
                    last_usage=output.last_usage,
                ),
                sighting=_sighting(output, thread, agent, redactor),
                stem=stems.get(thread_id) or session_stem(thread_id, output.source_updated_at, slug),
                is_consolidated=output.is_consolidated,
                mode=thread.memory_mode,
                has_secret_id=redactor.contains_secret(thread_id),
            )
        )
    return found


def _judged(conn: Connection, each: Incoming) -> Verdict:
    thread_id = each.output.thread_id
    return judge(each, outputs.get(conn, thread_id), sessions.get_exact(conn, thread_id))


def _take(conn: Connection, each: Incoming, now: float) -> None:
    thread_id, known = each.output.thread_id, sessions.get_exact(conn, each.output.thread_id)
    session = known or sessions.upsert(conn, each.sighting, now)
    sessions.fix_stem(conn, thread_id, each.stem)
    outputs.take_over(conn, each.output)
    if session.updated_at <= each.output.source_updated_at:
        sessions.record_covered(conn, thread_id, Covered(session.updated_at, session.record_bytes))


def _sighting(output: CodexOutput, thread: CodexThread, agent: Agent, redactor: Redactor) -> Sighting:
    for path in _candidates(thread.rollout_path, agent.homes[0]):
        try:
            seen = look_at(agent, agent.reader.locate(path), redactor)
        except SourceError:
            continue
        if seen.thread_id == output.thread_id:
            return seen
    name = redactor.clean(on_one_line(thread.rollout_path or "")) or f"unknown/{output.thread_id}"
    cwd, branch = (redactor.clean(on_one_line(text or "")) or None for text in (thread.cwd, thread.git_branch))
    return replace(
        _UNSEEN,
        thread_id=output.thread_id,
        path=name,
        updated_at=output.source_updated_at,
        cwd=cwd if cwd and cwd.startswith("/") else None,
        git_branch=branch,
    )


_UNSEEN: Final = Sighting(
    thread_id="",
    agent="codex",
    path="",
    cwd=None,
    git_branch=None,
    parent_id=None,
    kind="interactive",
    originator=None,
    started_at=None,
    size=NOTHING_READ,
    mtime_ns=NOTHING_READ,
    updated_at=NOTHING_READ,
    record_bytes=NOTHING_READ,
)
"""A session whose file is not there any more, or is none."""


def _candidates(rollout_path: str | None, home: Path) -> list[Path]:
    """Return where a session's file may lie: where Codex says, if that is in its home, and among the archived ones."""
    if not rollout_path:
        return []
    path = Path(rollout_path)
    places = (path, path.with_name(f"{path.name}.zst"), home / ARCHIVED / path.name)
    return [each for each in places if _is_inside(each, home)]


def _is_inside(path: Path, home: Path) -> bool:
    try:
        real = path.resolve()
        return real.is_relative_to(home.resolve()) and stat.S_ISREG(real.stat().st_mode)
    except (OSError, ValueError, RuntimeError):
        return False
