"""Counts every request in the ledger, before it is sent and after it ended: the model room's reserve and settle."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from memoryd import logs
from memoryd.clock import Clock
from memoryd.config import Limits, Settings
from memoryd.errors import DiskFull, LedgerBusy
from memoryd.ledger import facts, jobs, spend
from memoryd.ledger.database import Ledger
from memoryd.ledger.spend import Caps, JobCaps
from memoryd.ledger.states import JobKind
from memoryd.llm.gate import GateMemory, Recorded
from memoryd.llm.limits import LimitSnapshot
from memoryd.llm.spend import RequestPlan, RequestResult
from memoryd.pipeline.agent_limits import recorded_limits

log = logs.get()

OVER_WITH_RECOVERY: Final = ("key_refused", "model_unknown", "provider_unreachable")
"""Waits that end when a provider answers again, or when what it depends on has changed."""


class Spending:
    """The ledger's account of requests, under the caps per UTC day and per run; and its memory of providers."""

    def __init__(
        self, ledger: Ledger, clock: Clock, limits: Limits, job_caps: Mapping[str, JobCaps] | None = None
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._caps = caps_per_day(limits)
        self._job_caps = job_caps or {}

    async def reserve(self, plan: RequestPlan) -> int:
        """Count a request that is about to be sent; raises BudgetSpent when it would pass a cap."""
        return await self._ledger.write(
            spend.reserve,
            now=self._clock.now(),
            purpose=spend.Purpose(
                plan.purpose.kind, plan.purpose.job_key, plan.purpose.attempt_id, plan.purpose.reference
            ),
            provider=plan.provider,
            model=plan.model,
            estimated_tokens=plan.estimated_input_tokens + plan.max_output_tokens,
            estimated_cost=plan.estimated_cost,
            caps=self._caps,
            job_caps=self._job_caps.get(plan.purpose.kind),
        )

    async def check_day(self) -> None:
        """Raise BudgetSpent when the day's caps allow no request at all: then no session need be read."""
        await self._ledger.read(spend.check_day, now=self._clock.now(), caps=self._caps)

    async def settle(self, request_id: int, result: RequestResult) -> None:
        """Replace the estimate by what happened; what nobody knows, or cannot be written, stays at the estimate."""
        log.debug("request.settled", outcome=result.outcome.value, duration_ms=result.duration_ms)
        try:
            await self._settle(request_id, result)
        except (DiskFull, LedgerBusy) as error:
            # The request is counted, and its answer is paid for: it must not be lost to the exact sum.
            log.warning("request.unsettled", error=str(error))

    async def _settle(self, request_id: int, result: RequestResult) -> None:
        usage = result.usage
        await self._ledger.write(
            spend.settle,
            request_id,
            now=self._clock.now(),
            outcome=result.outcome.value,
            tokens_in=usage.input if usage else None,
            tokens_out=usage.output if usage else None,
            tokens_cached=usage.cached if usage else None,
            cost=result.cost,
            duration_ms=result.duration_ms,
            tokens_reasoning=usage.reasoning if usage else None,
        )

    async def known_manner(self, endpoint: str) -> str | None:
        """Return how an endpoint and model took questions last time; None when that is not known."""
        return await self._ledger.read(facts.get, endpoint, "", facts.Fact.STRUCTURE)

    async def keep_manner(self, endpoint: str, manner: str) -> None:
        """Remember it, so that a restart does not ask again for what was refused."""
        await self._ledger.write(facts.put, endpoint, "", facts.Fact.STRUCTURE, manner, now=self._clock.now())

    def gates(self) -> GateMemory:
        """Return where what is known of a provider is kept over restarts."""
        return GateMemory(load=self._known_gate, store=self._keep_gate, recovered=self.hurry)

    def recorded_by(self, agent: str) -> Recorded:
        """Return the reader of the limits that an agent recorded in its own sessions."""
        return partial(self._recorded, agent)

    async def hurry(self, provider: str) -> int:
        """Let what waits for a provider be tried now; the breaker still lets one request a minute pass.

        The answer is the number of jobs; those of another provider are put off again without a request.
        """
        expedited = 0
        for kind in JobKind:
            expedited += await self._ledger.write(
                jobs.expedite, kind=kind, reasons=OVER_WITH_RECOVERY, now=self._clock.now()
            )
        if expedited:
            log.info("provider.rearmed", provider=provider, count=expedited)
        return expedited

    async def _known_gate(self, provider: str) -> str | None:
        return await self._ledger.read(facts.get, provider, "", facts.Fact.GATE)

    async def _keep_gate(self, provider: str, state: str) -> None:
        try:
            await self._ledger.write(facts.put, provider, "", facts.Fact.GATE, state, now=self._clock.now())
        except (DiskFull, LedgerBusy) as error:
            # It holds in this process all the same, and the answer that came with it must not be lost.
            log.warning("request.unsettled", error=str(error))

    async def _recorded(self, agent: str) -> LimitSnapshot | None:
        return await recorded_limits(self._ledger, agent, self._clock.now())


def caps_per_day(limits: Limits) -> Caps:
    """Return the caps of a UTC day as the ledger takes them."""
    return Caps(limits.requests_per_day, limits.tokens_per_day, limits.cost_per_day)


def caps_per_job(settings: Settings) -> dict[str, JobCaps]:
    """Return what one run of each kind of job may take."""
    extract, consolidate = settings.extract, settings.consolidate
    return {
        JobKind.STAGE1.value: JobCaps("extract", extract.max_requests, extract.max_tokens),
        JobKind.CONSOLIDATE.value: JobCaps("consolidate", consolidate.max_requests, consolidate.max_tokens),
    }
