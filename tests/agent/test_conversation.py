"""What is replayed, and which outputs are left out when it grows."""

from memoryd.agent.conversation import DROPPED, Conversation
from memoryd.llm.question import ModelTurn, ToolResult, ToolTurn, UserTurn
from tests.agent.factories import a_call, an_answer


def a_conversation(*outputs: str) -> Conversation:
    conversation = Conversation("opening", fixed_bytes=100)
    for number, output in enumerate(outputs):
        conversation.add_answer(an_answer(a_call("list_files", {"path": ""})))
        conversation.add_results((ToolResult(f"c{number}", output),))
    return conversation


def outputs(conversation: Conversation) -> list[str]:
    return [result.output for turn in conversation.turns if isinstance(turn, ToolTurn) for result in turn.results]


def test_turns_are_replayed_in_order_with_the_raw_items() -> None:
    conversation = a_conversation("first")
    conversation.add_reminder("go on")
    opening, model, tool, reminder = conversation.turns
    assert opening == UserTurn("opening")
    assert isinstance(model, ModelTurn)
    assert model.raw
    assert tool == ToolTurn((ToolResult("c0", "first"),))
    assert reminder == UserTurn("go on")


def test_an_answer_without_any_content_leaves_no_turn() -> None:
    conversation = a_conversation()
    conversation.add_answer(an_answer())
    assert conversation.turns == (UserTurn("opening"),)


def test_the_size_counts_bytes_of_everything_that_is_sent() -> None:
    conversation = Conversation("é", fixed_bytes=10)
    conversation.add_results((ToolResult("c", "éé"), ToolResult("d", "x")))
    assert conversation.size == 10 + 2 + 5
    conversation.add_answer(an_answer(a_call("finish", "{}"), text="four", raw=False))
    assert conversation.size == 17 + 4 + 2


def test_the_oldest_outputs_are_dropped_first_and_only_as_many_as_needed() -> None:
    conversation = a_conversation("a" * 1000, "b" * 1000, "c" * 1000)
    size = conversation.size
    assert conversation.shrink(size - 500) == 1
    assert outputs(conversation) == [DROPPED, "b" * 1000, "c" * 1000]
    assert conversation.size == size - 1000 + len(DROPPED)
    assert conversation.turns[0] == UserTurn("opening")


def test_the_results_that_the_model_has_not_seen_stay() -> None:
    conversation = a_conversation("a" * 1000, "b" * 1000)
    assert conversation.shrink(0) == 1
    assert outputs(conversation) == [DROPPED, "b" * 1000]
    assert conversation.shrink(0, keep_newest=False) == 1
    assert outputs(conversation) == [DROPPED, DROPPED]
    assert conversation.shrink(0, keep_newest=False) == 0


def test_short_outputs_are_not_worth_dropping() -> None:
    conversation = a_conversation("written: MEMORY.md, 10 bytes", "b" * 1000, "c")
    assert conversation.shrink(0) == 1
    assert outputs(conversation) == ["written: MEMORY.md, 10 bytes", DROPPED, "c"]
