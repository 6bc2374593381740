"""Counts every request in the ledger, before it is sent and after it ended: the model room's reserve and settle."""

from memoryd import logs
from memoryd.clock import Clock
from memoryd.config import Limits
from memoryd.errors import DiskFull, LedgerBusy
from memoryd.ledger import facts, spend
from memoryd.ledger.database import Ledger
from memoryd.ledger.spend import Caps
from memoryd.llm.codec import Structure
from memoryd.llm.spend import RequestPlan, RequestResult

log = logs.get()


class Spending:
    """The ledger's account of requests, under the caps per UTC day."""

    def __init__(self, ledger: Ledger, clock: Clock, limits: Limits) -> None:
        self._ledger = ledger
        self._clock = clock
        self._caps = Caps(limits.requests_per_day, limits.tokens_per_day, limits.cost_per_day)

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
        )

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
        )

    async def known_rung(self, endpoint: str) -> Structure | None:
        """Return how an endpoint and model took structured output last time; None when that is not known."""
        kept = await self._ledger.read(facts.get, endpoint, "", facts.Fact.STRUCTURE)
        return Structure(kept) if kept in set(Structure) else None

    async def keep_rung(self, endpoint: str, rung: Structure) -> None:
        """Remember it, so that a restart does not climb down the ladder again."""
        await self._ledger.write(facts.put, endpoint, "", facts.Fact.STRUCTURE, rung.value, now=self._clock.now())
