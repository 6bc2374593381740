"""Factories of the room's tests: questions, clients on a fake transport, and a book that counts their spend."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from memoryd.clock import Clock
from memoryd.config import Prices, Provider, ProviderKind
from memoryd.llm.client import LadderMemory, ModelClient, Wiring
from memoryd.llm.providers import open_client
from memoryd.llm.question import Question, Schema, ToolSpec, Turn, UserTurn
from memoryd.llm.spend import Purpose, RequestPlan, RequestResult
from memoryd.redact import Redactor
from tests.support.wire import Wire

SCHEMA = Schema("stage1", {"type": "object", "properties": {}, "required": [], "additionalProperties": False})
TOOL = ToolSpec("list_files", "Name what lies in a folder.", {"type": "object", "properties": {}, "required": []})
PURPOSE = Purpose("memory_stage1", "a-thread", 7)


def a_question(
    *turns: Turn,
    model: str = "m-1",
    effort: str | None = None,
    schema: Schema | None = None,
    tools: tuple[ToolSpec, ...] = (),
    max_output_tokens: int | None = None,
) -> Question:
    return Question(
        model=model,
        effort=effort,
        instructions="Read the session.",
        turns=turns or (UserTurn("what did it teach?"),),
        schema=schema,
        tools=tools,
        max_output_tokens=max_output_tokens,
    )


@dataclass(slots=True)
class Book:
    """What was reserved and how it was settled; `on_reserve` and `on_settle` let a test interfere."""

    plans: list[RequestPlan] = field(default_factory=list)
    settled: dict[int, RequestResult] = field(default_factory=dict)
    on_reserve: Callable[[], Any] | None = None
    on_settle: Callable[[], Any] | None = None

    async def reserve(self, plan: RequestPlan) -> int:
        if self.on_reserve is not None:
            await self.on_reserve()
        self.plans.append(plan)
        return len(self.plans)

    async def settle(self, number: int, result: RequestResult) -> None:
        if self.on_settle is not None:
            await self.on_settle()
        assert number not in self.settled, "a request is settled once"
        self.settled[number] = result

    @property
    def results(self) -> list[RequestResult]:
        assert len(self.settled) == len(self.plans), "every reservation is settled"
        return [self.settled[number] for number in sorted(self.settled)]


def a_provider(base_url: str = "http://127.0.0.1:9/v1", kind: str = "openai", **fields: Any) -> Provider:
    return Provider(kind=ProviderKind(kind), base_url=base_url, **fields)


def a_client(
    *,
    clock: Clock,
    book: Book | None = None,
    respond: Callable[[httpx.Request], Any] | None = None,
    base_url: str = "http://127.0.0.1:9/v1",
    kind: str = "openai",
    key: str | None = "sk-local-abcdef",
    ladder: LadderMemory | None = None,
    prices: Prices | None = None,
    timeout: str = "30s",
    **fields: Any,
) -> ModelClient:
    """Open a client; with `respond` nothing is sent, and the function answers in place of a server."""
    book = book or Book()
    provider = a_provider(base_url, kind, timeout=timeout, **({"prices": prices} if prices else {}), **fields)
    client = open_client(
        "main",
        provider,
        api_key=lambda: key,
        wiring=Wiring(clock, Redactor(), book.reserve, book.settle, ladder=ladder),
        transport=Wire(respond) if respond else None,
    )
    assert client is not None
    return client


def a_response(text: str = "{}", *, usage: tuple[int, int] | None = (100, 20), headers: Any = None) -> httpx.Response:
    """Return a Responses reply."""
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    body: dict[str, Any] = {"status": "completed", "model": "m-1", "output": [message]}
    if usage is not None:
        body["usage"] = {"input_tokens": usage[0], "output_tokens": usage[1]}
    return httpx.Response(200, json=body, headers=headers)


def a_refusal(status: int, message: str = "no", headers: Any = None, **error: Any) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message, **error}}, headers=headers)


def sent_body(request: httpx.Request) -> dict[str, Any]:
    body = json.loads(request.content)
    assert isinstance(body, dict)
    return body


async def never() -> None:
    await asyncio.Event().wait()
