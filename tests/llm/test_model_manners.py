"""The scripted model does the whole work by its default manners: its memories pass the real acceptance checks."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memoryd.agent.caps import AgentCaps
from memoryd.agent.loop import Brief, run_agent
from memoryd.ledger.outputs import SelectedOutput
from memoryd.llm.question import Answer, Question, Schema, UserTurn
from memoryd.pipeline import prompting
from memoryd.pipeline.reply import STAGE1_SCHEMA, Stage1Reply, parse_reply
from memoryd.pipeline.session_facts import SessionFacts
from memoryd.redact import Redactor
from memoryd.workspace.acceptance import judge
from memoryd.workspace.folder import Folder
from memoryd.workspace.materialise import materialise
from tests.llm.asking import PURPOSE, a_client, a_question
from tests.support.clock import FakeClock
from tests.support.model_manners import stage1_reply
from tests.support.model_server import ModelServer

WORDS = ("please run only the unit tests here", "never touch the generated folder", 'why does it say "oops ... []"?')
MAX_SUMMARY_BYTES = 40_000


def a_prompt(number: int, cwd: str | None) -> prompting.QuestionParts:
    facts = SessionFacts(
        thread_id=f"thread-{number:03}",
        agent="codex",
        cwd=cwd,
        git_branch="main",
        started_at=None,
        updated_at=1_700_000_000 + number,
    )
    rows = [f"[human user] session {number} asks: {words}" for words in WORDS]
    return prompting.stage1_question_parts(facts, "\n".join([*rows, "[tool] ls\nREADME.md", "[assistant final] done"]))


def an_output(number: int, cwd: str | None, reply: Stage1Reply) -> SelectedOutput:
    return SelectedOutput(
        thread_id=f"thread-{number:03}",
        updated_at=1_700_000_000 + 50_000 * number,
        raw_memory=reply.raw_memory,
        rollout_summary=reply.rollout_summary,
        rollout_slug=reply.rollout_slug,
        generated_at=1_700_000_000,
        usage_count=0,
        last_usage=None,
        selected_for_phase2=False,
        selected_for_phase2_source_updated_at=None,
        agent="codex",
        cwd=cwd,
        git_branch="main",
        rollout_path=f"/sessions/{number}.jsonl",
        stem=None,
        started_at=1_700_000_000,
    )


async def consolidate(work: Path, ask: Callable[[Question], Awaitable[Answer]], clock: FakeClock) -> list[str]:
    before = Folder.read(work)
    complaints: list[str] = []

    async def finish(_summary: str) -> tuple[str, ...]:
        verdict = judge(
            before=before,
            after=Folder.read(work),
            removed_threads=(),
            max_summary_bytes=MAX_SUMMARY_BYTES,
            redactor=Redactor(),
        )
        complaints.extend(verdict.complaints)
        return verdict.complaints

    caps = AgentCaps(max_requests=20, max_seconds=1_000, max_tokens=10_000_000)
    await run_agent(Brief("m", None, "Merge.", "Go."), ask=ask, root=work, finish=finish, caps=caps, clock=clock)
    return complaints


@pytest.mark.parametrize(("kind", "stream"), [("openai", True), ("openai-chat", False), ("anthropic", True)])
async def test_sessions_become_an_accepted_folder_and_a_second_run_finds_it_in_order(
    kind: str, stream: bool, tmp_path: Path, clock: FakeClock
) -> None:
    directories = [None, *(f"/home/me/project-{n}" for n in range(30))]
    cwds = [directories[number % len(directories)] for number in range(120)]
    outputs = [
        an_output(number, cwd, parse_reply(stage1_reply(a_prompt(number, cwd).opening).text))
        for number, cwd in enumerate(cwds)
    ]
    materialise(tmp_path, outputs)
    with ModelServer() as server:
        async with a_client(clock=clock, base_url=server.base_url, kind=kind, stream=stream, timeout="60s") as client:
            question = a_question(UserTurn(a_prompt(0, cwds[0]).opening), schema=Schema("stage1", STAGE1_SCHEMA))
            asked = parse_reply((await client.ask(question, PURPOSE)).text)
            complaints = [await consolidate(tmp_path, lambda each: client.ask(each, PURPOSE), clock) for _ in range(2)]
        read = [each for each in server.requests[-1].exchanges if each.name == "read_file"]
    assert complaints == [[], []]
    assert outputs[0].raw_memory == asked.raw_memory, "what is asked over the wire is what the function says"
    assert len(read) > 1, "one page would not have held it"
    memory = (tmp_path / "MEMORY.md").read_text()
    assert all(memory.count(f"thread_id=thread-{number:03}") == 1 for number in range(120))
    assert "session 7 asks: please run only the unit tests here" in memory
