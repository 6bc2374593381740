"""Asking one question: gate, reserve, send, settle, read; one row of spend for each request that is sent."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TypeVar

from memoryd.clock import Clock
from memoryd.config import Provider
from memoryd.errors import ConfigError, ContextOverflow, ModelError
from memoryd.llm.classify import quota_sentence
from memoryd.llm.codec import Codec
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.gate import Gate, GateMemory, Recorded
from memoryd.llm.http import was_sent
from memoryd.llm.http_reply import body_of
from memoryd.llm.limits import LimitSnapshot, parse_limits
from memoryd.llm.manner import Manner, encoded, in_manner, manner_in_words, manner_of_words, stepped_down
from memoryd.llm.question import Answer, Question, Stop, Usage
from memoryd.llm.shell import Shell
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
from memoryd.llm.visible import Show, content_of, visible
from memoryd.redact import Redactor
from memoryd.text import estimate_tokens

# What an answer is reserved with when the question sets no limit of its own.
ASSUMED_OUTPUT_TOKENS = 16_384
CUT_EARLY = 0.8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LadderMemory:
    """Where it is kept how a server takes questions (manner.py), by a key that names endpoint and model."""

    load: Callable[[str], Awaitable[str | None]]
    store: Callable[[str, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the composer hands to every client. `min_remaining_percent` of a provider's limits is left to the user."""

    clock: Clock
    redactor: Redactor
    reserve: Reserve
    settle: Settle
    min_remaining_percent: float = 25.0
    ladder: LadderMemory | None = None
    gates: GateMemory | None = None
    recorded: Recorded | None = None


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
        shell: Shell,
        wiring: Wiring,
        stamp: Callable[[], str] = str,
    ) -> None:
        self._endpoint = endpoint
        self._prices = provider.prices
        self._stream = provider.stream
        self._most_output_tokens = provider.max_output_tokens
        self._api_key = api_key
        self._codec = codec
        self._shell = shell
        self._wiring = wiring
        self.gate = Gate(
            endpoint.provider,
            wiring.clock,
            min_remaining_percent=wiring.min_remaining_percent,
            memory=wiring.gates,
            recorded=wiring.recorded,
            stamp=stamp,
        )
        self._manners: dict[str, Manner] = {}

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
        return self.gate.snapshot

    def structure_for(self, model: str) -> str:
        """Return the rung of the ladder on which the model answered last, "" when it was never asked."""
        return self._manners[model].structure.value if model in self._manners else ""

    async def ask(self, question: Question, purpose: Purpose) -> Answer:
        """Return the model's answer. Raises the ModelError family, and BudgetSpent when a cap would be passed.

        A parameter that the server refuses by name (the structure of the answer, the reasoning effort, the limit of the
        answer) is given up and the question sent again, each time as a request of its own; what worked is remembered
        for the model.
        """
        manner = await self._manner(question)
        bounded = replace(question, max_output_tokens=_least(question.max_output_tokens, self._most_output_tokens))
        while True:
            try:
                answer = await self._ask_once(bounded, manner, purpose)
            except ModelError as error:
                below = stepped_down(self._codec, bounded, manner, error)
                if below is None:
                    raise
                manner = below
            else:
                await self._remember(question, manner)
                return answer

    async def _ask_once(self, question: Question, manner: Manner, purpose: Purpose) -> Answer:
        """Send one request, with exactly one reservation and one settlement whatever happens."""
        await self.gate.admit(question.model)
        key = self._key()
        body = encoded(self._codec, question, manner, stream=self._stream)
        payload = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        asked = in_manner(question, manner)
        flight = await self._reserved(self._plan(asked, len(payload), purpose))
        try:
            answer = await self._exchange(asked, payload, key, flight)
        except ModelError as error:
            flight.outcome = outcome_of(error)
            flight.usage = flight.usage or usage_of_failure(error, sent=was_sent(error))
            self.gate.record_failure(question.model, error)
            raise
        else:
            flight.outcome = RequestOutcome.ANSWERED
            self.gate.record_answer(question.model)
            return answer
        finally:
            await to_its_end(self._settled(flight))

    async def _exchange(self, question: Question, payload: bytes, key: str | None, flight: _Flight) -> Answer:
        show = self._show(question, key)
        reply = await self._shell.post(
            self._endpoint,
            self._codec.path,
            payload,
            headers=self._codec.headers(key),
            show=show,
            stream=self._stream,
        )
        now = self._wiring.clock.now()
        self.gate.snapshot = _shown(parse_limits(reply.headers, now), show) or self.gate.snapshot
        body = body_of(self._endpoint, reply, assemble=self._codec.assemble, now=now, show=show)
        flight.usage = self._codec.usage(body)
        answer = self._codec.decode(body)
        if flight.usage is None:
            flight.usage = _estimated(flight.plan, answer)
        limited = None if answer.calls else quota_sentence(self._endpoint, answer.text)
        if limited is not None:
            raise limited
        if _cut_without_a_word(question, answer, flight.usage):
            answer = replace(answer, stop=Stop.LENGTH)
        if _ran_into_the_window(question, answer, flight.usage):
            raise ContextOverflow(f"{self._endpoint.provider} had no room left in its window for the whole answer")
        return replace(answer, usage=flight.usage, model=answer.model or question.model)

    def _plan(self, question: Question, payload_bytes: int, purpose: Purpose) -> RequestPlan:
        usage = Usage(input=estimate_tokens(payload_bytes), output=question.max_output_tokens or ASSUMED_OUTPUT_TOKENS)
        return RequestPlan(
            provider=self._endpoint.provider,
            model=question.model,
            purpose=purpose,
            estimated_input_tokens=usage.input,
            max_output_tokens=usage.output,
            estimated_cost=cost_of(replace(usage, written=usage.input), self._prices),
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
        await self.gate.keep()

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

    async def _manner(self, question: Question) -> Manner:
        """Return how this model was asked when it answered last, also before a restart."""
        if question.model not in self._manners:
            ladder = self._wiring.ladder
            kept = None if ladder is None else await ladder.load(self._ladder_key(question.model))
            self._manners.setdefault(question.model, manner_of_words(self._codec, kept or ""))
        return self._manners[question.model]

    async def _remember(self, question: Question, manner: Manner) -> None:
        """Keep what the server took, once it has answered: a refusal alone could have had another cause."""
        if manner == self._manners[question.model]:
            return
        self._manners[question.model] = manner
        if self._wiring.ladder is not None:
            await self._wiring.ladder.store(self._ladder_key(question.model), manner_in_words(manner))

    def _ladder_key(self, model: str) -> str:
        return f"{self._endpoint.provider} {self._endpoint.base_url} {model}"


def _ran_into_the_window(question: Question, answer: Answer, usage: Usage) -> bool:
    """An answer cut well before the limit that was sent had no room in the window: a smaller input helps."""
    limit = question.max_output_tokens
    cut = answer.stop is Stop.LENGTH and usage.measured and usage.output > 0
    return limit is not None and cut and usage.output < CUT_EARLY * limit


def _cut_without_a_word(question: Question, answer: Answer, usage: Usage) -> bool:
    """An answer of exactly the tokens that it might have was cut; llama-server says `completed` of every Response."""
    whole = answer.stop is Stop.COMPLETE and usage.measured
    return whole and question.max_output_tokens == usage.output


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _shown(snapshot: LimitSnapshot | None, show: Show) -> LimitSnapshot | None:
    """The names of limits are the server's words, and stand in messages and in the ledger."""
    if snapshot is None:
        return None
    windows = tuple(replace(window, name=show(window.name)) for window in snapshot.windows)
    return replace(snapshot, windows=windows, reached=snapshot.reached and show(snapshot.reached))


def _estimated(plan: RequestPlan, answer: Answer) -> Usage:
    """Estimate the usage that a server did not report, so that its requests count too."""
    said = answer.text + "".join(call.arguments for call in answer.calls)
    output = estimate_tokens(len(said.encode("utf-8", "replace")))
    return Usage(input=plan.estimated_input_tokens, output=output, measured=False)
