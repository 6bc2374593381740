"""Set-up for the tests of the agent: a folder as a run finds it, and a model that answers from a script."""

import itertools
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from memoryd.agent.caps import AgentCaps
from memoryd.agent.loop import AgentRun, Brief, run_agent
from memoryd.clock import Clock
from memoryd.llm.question import Answer, JsonObject, Question, Stop, ToolCall, ToolResult, ToolTurn, Usage
from tests.support.clock import FakeClock

_ids = itertools.count(1)

Step: TypeAlias = Answer | Exception | Callable[[Question], Answer]


def a_folder(at: Path) -> Path:
    """A staged memory folder with one selected session and what must never be seen or touched beside it."""
    root = at / "work"
    (root / "rollout_summaries").mkdir(parents=True)
    (root / "skills" / "release").mkdir(parents=True)
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (root / "raw_memories.md").write_text("# Raw Memories\n\nrun `make test-unit` first\n")
    (root / "rollout_summaries" / "2026-one.md").write_text("thread_id: x\n\n# One\nMake it so\n")
    (root / "skills" / "release" / "SKILL.md").write_text("---\nname: release\n---\n")
    (root / "MEMORY.md").write_text("# Task Group: one\nscope: all\n")
    return root


def everything_in(root: Path) -> dict[str, bytes | str]:
    """All that lies below a folder, symlinks unfollowed, hidden names included."""
    found: dict[str, bytes | str] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder) / name
            key = str(path.relative_to(root))
            if path.is_symlink():
                found[key] = f"-> {path.readlink()}"
            elif path.is_file():
                found[key] = path.read_bytes()
            else:
                found[key] = "other"
    return found


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def a_call(name: str, arguments: JsonObject | str) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(f"call_{next(_ids)}", name, text)


def an_answer(
    *calls: ToolCall, text: str = "", stop: Stop | None = None, usage: Usage | None = None, raw: bool = True
) -> Answer:
    items: tuple[JsonObject, ...] = tuple({"type": "function_call", "call_id": call.call_id} for call in calls)
    return Answer(
        text=text,
        calls=calls,
        raw=items if raw else (),
        usage=usage or Usage(input=10, output=5, cached=2, reasoning=1),
        stop=stop or (Stop.TOOL_CALLS if calls else Stop.COMPLETE),
        model="scripted",
    )


def read(path: str, offset: int = 1, lines: int = 2000) -> ToolCall:
    return a_call("read_file", {"path": path, "line_offset": offset, "max_lines": lines})


def write(path: str, content: str) -> ToolCall:
    return a_call("write_file", {"path": path, "content": content})


def finish(summary: str = "done") -> ToolCall:
    return a_call("finish", {"summary": summary})


@dataclass
class ScriptedModel:
    """Answers with its steps in order, then with the last one for ever; keeps every question."""

    steps: Sequence[Step]
    questions: list[Question] = field(default_factory=list)

    async def __call__(self, question: Question) -> Answer:
        step = self.steps[min(len(self.questions), len(self.steps) - 1)]
        self.questions.append(question)
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Answer) else step(question)

    def results(self) -> list[ToolResult]:
        """The tool results that the last question replayed, oldest first."""
        turns = (turn for turn in self.questions[-1].turns if isinstance(turn, ToolTurn))
        return [result for turn in turns for result in turn.results]

    def outputs(self) -> list[str]:
        """The texts of `results`."""
        return [result.output for result in self.results()]


@dataclass
class Judge:
    """Complains as its verdicts say, in order, then accepts."""

    verdicts: Sequence[tuple[str, ...]] = ()
    summaries: list[str] = field(default_factory=list)

    async def __call__(self, summary: str) -> tuple[str, ...]:
        self.summaries.append(summary)
        number = len(self.summaries) - 1
        return self.verdicts[number] if number < len(self.verdicts) else ()


async def run(
    root: Path,
    ask: Callable[[Question], Awaitable[Answer]],
    *,
    judge: Callable[[str], Awaitable[tuple[str, ...]]] | None = None,
    caps: AgentCaps | None = None,
    clock: Clock | None = None,
) -> AgentRun:
    return await run_agent(
        Brief(model="m", effort="medium", instructions="keep the memory", opening="begin"),
        ask=ask,
        root=root,
        finish=judge or Judge(),
        caps=caps or AgentCaps(),
        clock=clock or FakeClock(),
    )
