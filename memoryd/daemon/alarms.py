"""Tells when a stage has work and does not get on with it: its last success is older than its settings let expect."""

from dataclasses import dataclass

from memoryd import logs
from memoryd.clock import Clock
from memoryd.config import Settings
from memoryd.daemon.duty import Duty, Trouble
from memoryd.ledger import jobs
from memoryd.ledger.database import Ledger
from memoryd.ledger.states import JobKind, Status

log = logs.get()

BY_CHOICE = frozenset({"debounce", "min_interval", "budget"})
"""Waits that the person's own settings ask for: they are no standstill."""
NAMES = {JobKind.STAGE1: "stage 1", JobKind.CONSOLIDATE: "consolidation"}


@dataclass(slots=True)
class _Standing:
    """Since when (monotonic seconds) a stage has work without a success, and which success was the last then."""

    since: float
    success_at: int | None
    is_told: bool = False


class Alarms:
    """Watches the stages of one daemon under one set of settings. What the machine slept does not count."""

    def __init__(self, duty: Duty, ledger: Ledger, clock: Clock, settings: Settings) -> None:
        self._duty = duty
        self._ledger = ledger
        self._clock = clock
        self._expected = {kind: expected_seconds(kind, settings) for kind in JobKind}
        self._standing: dict[JobKind, _Standing] = {}

    async def look(self) -> None:
        """Look at each stage once; a standstill is logged once and stays a trouble until a success or no work."""
        counts = await self._ledger.read(jobs.counts)
        waits = await self._ledger.read(jobs.waiting, now=self._clock.now())
        for kind in JobKind:
            by_choice = sum(row.kind == kind and row.wait_reason in BY_CHOICE for row in waits)
            work = counts[kind][Status.PENDING] + counts[kind][Status.RUNNING] - by_choice
            success_at = await self._ledger.read(jobs.last_success_at, kind) if work > 0 else None
            self._judge(kind, work, success_at)

    def _judge(self, kind: JobKind, work: int, success_at: int | None) -> None:
        standing, now = self._standing.get(kind), self._clock.monotonic()
        trouble = f"{kind}_stalled"
        if work <= 0 or standing is None or standing.success_at != success_at:
            self._duty.troubles.pop(trouble, None)
            self._standing.pop(kind, None)
            if work > 0:
                self._standing[kind] = _Standing(now, success_at)
            return
        seconds = now - standing.since
        if seconds < self._expected[kind] or standing.is_told:
            return
        standing.is_told = True
        log.warning("stage.stalled", kind=kind.value, count=work, seconds=round(seconds))
        message = f"{NAMES[kind]} has work ({work}) and had no success for {round(seconds / 3600, 1):g} hours"
        remedy = "`memoryd jobs` says what each job waits for; `memoryd doctor` tests the provider"
        self._duty.report(Trouble(trouble, "warning", message, remedy))


def expected_seconds(kind: JobKind, settings: Settings) -> float:
    """Return how long a stage that works may have no success: the longest wait between tries, and the longest run."""
    retry = settings.ledger.retry_cap
    if kind is JobKind.STAGE1:
        return retry + settings.extract.max_duration
    consolidate = settings.consolidate
    return retry + consolidate.max_duration + consolidate.min_interval + consolidate.debounce
