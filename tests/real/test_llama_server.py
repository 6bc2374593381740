"""The contract of the codecs, and whole passes, over a real llama-server with a small real model (see llama.py)."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.config import ProviderKind
from memoryd.errors import ContextOverflow, TruncatedReply, Unreachable
from memoryd.llm.codec import Structure
from memoryd.llm.http import HttpReply
from memoryd.llm.providers import CODECS
from memoryd.llm.question import Stop
from memoryd.llm.stream import events_in
from memoryd.pipeline.extract import MAX_REQUESTS, read_reply
from tests.real.llama import (
    ALIAS,
    COLOUR,
    KINDS,
    MODEL,
    PROGRAM,
    QUESTIONS,
    UNUSABLE,
    WINDOW_TOKENS,
    LlamaServer,
    a_question,
    ask,
)
from tests.support.checks import assert_accepted, assert_formats
from tests.support.process import GLOBAL_KIND, STAGE1_KIND, Finished, Place, assert_no_traceback
from tests.support.sessions import a_rollout, install_recorded

pytestmark = pytest.mark.skipif(
    not PROGRAM or not MODEL, reason="LLAMA_SERVER and LLAMA_MODEL name no program and no model (tests/real/llama.py)"
)
CHAT = ProviderKind.OPENAI_CHAT
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
PASS_SECONDS = 900.0


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with LlamaServer(tmp_path_factory.mktemp("llama")) as server:
        yield server


@pytest.fixture(params=KINDS, ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest) -> ProviderKind:
    wanted: ProviderKind = request.param
    return wanted


@STREAMED
@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "too_long"])
async def test_every_question_is_answered_at_the_first_request(
    llama: LlamaServer, kind: ProviderKind, name: str, stream: bool
) -> None:
    """Also one with a schema, an effort, tools, and calls that it never made; the model's name is not looked at."""
    asked = await ask(llama, kind, QUESTIONS[name], stream=stream)
    assert asked.answer is not None, asked.error
    assert asked.outcomes == ["answered"]
    assert asked.answer.text
    assert asked.answer.model == ALIAS


@STREAMED
async def test_what_is_counted_is_what_the_server_reports(llama: LlamaServer, kind: ProviderKind, stream: bool) -> None:
    """I9, read here from the bytes that came, without our codecs."""
    asked = await ask(llama, kind, QUESTIONS["text"], stream=stream)
    usage = asked.book.results[0].usage
    assert usage is not None
    assert usage.measured
    assert (usage.input, usage.output, usage.cached) == reported(kind, asked.tap.exchanges[0][1])


def reported(kind: ProviderKind, reply: HttpReply) -> tuple[int, int, int]:
    """Return tokens of input, output and cache, the last word of a stream being right."""
    bodies = [json.loads(data) for data in events_in(reply.text)] or [json.loads(reply.text)]
    said: dict[str, Any] = {}
    for body in bodies:
        for carrier in (body, body.get("response"), body.get("message")):
            said |= (carrier or {}).get("usage") or {}
    if kind is ProviderKind.ANTHROPIC:
        cached = said["cache_read_input_tokens"]
        return said["input_tokens"] + cached, said["output_tokens"], cached
    words = ("prompt", "completion") if kind is CHAT else ("input", "output")
    cached = said[f"{words[0]}_tokens_details"]["cached_tokens"]
    return said[f"{words[0]}_tokens"], said[f"{words[1]}_tokens"], cached


@pytest.mark.parametrize(("kind", "rung"), [(kind, rung) for kind in KINDS for rung in CODECS[kind].ladder])
async def test_every_rung_of_the_ladder_is_taken_and_kept(
    llama: LlamaServer, kind: ProviderKind, rung: Structure
) -> None:
    """Of chat completions alone is a schema enforced, in both of its forms; the others ignore it without a word."""
    question = a_question("Name a colour.", schema=COLOUR, max_output_tokens=60)
    asked = await ask(llama, kind, question, stream=False, kept=f"{rung.value} limit={CODECS[kind].limit_names[0]}")
    assert (asked.outcomes, asked.structure) == (["answered"], rung.value)
    assert asked.answer is not None
    if kind is CHAT and rung is not Structure.PROMPT:
        named = json.loads(asked.answer.text)
        assert isinstance(named, dict)
        if rung is not Structure.JSON_OBJECT:
            assert named in ({"colour": "red"}, {"colour": "green"})


@STREAMED
async def test_a_schema_that_it_cannot_follow_is_given_up_rung_by_rung(llama: LlamaServer, stream: bool) -> None:
    asked = await ask(llama, CHAT, a_question(schema=UNUSABLE), stream=stream)
    assert asked.outcomes == ["structure_unsupported", "structure_unsupported", "answered"]
    assert asked.structure == Structure.JSON_OBJECT.value


@STREAMED
async def test_too_long_an_input_is_an_overflow_that_costs_nothing(
    llama: LlamaServer, kind: ProviderKind, stream: bool
) -> None:
    asked = await ask(llama, kind, QUESTIONS["too_long"], stream=stream)
    assert isinstance(asked.error, ContextOverflow)
    (result,) = asked.book.results
    assert result.usage is not None
    assert (result.usage.input, result.usage.output) == (0, 0)


@STREAMED
async def test_an_answer_cut_at_its_limit_is_truncated(llama: LlamaServer, kind: ProviderKind, stream: bool) -> None:
    """Also where the server calls it completed, as it does with every Response."""
    asked = await ask(llama, kind, QUESTIONS["session"], stream=stream)
    assert asked.answer is not None
    assert asked.answer.stop is Stop.LENGTH
    with pytest.raises(TruncatedReply):
        read_reply(asked.answer)


@STREAMED
async def test_a_server_that_dies_in_mid_answer_was_not_reached(
    kind: ProviderKind, stream: bool, tmp_path: Path
) -> None:
    with LlamaServer(tmp_path) as server:
        task = asyncio.ensure_future(
            ask(server, kind, a_question("Tell a tale.", max_output_tokens=3_000), stream=stream)
        )
        await asyncio.to_thread(server.wait_until_answering)
        server.kill()
        asked = await task
    assert isinstance(asked.error, Unreachable)
    assert asked.outcomes == ["unreachable"]


# Whole passes. Whatever the model says, the house stands.


def configure(place: Place, server: LlamaServer, kind: ProviderKind, **changes: object) -> None:
    """Let the server be the provider of both stages, with answers as short and runs as few as can be."""
    given: dict[str, Any] = {
        "providers__scripted__stream": True,
        "providers__scripted__timeout": "600s",
        "providers__scripted__context_window": WINDOW_TOKENS,
        "providers__scripted__max_output_tokens": 1_024,
        "consolidate__max_requests": 2,
        "ledger__retry_base": "1h",
        "extract__concurrency": 1,
        "limits__backfill": "all",
    }
    place.configure(base_url=server.base_url, kind=kind.value, key=None, **(given | changes))


def sync(place: Place) -> Finished:
    with place.start(*place.words("sync", "--now", "--json")) as process:
        code = process.wait(PASS_SECONDS)
        assert_no_traceback(process.output)
        return Finished(code, process.stdout, process.output)


def assert_nothing_hangs(place: Place) -> None:
    """Every job has ended or waits with a reason; every request was settled; what is published is right."""
    assert place.query("SELECT kind, job_key FROM jobs WHERE status = 'running'") == []
    left = place.query("SELECT status, last_error, wait_reason, retry_at FROM jobs WHERE status <> 'done'")
    assert all((error or reason) and retry_at for _, error, reason, retry_at in left), left
    assert place.query("SELECT count(*) FROM requests WHERE outcome IS NULL OR outcome = 'unknown'") == [(0,)]
    assert place.query("SELECT count(*) FROM publications WHERE state <> 'published'") == [(0,)]
    if (place.memories / "MEMORY.md").exists():
        assert_formats(place, sessions=len(list((place.memories / "rollout_summaries").iterdir())))


def test_a_whole_pass_over_recorded_sessions_ends_whatever_the_model_says(
    llama: LlamaServer, kind: ProviderKind, place: Place
) -> None:
    """With a window of 4,096 tokens, most of which the instructions fill: overflows, cuts and nonsense."""
    install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.144.0"])
    configure(place, llama, kind)
    done = sync(place)
    assert done.code in (0, 1, 3), done
    assert_nothing_hangs(place)
    most = place.query("SELECT max(count) FROM (SELECT count(*) AS count FROM requests GROUP BY attempt_id)")[0][0]
    assert 1 <= most <= MAX_REQUESTS


def test_evidence_shrinks_within_the_attempt_until_it_fits(llama: LlamaServer, place: Place) -> None:
    """Nothing is known of the window here, and the person said more than it holds."""
    a_rollout(place.codex, now=time.time(), turns=[f"Rule {n}: {'always test it well ' * 200}" for n in range(12)])
    configure(place, llama, CHAT, providers__scripted__context_window=100_000)
    assert sync(place).code in (0, 1, 3)
    requests = place.query("SELECT outcome, estimated_tokens FROM requests ORDER BY id")
    sizes = [size for outcome, size in requests if outcome == "context_overflow"]
    assert sizes
    assert sizes == sorted(sizes, reverse=True)
    assert len(requests) <= MAX_REQUESTS
    assert place.query("SELECT count(*) FROM attempts WHERE kind = ?", STAGE1_KIND) == [(1,)]


def test_a_model_that_calls_no_tool_ends_at_a_cap_and_touches_no_memory(
    kind: ProviderKind, place: Place, tmp_path: Path
) -> None:
    """What the offline writer has published stays to the byte; the cap that ended the run is named."""
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=["Never call the first thing a widget again."])
    place.configure(limits__backfill="all")
    assert sync(place).code == 0
    before, head = place.artefacts(), assert_accepted(place, sessions=1)
    a_rollout(place.codex, now=time.time(), idle_hours=7, turns=["Never call the second thing a gadget again."])
    with LlamaServer(tmp_path, window_tokens=16_384) as server:
        window = {"providers__scripted__context_window": 16_384}
        configure(place, server, kind, providers__offline__kind="offline", extract__provider="offline", **window)
        done = sync(place)
    assert done.code == 1, done
    assert_nothing_hangs(place)
    assert (place.artefacts(), place.git("rev-parse", "HEAD")) == (before, head)
    (error,) = place.query("SELECT last_error FROM jobs WHERE kind = ?", GLOBAL_KIND)[0]
    assert "all 2 requests of a run (max_requests) were used" in error
    assert place.query("SELECT outcome FROM requests") == [("answered",), ("answered",)]


def test_a_pass_whose_server_dies_in_mid_answer_spends_no_attempt(place: Place, tmp_path: Path) -> None:
    a_rollout(place.codex, now=time.time(), turns=["Never call the first thing a widget again."])
    with LlamaServer(tmp_path, window_tokens=16_384) as server:
        configure(place, server, CHAT, providers__scripted__context_window=16_384)
        with place.start(*place.words("sync", "--now", "--json")) as process:
            server.wait_until_answering()
            server.kill()
            assert process.wait(PASS_SECONDS) == 3, process.output
    job = "SELECT status, wait_reason, retry_remaining FROM jobs WHERE kind = ?"
    assert place.query(job, STAGE1_KIND) == [("pending", "provider_unreachable", 3)]
    assert place.query("SELECT outcome FROM requests") == [("unreachable",)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, measured=False)
