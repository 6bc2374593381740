"""Asking one question: gate, reserve, send, settle, read; one row of spend for each request that is sent."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TypeVar

from memoryd.clock import Clock
from memoryd.config import Provider
from memoryd.errors import ConfigError, EffortUnsupported, ModelError, StructureUnsupported
from memoryd.llm.classify import quota_sentence
from memoryd.llm.codec import Codec, Structure
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.gate import Gate
from memoryd.llm.http import HttpShell, was_sent
from memoryd.llm.http_reply import body_of
from memoryd.llm.limits import LimitSnapshot, parse_limits
from memoryd.llm.question import Answer, Question, Usage
from memoryd.llm.shield import to_its_end
from memoryd.llm.spend import (
    Purpose,
    RequestOutcome,
    RequestPlan,
    RequestResult,
    Reserve,
    Settle,
    cost_of,
    outcome_of,
    usage_of_failure,
)
from memoryd.llm.structure import next_rung
from memoryd.llm.visible import Show, content_of, visible
from memoryd.redact import Redactor
from memoryd.text import estimate_tokens

# What an answer is reserved with when the question sets no limit of its own.
ASSUMED_OUTPUT_TOKENS = 16_384

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LadderMemory:
    """Where the rung of the structure ladder that worked is kept, by a key that names endpoint and model."""

    load: Callable[[str], Awaitable[Structure | None]]
    store: Callable[[str, Structure], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the composer hands to every client. `min_remaining_percent` of a provider's limits is left to the user."""

    clock: Clock
    redactor: Redactor
    reserve: Reserve
    settle: Settle
    min_remaining_percent: float = 25.0
    ladder: LadderMemory | None = None


@dataclass(slots=True)
class _Flight:
    """One request under way: its number in the ledger, when it left, and what is known of its outcome so far."""

    number: int
    plan: RequestPlan
    started: float
    outcome: RequestOutcome = RequestOutcome.UNKNOWN
    usage: Usage | None = None


class ModelClient:
    """One provider behind its gate and its caps. Safe for concurrent questions; close it, or use it as a context."""

    def __init__(
        self,
        endpoint: Endpoint,
        provider: Provider,
        *,
        api_key: Callable[[], str | None],
        codec: Codec,
        shell: HttpShell,
        wiring: Wiring,
    ) -> None:
        self._endpoint = endpoint
        self._prices = provider.prices
        self._api_key = api_key
        self._codec = codec
        self._shell = shell
        self._wiring = wiring
        self._gate = Gate(endpoint.provider, wiring.clock, min_remaining_percent=wiring.min_remaining_percent)
        self._rungs: dict[str, Structure] = {}
        self._without_effort: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._shell.aclose()

    @property
    def limits(self) -> LimitSnapshot | None:
        """What the latest reply said of the provider's limits."""
        return self._gate.snapshot

    async def ask(self, question: Question, purpose: Purpose) -> Answer:
        """Return the model's answer. Raises the ModelError family, and BudgetSpent when a cap would be passed.

        A parameter that the server refuses by name (the structure of the answer, the reasoning effort) is given up and
        the question sent again, each time as a request of its own; what worked is remembered for the model.
        """
        rung = await self._rung(question)
        asked = replace(question, effort=None) if question.model in self._without_effort else question
        while True:
            try:
                answer = await self._ask_once(asked, rung, purpose)
            except StructureUnsupported:
                below = next_rung(self._codec.ladder, rung) if question.schema else None
                if below is None:
                    raise
                rung = below
            except EffortUnsupported:
                if asked.effort is None:
                    raise
                asked = replace(asked, effort=None)
            else:
                await self._remember(asked, rung, gave_up_effort=asked.effort != question.effort)
                return answer

    async def _ask_once(self, question: Question, rung: Structure, purpose: Purpose) -> Answer:
        """Send one request, with exactly one reservation and one settlement whatever happens."""
        self._gate.enter(question.model)
        key = self._key()
        payload = json.dumps(self._codec.encode(question, rung), ensure_ascii=False).encode("utf-8", "replace")
        flight = await self._reserved(self._plan(question, len(payload), purpose))
        try:
            answer = await self._exchange(question, payload, key, flight)
        except ModelError as error:
            flight.outcome = outcome_of(error)
            flight.usage = flight.usage or usage_of_failure(error, sent=was_sent(error))
            self._gate.record_failure(question.model, error)
            raise
        else:
            flight.outcome = RequestOutcome.ANSWERED
            self._gate.record_answer(question.model)
            return answer
        finally:
            await to_its_end(self._settled(flight))

    async def _exchange(self, question: Question, payload: bytes, key: str | None, flight: _Flight) -> Answer:
        show = self._show(question, key)
        reply = await self._shell.post(self._endpoint, self._codec.path, payload, key=key, show=show)
        now = self._wiring.clock.now()
        self._gate.snapshot = parse_limits(reply.headers, now) or self._gate.snapshot
        body = body_of(self._endpoint, reply, now=now, show=show)
        flight.usage = self._codec.usage(body)
        answer = self._codec.decode(body)
        if flight.usage is None:
            flight.usage = _estimated(flight.plan, answer)
        limited = None if answer.calls else quota_sentence(self._endpoint, answer.text)
        if limited is not None:
            raise limited
        return replace(answer, usage=flight.usage, model=answer.model or question.model)

    def _plan(self, question: Question, payload_bytes: int, purpose: Purpose) -> RequestPlan:
        usage = Usage(input=estimate_tokens(payload_bytes), output=question.max_output_tokens or ASSUMED_OUTPUT_TOKENS)
        return RequestPlan(
            provider=self._endpoint.provider,
            model=question.model,
            purpose=purpose,
            estimated_input_tokens=usage.input,
            max_output_tokens=usage.output,
            estimated_cost=cost_of(usage, self._prices),
        )

    async def _reserved(self, plan: RequestPlan) -> _Flight:
        """Reserve. When cancelled meanwhile, the reservation is still made, and settled as never sent."""

        async def reserve() -> _Flight:
            number = await self._wiring.reserve(plan)
            return _Flight(number, plan, self._wiring.clock.monotonic())

        task = asyncio.ensure_future(reserve())
        try:
            return await to_its_end(task)
        except asyncio.CancelledError:
            if not task.cancelled() and task.exception() is None:
                flight = task.result()
                flight.outcome, flight.usage = RequestOutcome.UNSENT, Usage()
                await to_its_end(self._settled(flight))
            raise

    async def _settled(self, flight: _Flight) -> None:
        usage = flight.usage
        result = RequestResult(
            outcome=flight.outcome,
            usage=usage,
            cost=None if usage is None else cost_of(usage, self._prices),
            duration_ms=round(1000 * (self._wiring.clock.monotonic() - flight.started)),
        )
        await self._wiring.settle(flight.number, result)

    def _key(self) -> str | None:
        """Read the key anew for each request, so that a changed file counts without a restart."""
        key = (self._api_key() or "").strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(
                f"the key of {self._endpoint.section} has characters that no key has", remedy=self._endpoint.key_remedy
            )
        return key or None

    def _show(self, question: Question, key: str | None) -> Show:
        def show(text: str) -> str:
            return visible(text, clean=self._wiring.redactor.clean, key=key, content=content_of(question))

        return show

    async def _rung(self, question: Question) -> Structure:
        """Return the rung to start on: the strictest, or what worked before for this endpoint and model."""
        top = self._codec.ladder[0]
        if question.schema is None:
            return top
        if question.model not in self._rungs and self._wiring.ladder is not None:
            loaded = await self._wiring.ladder.load(self._ladder_key(question.model))
            if loaded in self._codec.ladder:
                self._rungs[question.model] = loaded
        return self._rungs.get(question.model, top)

    async def _remember(self, question: Question, rung: Structure, *, gave_up_effort: bool) -> None:
        """Keep what the server took, once it has answered: a refusal alone could have had another cause."""
        if gave_up_effort:
            self._without_effort.add(question.model)
        if question.schema is None or rung is self._rungs.get(question.model, self._codec.ladder[0]):
            return
        self._rungs[question.model] = rung
        if self._wiring.ladder is not None:
            await self._wiring.ladder.store(self._ladder_key(question.model), rung)

    def _ladder_key(self, model: str) -> str:
        return f"{self._endpoint.provider} {self._endpoint.base_url} {model}"


def _estimated(plan: RequestPlan, answer: Answer) -> Usage:
    """Estimate the usage that a server did not report, so that its requests count too."""
    said = answer.text + "".join(call.arguments for call in answer.calls)
    output = estimate_tokens(len(said.encode("utf-8", "replace")))
    return Usage(input=plan.estimated_input_tokens, output=output, measured=False)
