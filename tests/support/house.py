"""A whole memoryd in a test's folder: settings, sessions, and an open house with a model of the test's own."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from memoryd import config
from memoryd.clock import Clock
from memoryd.config import Settings
from memoryd.daemon.house import open_house, passed
from memoryd.llm.question import Answer, Question, Stop, Usage
from memoryd.llm.spend import Purpose
from memoryd.pipeline.context import Client, Context, StageModel
from tests.support.twice import TwiceLedger

PATH_ONLY: Mapping[str, str] = {"PATH": config.environ()["PATH"]}


def settings_in(folder: Path, **overrides: object) -> Settings:
    """Settings of a home in `folder`, reading Codex sessions in folder/codex; keys are dotted with `__`."""
    given: dict[str, object] = {
        "sources.agents": ["codex"],
        "sources.roots": {"codex": [str(folder / "codex")]},
        "consolidate.debounce": "0s",
        "consolidate.min_interval": "0s",
    }
    given |= {key.replace("__", "."): value for key, value in overrides.items()}
    return config.load(folder / "home", environ={"HOME": str(folder), **PATH_ONLY}, overrides=given)


@asynccontextmanager
async def a_house(
    settings: Settings,
    clock: Clock,
    *,
    client: Client | None = None,
    reached: Callable[[str], None] = passed,
) -> AsyncIterator[Context]:
    """Open a house; with `client` both stages ask it instead of the offline writer. Whatever writes is run twice."""
    async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test", reached=reached) as opened:
        context = replace(opened, ledger=TwiceLedger(opened.ledger))
        if client is None:
            yield context
        else:
            model = StageModel("scripted", "model-1", None, client, None)
            yield replace(context, extract=model, consolidate=model)


class Answering:
    """A model that answers each question by calling a function, and keeps what it was asked."""

    def __init__(self, answer: Callable[[Question], Answer | str | Exception]) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    async def ask(self, question: Question, purpose: Purpose) -> Answer:
        self.asked.append(question)
        given = self._answer(question)
        if isinstance(given, Exception):
            raise given
        if isinstance(given, str):
            return Answer(given, (), (), Usage(input=1000, output=100), Stop.COMPLETE, question.model)
        return given
