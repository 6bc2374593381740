"""What is known of one session besides its file: by the ledger, or, before any sync, by its neighbours."""

import os.path
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from sqlite3 import Connection

from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.finding import Candidate, neighbours
from memoryd.errors import SourceError
from memoryd.ledger import attempts, facts, forgetting, holds, jobs, meta, outputs, sessions
from memoryd.ledger.active_days import unused_before
from memoryd.ledger.attempts import AttemptRow
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import JobRow
from memoryd.ledger.lineage import in_order, older_relatives
from memoryd.ledger.outputs import SelectedOutput
from memoryd.ledger.scratch import scratch
from memoryd.ledger.sessions import SessionRow, Sighting
from memoryd.ledger.states import JobKind, Outcome
from memoryd.pipeline.discover import CONSENT_KEY, mode_of_row
from memoryd.pipeline.eligibility import Exclusion, Traits, exclusion
from memoryd.pipeline.sighting import look_at
from memoryd.redact import Redactor
from memoryd.sources.items import SessionFile
from memoryd.workspace.layout import Home

GLOBAL_KEY = "global"
MOST_RUNS = 10_000
MOST_NEIGHBOURS = 500
"""How many sessions of the same folder are looked at to find those that hold the same rows."""


@dataclass(frozen=True, slots=True)
class Known:
    """A session as the ledger has it, and what came of it; all of it empty where there is no ledger yet.

    `older` are the sessions whose rows are not this one's, `younger` those that leave their shared rows to it.
    `consolidated_at`: when what it taught went into the memory folder as it stands now; `held_because`: why it stays
    out until it grows (undone, rejected).
    """

    row: SessionRow | None = None
    older: Sequence[SessionRow] = ()
    younger: Sequence[SessionRow] = ()
    copies: Sequence[tuple[str, str | None]] = ()
    job: JobRow | None = None
    attempts: Sequence[AttemptRow] = ()
    output: SelectedOutput | None = None
    consolidated_at: int | None = None
    held_because: str | None = None
    first_start_at: int | None = None
    agreed: str | None = None
    useful_from: float | None = None
    """What was recorded before it is too old to be kept; None where no ledger counts the days yet."""
    reset_at: int | None = None
    """What was recorded up to then is no evidence any more."""
    bytes_per_token: float | None = None
    """Learned of the model that is asked about sessions."""


async def from_ledger(settings: Settings, wanted: str, path: str) -> Known:
    """Return what the ledger knows of the session that lies at `path` or bears the id `wanted`."""
    file = Home(settings.home).ledger_file
    if not file.exists():
        return Known()
    async with await Ledger.open(file, clock=SystemClock(), read_only=True) as ledger:
        return await ledger.read(_known, wanted, path, settings)


def _known(conn: Connection, wanted: str, path: str, settings: Settings) -> Known:
    asked = settings.provider_for("extract")
    first_start = meta.get(conn, meta.FIRST_START)
    known = Known(
        first_start_at=None if first_start is None else int(first_start),
        agreed=meta.get(conn, CONSENT_KEY),
        useful_from=unused_before(conn, now=SystemClock().now(), max_unused=settings.consolidate.max_unused),
        reset_at=forgetting.reset_at(conn),
        bytes_per_token=facts.bytes_per_token(conn, asked.name, asked.model),
    )
    row = sessions.by_path(conn, path) or sessions.get(conn, wanted)
    if row is None:
        return known
    older, younger = _relatives(conn, row)
    detail = jobs.show(conn, JobKind.STAGE1, row.thread_id)
    output = outputs.get(conn, row.thread_id)
    return replace(
        known,
        row=row,
        older=older,
        younger=younger,
        copies=sessions.copies(conn, row.thread_id),
        job=detail.job if detail else None,
        attempts=detail.attempts if detail else (),
        output=output,
        consolidated_at=None if output is None else _consolidated_at(conn, output),
        held_because=next((held.because for held in holds.held(conn) if held.thread_id == row.thread_id), None),
    )


def _relatives(conn: Connection, row: SessionRow) -> tuple[list[SessionRow], list[SessionRow]]:
    family = [relative.thread_id for relative in in_order(sessions.family(conn, row))]
    later = family[family.index(row.thread_id) + 1 :] if row.thread_id in family else []
    younger = [relative for name in later if (relative := sessions.get_exact(conn, name))]
    return older_relatives(conn, row), younger


def _consolidated_at(conn: Connection, output: SelectedOutput) -> int | None:
    """Return when the first run after an output was written ended well; None while no run has taken it in as it is."""
    if not output.selected_for_phase2 or output.selected_for_phase2_source_updated_at != output.updated_at:
        return None
    runs = attempts.of_job(conn, JobKind.CONSOLIDATE.value, GLOBAL_KEY, limit=MOST_RUNS)
    ended = [run.ended_at for run in runs if run.outcome is Outcome.DONE and run.started_at >= output.generated_at]
    return min((at for at in ended if at is not None), default=None)


def seen_now(settings: Settings, session: Candidate, known: Known, redactor: Redactor) -> Known:
    """Bring what is known up to what the session's file says now. Raises SourceError when it cannot be read.

    A session that the ledger has not seen is compared with its neighbours, by the very rules that discovery uses.
    """
    sighting = look_at(session.agent, session.file, redactor)
    if known.row is not None:
        news = {field.name: getattr(sighting, field.name) for field in fields(sighting) if field.name != "timed"}
        return replace(known, row=replace(known.row, **news))
    with scratch() as conn:
        row = sessions.upsert(conn, sighting, now=SystemClock().now())
        if sighting.lineage is not None:
            for other in islice(neighbours(session.agent, session.file), MOST_NEIGHBOURS):
                _add_relative(conn, settings, session, other, sighting, redactor)
        older, younger = _relatives(conn, row)
    return replace(known, row=row, older=older, younger=younger)


def _add_relative(
    conn: Connection, settings: Settings, session: Candidate, other: SessionFile, sighting: Sighting, redactor: Redactor
) -> None:
    try:
        seen = look_at(session.agent, other, redactor)
    except SourceError:
        return
    if seen.lineage == sighting.lineage or seen.thread_id == sighting.parent_id:
        row = sessions.upsert(conn, seen, now=0)
        sessions.set_excluded(conn, row.thread_id, judge(settings, row))


def judge(settings: Settings, row: SessionRow) -> str | None:
    """Return the rule that leaves a session out for good, or None."""
    if row.excluded == sessions.FORGOTTEN:
        return Exclusion.FORGOTTEN
    traits = Traits(
        kind=row.kind,
        cwd=row.cwd,
        memory_mode=mode_of_row(row),
        ephemeral=row.ephemeral,
        originator=row.originator,
        is_wanted=row.user_mode is sessions.UserMode.ENABLED,
    )
    return exclusion(
        traits,
        sources=settings.sources,
        memoryd_home=Home(settings.home).path,
        user_homes=settings.user_homes,
        as_it_lies=os.path.realpath,
    )
