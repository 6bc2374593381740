"""Ask a model until it finishes, with its hands tied: seven tools, one folder, caps on everything."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from memoryd.agent.caps import AgentCaps
from memoryd.clock import Clock
from memoryd.llm.question import Answer, Question, Usage

Ask = Callable[[Question], Awaitable[Answer]]
Finish = Callable[[str], Awaitable[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Brief:
    """What the agent is to do, and who does it: model, effort (None: the model's own), instructions, opening message."""

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


async def run_agent(brief: Brief, *, ask: Ask, root: Path, finish: Finish, caps: AgentCaps, clock: Clock) -> AgentRun:
    """Run the agent in `root` until `finish` accepts.

    Raises ResultRejected, its complaints naming the cap or what acceptance still objected to; errors of `ask` pass.
    """
    raise NotImplementedError
