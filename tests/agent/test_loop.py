"""A whole run with a scripted model: calls in, answers out, every cap, repairs, dropped outputs, cancellation."""

import asyncio
from pathlib import Path

import pytest

from memoryd.agent.caps import AgentCaps
from memoryd.agent.conversation import DROPPED
from memoryd.agent.loop import CUT_OFF, MAX_CALLS, MAX_REPLY_BYTES, NO_CALL
from memoryd.agent.tools import tool_specs
from memoryd.errors import ContextOverflow, RefusedReply, ResultRejected, StorageError, Unreachable
from memoryd.llm.question import Answer, ModelTurn, Question, Stop, ToolTurn, Usage, UserTurn
from tests.agent.factories import (
    Judge,
    ScriptedModel,
    a_call,
    a_folder,
    an_answer,
    everything_in,
    finish,
    read,
    run,
    write,
)
from tests.support.clock import FakeClock

LIST = a_call("list_files", {"path": ""})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return a_folder(tmp_path)


async def test_a_run_reads_writes_and_is_accepted(root: Path) -> None:
    model = ScriptedModel(
        [
            an_answer(LIST, read("raw_memories.md")),
            an_answer(write("MEMORY.md", "# Task Group: two\n"), write("memory_summary.md", "v1\n")),
            an_answer(finish("two files written")),
        ]
    )
    judge = Judge()
    done = await run(root, model, judge=judge)
    assert (done.summary, done.requests, done.refusals) == ("two files written", 3, {})
    assert done.usage == Usage(input=30, output=15, cached=6, reasoning=3)
    assert judge.summaries == ["two files written"]
    assert (root / "memory_summary.md").read_text() == "v1\n"


async def test_a_question_holds_brief_tools_and_the_whole_conversation(root: Path) -> None:
    listing, reading = an_answer(LIST, text="let me look"), read("MEMORY.md")
    model = ScriptedModel([listing, an_answer(reading), an_answer(finish())])
    await run(root, model)
    first, _, last = model.questions
    assert (first.model, first.effort, first.instructions) == ("m", "medium", "keep the memory")
    assert first.turns == (UserTurn("begin"),)
    assert first.tools == tool_specs()
    assert first.schema is None
    assert [type(turn) for turn in last.turns] == [UserTurn, ModelTurn, ToolTurn, ModelTurn, ToolTurn]
    assert last.turns[1] == listing.as_turn()
    assert [result.call_id for result in model.results()] == [LIST.call_id, reading.call_id]


async def test_calls_of_one_reply_are_carried_out_in_their_order(root: Path) -> None:
    edit = a_call("edit_file", {"path": "MEMORY.md", "old": "b", "new": "c"})
    model = ScriptedModel(
        [an_answer(read("MEMORY.md"), write("MEMORY.md", "a b"), edit, read("MEMORY.md")), an_answer(finish())]
    )
    await run(root, model)
    assert model.outputs() == [
        "# Task Group: one\nscope: all",
        "written: MEMORY.md, 3 bytes",
        "edited: MEMORY.md, 3 bytes",
        "a c",
    ]


async def test_an_accepted_finish_ends_the_run_whatever_follows_it(root: Path) -> None:
    model = ScriptedModel([an_answer(write("MEMORY.md", "x"), finish("enough"), write("MEMORY.md", "too late"))])
    assert (await run(root, model)).summary == "enough"
    assert (root / "MEMORY.md").read_text() == "x"


async def test_every_wrong_call_is_answered_with_an_error_and_counted_by_kind(root: Path) -> None:
    before = everything_in(root)
    model = ScriptedModel(
        [
            an_answer(
                a_call("shell", {"command": "ls"}),
                a_call("read_file", "{"),
                a_call("read_file", {"path": "MEMORY.md", "why": "x"}),
                write("../escaped", "x"),
                write("/tmp/escaped", "x"),
                write(".git/hooks/post-commit", "x"),
                write("rollout_summaries/x.md", "x"),
                read("none.md"),
                LIST,
            ),
            an_answer(finish()),
        ]
    )
    done = await run(root, model)
    assert [output.startswith("error: ") for output in model.outputs()] == [True] * 8 + [False]
    assert done.refusals == {
        "unknown_tool": 1,
        "bad_arguments": 2,
        "bad_path": 2,
        "hidden": 1,
        "not_writable": 1,
        "not_found": 1,
    }
    assert everything_in(root) == before


async def test_text_without_a_call_gets_a_reminder(root: Path) -> None:
    model = ScriptedModel([an_answer(text="I am done."), an_answer(finish())])
    await run(root, model)
    assert model.questions[1].turns == (UserTurn("begin"), ModelTurn("I am done."), UserTurn(NO_CALL))


async def test_a_reply_cut_at_the_output_limit_is_told_to_make_smaller_calls(root: Path) -> None:
    model = ScriptedModel([an_answer(text="so long", stop=Stop.LENGTH), an_answer(finish())])
    await run(root, model)
    assert model.questions[1].turns[-1] == UserTurn(CUT_OFF)


async def test_a_model_that_declines_is_not_asked_again(root: Path) -> None:
    model = ScriptedModel([an_answer(text="I cannot help with that", stop=Stop.REFUSAL)])
    with pytest.raises(RefusedReply, match="I cannot help"):
        await run(root, model)
    assert len(model.questions) == 1


async def test_complaints_go_back_to_the_model_one_a_line(root: Path) -> None:
    model = ScriptedModel([an_answer(finish("first")), an_answer(finish("second"))])
    judge = Judge([("MEMORY.md is\nempty", "no v1 line")])
    done = await run(root, model, judge=judge)
    assert model.outputs() == ["rejected\nMEMORY.md is empty\nno v1 line"]
    assert (done.summary, judge.summaries) == ("second", ["first", "second"])


async def test_very_many_complaints_are_bounded(root: Path) -> None:
    model = ScriptedModel([an_answer(finish())])
    await run(root, model, judge=Judge([tuple(f"number {n} " + "x" * 1000 for n in range(150))]))
    lines = model.outputs()[0].split("\n")
    assert len(lines) == 102
    assert all(len(line) <= 500 for line in lines)
    assert lines[-1] == "and 50 more complaints of this kind"


async def test_the_third_rejection_ends_the_run_with_its_complaints(root: Path) -> None:
    model = ScriptedModel([an_answer(finish())])
    with pytest.raises(ResultRejected, match="turned down 3 times: still wrong") as rejected:
        await run(root, model, judge=Judge([("wrong",), ("wrong",), ("still wrong", "and worse"), ("never asked",)]))
    assert rejected.value.complaints == ("still wrong", "and worse")
    assert len(model.questions) == 3


async def test_after_a_rejection_the_rest_of_the_reply_is_carried_out(root: Path) -> None:
    model = ScriptedModel([an_answer(finish(), write("MEMORY.md", "mended")), an_answer(finish())])
    await run(root, model, judge=Judge([("wrong",)]))
    assert model.outputs() == ["rejected\nwrong", "written: MEMORY.md, 6 bytes"]


async def test_sixty_requests_are_the_cap(root: Path) -> None:
    model = ScriptedModel([lambda question: an_answer(write("MEMORY.md", f"{len(question.turns)}"))])
    with pytest.raises(ResultRejected, match="all 60 requests of a run"):
        await run(root, model)
    assert len(model.questions) == 60


async def test_five_replies_in_a_row_without_a_valid_call_are_the_cap(root: Path) -> None:
    bad = [an_answer(text="hello"), an_answer(a_call("shell", "{}")), an_answer(write("../x", "")), an_answer()]
    model = ScriptedModel([*bad, an_answer(LIST), *bad, an_answer(a_call("read_file", "nonsense"))])
    with pytest.raises(ResultRejected, match="5 replies in a row held no valid call") as rejected:
        await run(root, model)
    assert len(model.questions) == 10
    assert rejected.value.message.endswith("; refused calls: 1 bad_arguments, 2 bad_path, 2 unknown_tool")
    assert rejected.value.complaints == (rejected.value.message,)


async def test_a_miss_is_a_valid_call_but_no_progress(root: Path) -> None:
    model = ScriptedModel([an_answer(read("none.md"))])
    with pytest.raises(ResultRejected, match="10 replies in a row changed nothing and read nothing new"):
        await run(root, model)
    assert len(model.questions) == 10


async def test_reading_the_same_again_is_not_new_but_after_a_change_it_is(root: Path) -> None:
    look = an_answer(read("MEMORY.md"))
    model = ScriptedModel([look] * 6 + [an_answer(write("MEMORY.md", "changed"))] + [look] * 11)
    with pytest.raises(ResultRejected, match="10 replies in a row changed nothing"):
        await run(root, model)
    assert len(model.questions) == 6 + 1 + 1 + 10


async def test_writing_what_stands_already_is_no_change(root: Path) -> None:
    same = (root / "MEMORY.md").read_text()
    model = ScriptedModel([an_answer(write("MEMORY.md", same))])
    with pytest.raises(ResultRejected, match="changed nothing"):
        await run(root, model)


async def test_wall_time_is_the_cap(root: Path, clock: FakeClock) -> None:
    async def ask(question: Question) -> Answer:
        await clock.advance(500)
        return an_answer(write("MEMORY.md", f"{len(question.turns)}"))

    with pytest.raises(ResultRejected, match="longer than 1200 seconds"):
        await run(root, ask, clock=clock)
    assert clock.monotonic() == 1500


async def test_tokens_are_the_cap_before_the_request_that_would_pass_it(root: Path) -> None:
    spend = Usage(input=900, output=50)
    model = ScriptedModel([lambda question: an_answer(write("MEMORY.md", f"{len(question.turns)}"), usage=spend)])
    with pytest.raises(ResultRejected, match=r"max_tokens, 2700 \(1900 used\)"):
        await run(root, model, caps=AgentCaps(max_tokens=2700))
    assert len(model.questions) == 2


async def test_an_answer_may_have_no_more_tokens_than_the_run_has_left(root: Path) -> None:
    """I9: its limit is sent, so that the last answer cannot pass the cap either."""
    spend = Usage(input=900, output=50)
    model = ScriptedModel([lambda question: an_answer(write("MEMORY.md", f"{len(question.turns)}"), usage=spend)])
    with pytest.raises(ResultRejected, match="max_tokens"):
        await run(root, model, caps=AgentCaps(max_tokens=5_000))
    limits = [question.max_output_tokens or 0 for question in model.questions]
    assert limits == sorted(limits, reverse=True)
    assert all(950 * number + limit < 5_000 for number, limit in enumerate(limits))


async def test_a_cap_after_a_rejection_names_what_was_still_wrong(root: Path) -> None:
    model = ScriptedModel([an_answer(finish())])
    with pytest.raises(ResultRejected) as rejected:
        await run(root, model, judge=Judge([("wrong",)] * 9), caps=AgentCaps(max_requests=1))
    assert rejected.value.complaints[1:] == ("wrong",)


async def test_old_outputs_are_left_out_when_the_conversation_grows(root: Path) -> None:
    for name in "abcdef":
        (root / f"{name}.md").write_text(name * 20_000)
    model = ScriptedModel([*(an_answer(read(f"{name}.md")) for name in "abcdef"), an_answer(finish())])
    await run(root, model, caps=AgentCaps(max_context_bytes=70_000))
    assert model.outputs() == [DROPPED] * 3 + [name * 20_000 for name in "def"]
    assert model.questions[-1].turns[0] == UserTurn("begin")


async def test_what_was_dropped_counts_as_new_when_it_is_read_again(root: Path) -> None:
    for name in "ab":
        (root / f"{name}.md").write_text(name * 20_000)
    model = ScriptedModel([an_answer(read("a.md")), an_answer(read("b.md"))] * 10 + [an_answer(finish())])
    done = await run(root, model, caps=AgentCaps(max_context_bytes=30_000))
    assert done.requests == 21


async def test_an_overflow_drops_outputs_and_asks_again(root: Path) -> None:
    (root / "big.md").write_text("x" * 50_000)
    model = ScriptedModel(
        [an_answer(read("big.md")), an_answer(LIST), ContextOverflow("too long"), an_answer(finish())]
    )
    done = await run(root, model)
    assert done.requests == 4
    assert model.outputs()[0] == DROPPED
    assert model.outputs()[1].startswith("MEMORY.md")


async def test_an_overflow_caused_by_the_newest_output_drops_that(root: Path) -> None:
    (root / "big.md").write_text("x" * 50_000)
    model = ScriptedModel([an_answer(read("big.md")), ContextOverflow("too long"), an_answer(finish())])
    await run(root, model)
    assert model.outputs() == [DROPPED]


async def test_the_third_overflow_in_a_row_passes(root: Path) -> None:
    for name in "abc":
        (root / f"{name}.md").write_text(name * 50_000)
    model = ScriptedModel(
        [an_answer(read("a.md")), an_answer(read("b.md")), an_answer(read("c.md")), ContextOverflow("too long")]
    )
    with pytest.raises(ContextOverflow):
        await run(root, model)
    assert len(model.questions) == 6
    assert model.outputs() == [DROPPED] * 3


async def test_an_overflow_with_nothing_to_drop_leaves_less_room_for_the_answer_and_then_passes(root: Path) -> None:
    """Many servers count that room as part of what is too long."""
    model = ScriptedModel([ContextOverflow("too long")])
    with pytest.raises(ContextOverflow):
        await run(root, model)
    rooms = [question.max_output_tokens for question in model.questions]
    assert rooms == [rooms[0], (rooms[0] or 0) // 2, (rooms[0] or 0) // 4]


async def test_a_window_too_small_for_two_overflows_passes_at_once(root: Path) -> None:
    model = ScriptedModel([ContextOverflow("too long")])
    with pytest.raises(ContextOverflow):
        await run(root, model, caps=AgentCaps(max_context_bytes=10_000))
    assert [question.max_output_tokens for question in model.questions] == [2_048]


async def test_overflows_count_as_requests(root: Path) -> None:
    (root / "big.md").write_text("x" * 50_000)
    model = ScriptedModel([an_answer(read("big.md")), ContextOverflow("too long")])
    with pytest.raises(ResultRejected, match="all 2 requests"):
        await run(root, model, caps=AgentCaps(max_requests=2))


async def test_errors_of_the_endpoint_pass(root: Path) -> None:
    with pytest.raises(Unreachable):
        await run(root, ScriptedModel([an_answer(LIST), Unreachable("no connection")]))


async def test_one_reply_carries_out_a_bounded_number_of_calls(root: Path) -> None:
    calls = [read("MEMORY.md") for _ in range(MAX_CALLS + 1)]
    model = ScriptedModel([an_answer(*calls), an_answer(finish())])
    done = await run(root, model)
    assert done.refusals == {"too_many_calls": 1}
    assert model.outputs()[-1] == "error: at most 32 calls in one reply are carried out"


async def test_one_reply_reads_a_bounded_number_of_bytes_but_may_still_write(root: Path) -> None:
    (root / "big.md").write_text("x" * 79_000)
    calls = [read("big.md") for _ in range(5)]
    model = ScriptedModel([an_answer(*calls, write("MEMORY.md", "x")), an_answer(finish())])
    await run(root, model)
    assert sum(len(output) for output in model.outputs()) < MAX_REPLY_BYTES + 80_000
    assert model.outputs()[-2].startswith("error: one reply has read too much")
    assert model.outputs()[-1] == "written: MEMORY.md, 1 bytes"


async def test_a_summary_that_is_no_text_is_mended(root: Path) -> None:
    done = await run(root, ScriptedModel([an_answer(a_call("finish", '{"summary": "a\\ud800b"}'))]))
    assert done.summary == "a?b"


async def test_a_cancelled_run_ends_at_once(root: Path) -> None:
    asked = asyncio.Event()

    async def ask(question: Question) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never woken")

    task = asyncio.create_task(run(root, ask))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_run_cancelled_while_it_is_judged_ends_at_once(root: Path) -> None:
    asked = asyncio.Event()

    async def judge(summary: str) -> tuple[str, ...]:
        asked.set()
        await asyncio.Event().wait()
        return ()

    task = asyncio.create_task(run(root, ScriptedModel([an_answer(finish())]), judge=judge))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_root_that_is_no_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="missing"):
        await run(tmp_path / "missing", ScriptedModel([an_answer(finish())]))
