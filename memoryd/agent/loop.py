"""Ask a model until it finishes, with its hands tied: seven tools, one folder, caps on everything.

The conversation is kept here and replayed whole with each request; the server is asked to remember nothing. A
cancelled run ends at once: what it leaves behind is a staging folder that nobody publishes.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from memoryd.agent import tools
from memoryd.agent.caps import AgentCaps, Tally, total
from memoryd.agent.conversation import Conversation
from memoryd.agent.files import Folder
from memoryd.agent.hands import Deed, perform, refuse
from memoryd.agent.refusals import MISSES, RefusalKind, RefusedError
from memoryd.clock import Clock
from memoryd.errors import ContextOverflow, RefusedReply, ResultRejected
from memoryd.llm.question import Answer, Question, Stop, ToolCall, ToolResult, Usage
from memoryd.text import byte_length, estimate_tokens, first_line

MAX_CALLS = 32
MAX_REPLY_BYTES = 250_000  # of tool outputs for one reply: three whole reads
MAX_OVERFLOWS = 2
MAX_OUTPUT_TOKENS = 32_768
"""Of one reply, thoughts included: a handbook of 100 KB written in one call. Sent, so that a reservation bounds it."""
LEAST_OUTPUT_TOKENS = 2_048
LEAST_LIMIT_TOKENS = 16  # servers refuse smaller ones
MAX_COMPLAINTS = 100
COMPLAINT_CHARS = 500
SHRINK_TO = 0.6  # of the limit: dropping in large steps lets the server's prompt cache hold in between

ACCEPTED = "accepted"
REJECTED = "rejected"
NO_CALL = "No tool was called. Work with the tools only, and call finish when the memory folder is as it should be."
CUT_OFF = "Your reply was cut at the output limit. Make smaller calls: edit_file passages, or one file at a time."

Ask: TypeAlias = Callable[[Question], Awaitable[Answer]]
Judge: TypeAlias = Callable[[str], Awaitable[tuple[str, ...]]]
"""Takes the model's summary of its work, returns complaints; none means accepted."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What the agent is to do, and who does it; `effort` None leaves it to the provider."""

    model: str
    effort: str | None
    instructions: str
    opening: str


@dataclass(frozen=True, slots=True)
class AgentRun:
    """An accepted run: the model's own summary, requests sent, tokens used, refused calls by kind."""

    summary: str
    requests: int
    usage: Usage
    refusals: Counter[str]


async def run_agent(brief: Brief, *, ask: Ask, root: Path, finish: Judge, caps: AgentCaps, clock: Clock) -> AgentRun:
    """Run the agent in `root` until `finish` accepts its work.

    Raises ResultRejected, its complaints naming the cap or what acceptance still objected to; RefusedReply when the
    model declines; StorageError when the folder cannot be used. Errors of `ask` and `finish` pass.
    """
    folder = await asyncio.to_thread(Folder.at, root)
    run = _Run(brief, ask, folder, finish, caps, clock, started_at=clock.monotonic())
    summary = None
    while summary is None:
        summary = await run.take_turn()
    tally = run.tally
    return AgentRun(summary, tally.requests, tally.usage, tally.refusals)


@dataclass(slots=True)
class _Run:
    brief: Brief
    ask: Ask
    folder: Folder
    finish: Judge
    caps: AgentCaps
    clock: Clock
    started_at: float
    tally: Tally = field(default_factory=Tally)
    seen: set[bytes] = field(default_factory=set)
    complaints: tuple[str, ...] = ()
    conversation: Conversation = field(init=False)
    context_limit: int = field(init=False)
    output_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        fixed = byte_length(self.brief.instructions) + sum(byte_length(str(spec)) for spec in tools.tool_specs())
        self.conversation = Conversation(self.brief.opening, fixed_bytes=fixed)
        self.context_limit = self.caps.max_context_bytes
        # A quarter of what a conversation may hold, at about three bytes a token.
        self.output_tokens = max(LEAST_OUTPUT_TOKENS, min(MAX_OUTPUT_TOKENS, self.context_limit // 12))

    async def take_turn(self) -> str | None:
        """Ask once and carry out what was answered; return the summary when the result is accepted."""
        answer = await self._ask()
        self.tally.usage = total(self.tally.usage, answer.usage)
        self.conversation.add_answer(answer)
        if answer.stop is Stop.REFUSAL:
            raise RefusedReply(
                f"the model declined to consolidate: {first_line(answer.text, 200) or 'no reason given'}"
            )
        if not answer.calls:
            self.tally.count_reply(valid=False, progress=False)
            self.conversation.add_reminder(CUT_OFF if answer.stop is Stop.LENGTH else NO_CALL)
            return None
        return await self._carry_out(answer.calls)

    async def _ask(self) -> Answer:
        overflows = 0
        while True:
            self._make_room()
            self._stop_at_a_cap()
            self.tally.requests += 1
            try:
                return await self.ask(self._question())
            except ContextOverflow:
                overflows += 1
                if overflows > MAX_OVERFLOWS or not self._take_less(keep_newest=overflows == 1):
                    raise

    def _question(self) -> Question:
        return Question(
            model=self.brief.model,
            effort=self.brief.effort,
            instructions=self.brief.instructions,
            turns=self.conversation.turns,
            tools=tools.tool_specs(),
            max_output_tokens=min(self.output_tokens, self._tokens_left()),
        )

    def _tokens_left(self) -> int:
        """Return what of the run's tokens the next answer may have, so that it cannot pass their cap either."""
        used = self.tally.usage.input + self.tally.usage.output
        return max(LEAST_LIMIT_TOKENS, self.caps.max_tokens - used - self._next_tokens())

    def _next_tokens(self) -> int:
        return estimate_tokens(self.conversation.size, 4.0)

    def _make_room(self) -> None:
        limit = self.context_limit
        if self.conversation.size > limit and self.conversation.shrink(int(limit * SHRINK_TO)):
            self.seen.clear()  # what was dropped may be read again, and is new then

    def _take_less(self, *, keep_newest: bool) -> bool:
        """Make the next request smaller after an overflow, in the room for its answer too; False when it cannot be."""
        fewer = max(LEAST_OUTPUT_TOKENS, self.output_tokens // 2)
        had, self.output_tokens = self.output_tokens, fewer
        return self._drop_half(keep_newest=keep_newest) or fewer < had

    def _drop_half(self, *, keep_newest: bool) -> bool:
        """Drop outputs after an overflow, the newest only when nothing else is left; remember what was too much."""
        size = self.conversation.size
        self.context_limit = min(self.context_limit, size - 1)
        dropped = self.conversation.shrink(size // 2, keep_newest=keep_newest)
        if not dropped:
            dropped = self.conversation.shrink(size // 2, keep_newest=False)
        self.seen.clear()
        return dropped > 0

    def _stop_at_a_cap(self) -> None:
        reason = self.tally.reason_to_stop(
            self.caps,
            elapsed_seconds=self.clock.monotonic() - self.started_at,
            next_tokens=self._next_tokens(),
        )
        if reason is not None:
            refusals = ", ".join(f"{count} {kind}" for kind, count in sorted(self.tally.refusals.items()))
            complaint = f"the agent did not finish: {reason}" + (f"; refused calls: {refusals}" if refusals else "")
            raise ResultRejected(
                complaint,
                remedy="the memory stands as it was; a stronger model or higher caps in [consolidate] may help",
                complaints=(complaint, *self.complaints),
            )

    async def _carry_out(self, calls: tuple[ToolCall, ...]) -> str | None:
        results: list[ToolResult] = []
        valid = progress = False
        answered_bytes = 0
        for number, call in enumerate(calls):
            request = _parse(call, number, answered_bytes)
            deed = request if isinstance(request, Deed) else await self._perform(request)
            if isinstance(request, tools.Finish) and deed.answer == ACCEPTED:
                return request.summary.encode("utf-8", "replace").decode()
            valid = self._note(deed) or valid
            progress = self._is_progress(request, deed) or progress
            answered_bytes += byte_length(deed.answer)
            results.append(ToolResult(call.call_id, deed.answer))
        self.tally.count_reply(valid=valid, progress=progress)
        self.conversation.add_results(tuple(results))
        return None

    async def _perform(self, request: tools.ToolRequest) -> Deed:
        if isinstance(request, tools.Finish):
            return await self._finish(request)
        return await asyncio.to_thread(perform, self.folder, request)

    async def _finish(self, request: tools.Finish) -> Deed:
        complaints = await self.finish(request.summary)
        if not complaints:
            return Deed(ACCEPTED)
        self.tally.rejections += 1
        self.complaints = complaints
        if self.tally.rejections > self.caps.max_repairs:
            first = first_line(complaints[0], COMPLAINT_CHARS)
            raise ResultRejected(
                f"the result was turned down {self.tally.rejections} times: {first}",
                remedy="the memory stands as it was; `memoryd jobs show` lists every complaint",
                complaints=complaints,
            )
        return Deed("\n".join((REJECTED, *_one_a_line(complaints))))

    def _note(self, deed: Deed) -> bool:
        """Count a refusal; return whether the call was a valid one."""
        if deed.refusal is None:
            return True
        self.tally.refusals[deed.refusal.value] += 1
        return deed.refusal in MISSES

    def _is_progress(self, request: tools.ToolRequest | Deed, deed: Deed) -> bool:
        if not isinstance(request, tools.Look) or deed.refusal is not None:
            return deed.changed
        digest = hashlib.sha256(f"{request!r}\n{deed.answer}".encode("utf-8", "surrogatepass")).digest()
        is_new = digest not in self.seen
        self.seen.add(digest)
        return is_new


def _parse(call: ToolCall, number: int, answered_bytes: int) -> tools.ToolRequest | Deed:
    """Turn a call into a request, or into the answer that refuses it."""
    try:
        if number >= MAX_CALLS:
            raise RefusedError(RefusalKind.TOO_MANY_CALLS, f"at most {MAX_CALLS} calls in one reply are carried out")
        request = tools.parse_call(call)
    except RefusedError as refused:
        return refuse(refused)
    if isinstance(request, tools.Look) and answered_bytes >= MAX_REPLY_BYTES:
        return refuse(
            RefusedError(RefusalKind.TOO_MANY_CALLS, "one reply has read too much: call this in the next one")
        )
    return request


def _one_a_line(complaints: tuple[str, ...]) -> list[str]:
    lines = [first_line(" ".join(complaint.split()), COMPLAINT_CHARS) for complaint in complaints[:MAX_COMPLAINTS]]
    if len(complaints) > MAX_COMPLAINTS:
        lines.append(f"and {len(complaints) - MAX_COMPLAINTS} more complaints of this kind")
    return lines
