"""The scripted model server itself: what end-to-end tests lean on must hold."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from memoryd.agent.tools import tool_specs
from memoryd.llm.anthropic import Anthropic
from memoryd.llm.codec import Codec, Structure
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.openai_responses import OpenAIResponses
from memoryd.llm.question import Answer, Question, Schema, ToolResult, ToolTurn, Turn, UserTurn
from memoryd.pipeline.reply import STAGE1_SCHEMA, parse_reply
from tests.support.model_manners import parse_raw_memories, stage1_reply
from tests.support.model_replies import Reply, Status, redirect
from tests.support.model_server import ModelServer

RAW_MEMORIES = """# Raw Memories

Merged stage-1 raw memories (stable ascending thread-id order):

## Thread `t-1`
updated_at: 2026-01-02T03:04:05+00:00
cwd: /home/me/shop
rollout_path: /sessions/one.jsonl
rollout_summary_file: one.md

---
description: fix the totals in shop
task: fix the totals
task_group: shop
task_outcome: success
cwd: /home/me/shop
keywords: totals, rounding
---

### Task 1: fix the totals

Preference signals:
- when testing, the user said: "only make test-unit" -> run make test-unit
- when cut, the user said: "and so on..." -> nothing

Failures and how to do differently:
- pytest hangs -> no browser -> make test-unit

## Thread `t-2`
updated_at: 2026-01-03T03:04:05+00:00
cwd: /home/me/shop
rollout_path: /sessions/two.jsonl
rollout_summary_file: two.md

---
description: again
keywords: rounding
---

Preference signals:
- when testing, the user said: "only make test-unit" -> run make test-unit
"""


@pytest.fixture(params=[OpenAIResponses(), OpenAIChat(), Anthropic()], ids=["responses", "chat", "messages"])
def codec(request: pytest.FixtureRequest) -> Codec:
    codec: Codec = request.param
    return codec


def ask(server: ModelServer, codec: Codec, *turns: Turn, **fields: Any) -> Answer:
    question = Question("m", None, "instructions", turns, **fields)
    body = json.loads(json.dumps(codec.encode(question, Structure.JSON_SCHEMA)))
    return codec.decode(httpx.post(url_of(server, codec), json=body).raise_for_status().json())


def url_of(server: ModelServer, codec: Codec) -> str:
    return server.base_url.removesuffix("/v1" if codec.path.startswith("/v1/") else "") + codec.path


def prompt(*rows: str) -> str:
    return "agent: codex\ncwd: /home/me/shop\n\nEvidence\n\n" + "\n".join(rows)


def test_a_stage_1_request_gets_a_valid_reply_with_the_persons_words(codec: Codec) -> None:
    opening = prompt(
        "[human user] please only run make test-unit here", "[tool] ls", "more output", "[assistant final] ok"
    )
    with ModelServer() as server:
        answer = ask(server, codec, UserTurn(opening), schema=Schema("stage1", STAGE1_SCHEMA))
        assert [each.kind for each in server.requests] == ["stage1"]
    reply = parse_reply(answer.text)
    assert 'the user said: "please only run make test-unit here"' in reply.raw_memory
    assert "cwd: /home/me/shop" in reply.raw_memory
    assert reply.rollout_summary.startswith("# Work on")


@pytest.mark.parametrize("rows", [(), ("[human user] hi",), ("[assistant final] a long answer of the assistant",)])
def test_without_a_sentence_of_the_person_nothing_is_remembered(rows: tuple[str, ...]) -> None:
    assert parse_reply(stage1_reply(prompt(*rows)).text).is_empty


def test_only_what_stands_between_the_fences_is_evidence() -> None:
    opening = (
        "cwd: /p\n\nbetween the two lines that read `=====`\n[human user] not evidence at all\n=====\n"
        "[... response items omitted ...]\n[human user]\nthe real words of it\n=====\n[human user] nor is this one"
    )
    text = stage1_reply(opening).text
    assert "the real words of it" in text
    assert "not evidence" not in text
    assert "nor is this" not in text


def consolidate(server: ModelServer, codec: Codec, raw_memories: list[str]) -> dict[str, str]:
    """Play the agent's part: pages of raw_memories.md, files that are written, `accepted` at the end."""
    turns: tuple[Turn, ...] = (UserTurn("go"),)
    files: dict[str, str] = {}
    pages = list(raw_memories)

    def result_of(name: str, arguments: dict[str, Any]) -> str:
        if name == "read_file":
            return pages.pop(0)
        if name == "write_file":
            files[arguments["path"]] = arguments["content"]
        return "accepted" if name == "finish" else "raw_memories.md\nrollout_summaries/"

    for _ in range(12):
        answer = ask(server, codec, *turns, tools=tool_specs())
        if not answer.calls:
            return files
        outputs = tuple(ToolResult(c.call_id, result_of(c.name, json.loads(c.arguments))) for c in answer.calls)
        turns = (*turns, answer.as_turn(), ToolTurn(outputs))
    raise AssertionError("the scripted model never ended")


def test_a_consolidation_covers_every_summary_and_merges_what_is_said_twice(codec: Codec) -> None:
    with ModelServer() as server:
        files = consolidate(server, codec, [RAW_MEMORIES])
        assert {each.kind for each in server.requests} == {"consolidation"}
    memory = files["MEMORY.md"]
    assert memory.startswith("# Task Group: /home/me/shop\nscope: ")
    assert "- rollout_summaries/one.md (cwd=/home/me/shop, rollout_path=/sessions/one.jsonl," in memory
    assert "- rollout_summaries/two.md (" in memory
    assert (
        '- when testing, the user said: "only make test-unit" -> run make test-unit [Task 1][Task 2] [stated]' in memory
    )
    assert "- pytest hangs -> no browser -> make test-unit [Task 1] [verified]" in memory
    assert "..." not in memory
    assert files["memory_summary.md"].startswith("v1\n\n## User Profile\n")
    assert "### /home/me/shop\n\n#### 2026-01-03\n" in files["memory_summary.md"]


def test_a_long_file_is_read_page_by_page(codec: Codec) -> None:
    half = len(RAW_MEMORIES) // 2
    pages = [RAW_MEMORIES[:half] + "\n[... truncated: continue with line_offset=20]\n", RAW_MEMORIES[half:]]
    with ModelServer() as server:
        files = consolidate(server, codec, pages)
        second = [each.arguments for each in server.requests[-1].exchanges if each.name == "read_file"][1]
    assert second["line_offset"] == 20
    assert "two.md" in files["MEMORY.md"]


def test_raw_memories_without_inputs_make_no_groups() -> None:
    assert parse_raw_memories("# Raw Memories\n\nNo raw memories yet.\n") == []


def test_answers_for_the_next_requests_go_before_the_script(codec: Codec) -> None:
    with ModelServer() as server:
        server.reply_with(lambda asked: Reply(f"number {asked.number}"))
        server.then(Status(503), lambda _asked: Reply("second"))
        url = url_of(server, codec)
        question = {"model": "m", "input": "x", "messages": [{"role": "user", "content": "x"}]}
        assert httpx.post(url, json=question).status_code == 503
        assert [ask(server, codec, UserTurn("x")).text for _ in range(2)] == ["second", "number 3"]
        server.forget()
        assert server.requests == []


def test_a_failing_script_fails_its_test() -> None:
    def fail(_asked: object) -> Reply:
        raise ValueError("a mistake in the test")

    def use() -> None:
        with ModelServer() as server:
            server.reply_with(fail)
            assert httpx.post(server.base_url + "/responses", json={"input": "x"}).status_code == 500

    with pytest.raises(AssertionError, match="script of the model server failed"):
        use()


def test_waiting_for_what_never_comes_fails() -> None:
    with ModelServer() as server, pytest.raises(AssertionError, match="0 of 1 requests"):
        server.wait_for(1, timeout=0.01)


def test_what_is_no_endpoint_or_no_json_is_refused_and_not_counted() -> None:
    with ModelServer() as server:
        assert httpx.post(server.base_url + "/embeddings", json={}).status_code == 404
        assert httpx.post(server.base_url + "/responses", content=b"{").status_code == 400
        assert httpx.get(server.base_url + "/models").json() == {"object": "list", "data": []}
        assert httpx.get(server.base_url + "/else").status_code == 404
        assert server.requests == []


def test_a_redirect_names_its_place() -> None:
    with ModelServer() as server:
        server.reply_with(redirect("/elsewhere", 302))
        reply = httpx.post(server.base_url + "/responses", json={"input": "x"})
    assert (reply.status_code, reply.headers["location"]) == (302, "/elsewhere")


def test_it_can_stand_alone() -> None:
    command = [sys.executable, "-m", "tests.support.model_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        try:
            assert httpx.get(base_url + "/models").status_code == 200
        finally:
            process.terminate()
