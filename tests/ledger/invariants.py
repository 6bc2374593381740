"""What always holds of the ledger, asked of its tables alone: no word of the model here."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from memoryd.ledger.states import JobKind, Status
from tests.ledger.model import LEASE_SECONDS, MAX_RUNNING, Job, Key
from tests.ledger.picture import Picture


@dataclass
class History:
    """The jobs as they were before the last step, and the sessions that were ever polluted."""

    jobs: dict[Key, Job] = field(default_factory=dict)
    polluted: set[str] = field(default_factory=set)


def hold(picture: Picture, history: History, *, now: float) -> None:
    """Raise AssertionError where one of the invariants does not hold."""
    for invariant in _OF_ROWS:
        for job in picture.jobs:
            assert invariant(job, now), f"{invariant.__name__}: {job}"
    for of_moves in _OF_MOVES:
        for job in picture.jobs:
            if (before := history.jobs.get(job.key)) is not None:
                assert of_moves(before, job), f"{of_moves.__name__}: {before} -> {job}"
    assert what_was_enqueued_and_is_not_covered_is_not_done(picture, history), picture.tables
    for of_all in _OF_ALL:
        assert of_all(picture), f"{of_all.__name__}: {picture.tables}"
    history.jobs = {job.key: job for job in picture.jobs}


def every_row_is_done_claimable_leased_waiting_or_dead_with_a_reason(job: Job, now: float) -> bool:
    """I5."""
    match job.status:
        case Status.PENDING:
            claimable = job.ready_at is not None and job.ready_at <= now
            return job.retry_remaining > 0 and (claimable or job.wait_reason is not None or _clock_was_ahead(job, now))
        case Status.RUNNING:
            return job.lease_until is not None and job.lease_until == job.ready_at
        case Status.DONE:
            return job.last_success_watermark == job.input_watermark
        case _:
            return bool(job.last_error) and job.retry_remaining == 0


def _clock_was_ahead(job: Job, now: float) -> bool:
    """What was made ready by a clock that has been set back since waits for `mend_waits`, or a few seconds."""
    return max(job.enqueued_at or 0, job.finished_at or 0, job.last_success_at or 0, job.ready_at or 0) > now


def success_never_exceeds_the_input(job: Job, now: float) -> bool:
    return job.last_success_watermark is None or job.last_success_watermark <= job.input_watermark


def no_lease_is_longer_than_it_may_be(job: Job, now: float) -> bool:
    return job.status != Status.RUNNING or job.lease_seconds == LEASE_SECONDS


def watermarks_and_epochs_never_go_back(before: Job, after: Job) -> bool:
    return (
        after.input_watermark >= before.input_watermark
        and (after.last_success_watermark or 0) >= (before.last_success_watermark or 0)
        and after.epoch >= before.epoch
    )


def only_the_holder_moves_the_success_watermark(before: Job, after: Job) -> bool:
    """Or whoever has leased it anew in the very transaction that ended the run."""
    moved = after.last_success_watermark != before.last_success_watermark
    leased_anew = after.status == Status.RUNNING and after.epoch == before.epoch + 1
    ended = after.status in (Status.DONE, Status.PENDING) or leased_anew
    return not moved or (before.status == Status.RUNNING and ended)


def a_failure_moves_no_success_watermark(before: Job, after: Job) -> bool:
    failed = after.retry_remaining < before.retry_remaining or after.status == Status.ERROR
    return not failed or after.last_success_watermark == before.last_success_watermark


def a_new_lease_has_a_larger_epoch(before: Job, after: Job) -> bool:
    taken = after.ownership_token is not None and before.ownership_token != after.ownership_token
    return not taken or after.epoch > before.epoch


def no_more_leases_than_allowed(picture: Picture) -> bool:
    running = Counter(job.kind for job in picture.jobs if job.status == Status.RUNNING)
    return all(number <= MAX_RUNNING for number in running.values())


def exactly_the_present_runs_have_no_outcome(picture: Picture) -> bool:
    unfinished = {
        (kind, key, number) for number, kind, key, _, outcome, *_ in picture.tables["attempts"] if not outcome
    }
    return unfinished == {(*job.key, job.attempt_id) for job in picture.jobs if job.status == Status.RUNNING}


def what_was_enqueued_and_is_not_covered_is_not_done(picture: Picture, history: History) -> bool:
    """While a session is polluted its file may change and change back unseen by any job: those are left out."""
    done = {job.job_key for job in picture.jobs if (job.kind, job.status) == (JobKind.STAGE1, Status.DONE)}
    history.polluted |= {str(thread) for thread, *_, polluted in picture.tables["sessions"] if polluted}
    for thread, *columns in picture.tables["sessions"]:
        seen, queued, covered = columns[0:2], columns[2:4], columns[4:6]
        if thread in done and thread not in history.polluted and seen == queued != covered:
            return False
    return True


def one_decision_at_most_waits_to_be_put_in_place(picture: Picture) -> bool:
    return [state for _, state in picture.tables["publications"]].count("decided") <= 1


_OF_ROWS: tuple[Callable[[Job, float], bool], ...] = (
    every_row_is_done_claimable_leased_waiting_or_dead_with_a_reason,
    success_never_exceeds_the_input,
    no_lease_is_longer_than_it_may_be,
)

_OF_MOVES: tuple[Callable[[Job, Job], bool], ...] = (
    watermarks_and_epochs_never_go_back,
    only_the_holder_moves_the_success_watermark,
    a_failure_moves_no_success_watermark,
    a_new_lease_has_a_larger_epoch,
)

_OF_ALL: tuple[Callable[[Picture], bool], ...] = (
    no_more_leases_than_allowed,
    exactly_the_present_runs_have_no_outcome,
    one_decision_at_most_waits_to_be_put_in_place,
)
