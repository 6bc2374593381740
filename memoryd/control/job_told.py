"""How `memoryd jobs` tells a person of a job: what it is, where it stands and why, what to do, how its runs ended."""

from collections.abc import Iterator
from typing import Final

from memoryd.control.console import moment, plural, span, when
from memoryd.control.prospects import Prospect, Standing, of_job
from memoryd.control.wording import job_name, reason_of_run
from memoryd.ledger.jobs import AttemptRow, JobDetail, JobRow
from memoryd.ledger.states import Outcome, Status

OUTCOMES: Final = {
    Outcome.DONE: "done",
    Outcome.NOTHING: "nothing to remember",
    Outcome.DEFERRED: "put off",
    Outcome.FAILED: "failed",
    Outcome.RELEASED: "given back",
    Outcome.CRASHED: "crashed",
}
"""How the history of a job names the ends of its runs."""
REMARKS: Final = {
    Outcome.DEFERRED: "this costs no try",
    Outcome.RELEASED: "memoryd was stopped; this costs no try",
    Outcome.CRASHED: "memoryd was killed, or the machine went down",
}
STATES: Final = {
    Status.PENDING: "waits",
    Status.RUNNING: "runs",
    Status.DONE: "done",
    Status.ERROR: "out of attempts",
}


def line_of(row: JobRow, now: float) -> str:
    """Tell a job in one line of a list."""
    match row.status:
        case Status.PENDING if row.wait_reason:
            told = f"waits until {when(row.ready_at, now)}: {row.wait_reason}"
        case Status.PENDING:
            told = "is next"
        case Status.RUNNING:
            told = f"since {when(row.started_at, now)}, lease until {moment(row.lease_until)}"
        case Status.DONE:
            told = f"at {when(row.finished_at, now)}"
        case Status.ERROR:
            told = f"out of attempts: {row.last_error}"
    return f"{row.status.value:<8} {row.kind} {row.job_key}  {told}"


def history(detail: JobDetail, standing: Standing, *, now: float) -> list[str]:
    """Tell the life of one job to somebody who has never seen the code."""
    row, prospect = detail.job, of_job(detail.job, standing, now=now)
    return [
        f"{job_name(row.kind, row.job_key)} ({row.kind} {row.job_key})",
        *_standing(row, prospect, now),
        f"runs so far: {len(detail.attempts)}" + (", the newest first" if len(detail.attempts) > 1 else ""),
        *(line for attempt in detail.attempts for line in _run(attempt, now)),
    ]


def _standing(row: JobRow, prospect: Prospect, now: float) -> Iterator[str]:
    yield _row("state", STATES[row.status])
    yield _row("next", told_of(prospect, now))
    yield _row("to do", prospect.todo)
    if row.last_error:
        yield _row("last error", row.last_error)
    if row.enqueued_at is not None:
        yield _row("asked for", f"{when(row.enqueued_at, now)}: {reason_of_run(row.kind, row.enqueue_reason)}")
    yield _row("last success", when(row.last_success_at, now))
    yield _row("tries left", f"{row.retry_remaining}; only a failure takes one")


def told_of(prospect: Prospect, now: float) -> str:
    """Tell what happens next with its times."""
    times = [f"since {when(prospect.since, now)}"] if prospect.since is not None else []
    times += [f"until {when(prospect.until, now)}"] if prospect.until is not None else []
    return ", ".join([prospect.what, *times])


def _row(name: str, text: str) -> str:
    return f"  {name:<13} {text}"


def _run(attempt: AttemptRow, now: float) -> Iterator[str]:
    """Tell one run, by the number that the log's lines about it bear (`attempt`)."""
    ended = OUTCOMES[attempt.outcome] if attempt.outcome else "still running"
    lasted = ""
    if attempt.duration_ms is not None:
        seconds = attempt.duration_ms / 1000
        lasted = f" after {seconds:.1f} s" if seconds < 60 else f" after {span(seconds)}"
    parts = [plural(attempt.requests, "request"), f"{attempt.tokens_in + attempt.tokens_out:,} tokens"]
    if attempt.model:
        parts.append(f"{attempt.provider}/{attempt.model}")
    remark = f"; {REMARKS[attempt.outcome]}" if attempt.outcome in REMARKS else ""
    yield f"  run {attempt.id}  {when(attempt.started_at, now)}  {ended}{lasted}; {', '.join(parts)}{remark}"
    if attempt.error:
        name = f"{attempt.error_class}: " if attempt.error_class else ""
        yield f"      {name}{attempt.error}"
