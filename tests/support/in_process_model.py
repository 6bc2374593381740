"""The good model of the scripted server, asked without a wire: for tests that need no HTTP."""

import json
from collections.abc import Callable, Mapping

from memoryd.llm.question import Answer, Question, Stop, ToolCall, ToolTurn, Usage
from tests.support.model_manners import handbook, parse_raw_memories, stage1_reply, summary

TOOLS_USAGE = Usage(input=500, output=50)
Writes = Callable[[str], Mapping[str, str]]
"""What a consolidation agent writes (path: content), from the text of raw_memories.md."""


def good_model(question: Question) -> Answer:
    """Answer a stage-1 question from its words, and keep the memory folder as its formats ask for."""
    return agent_that_writes(good_files)(question) if question.tools else said(stage1_reply(opening(question)).text)


def good_files(raw_memories: str) -> Mapping[str, str]:
    """Write both artefacts from every input."""
    inputs = parse_raw_memories(raw_memories)
    return {"MEMORY.md": handbook(inputs), "memory_summary.md": summary(inputs)}


def agent_that_writes(writes: Writes) -> Callable[[Question], Answer]:
    """Make an agent that reads raw_memories.md, writes what `writes` says, finishes, and insists when it is refused."""

    def answer(question: Question) -> Answer:
        results = [turn for turn in question.turns if isinstance(turn, ToolTurn)]
        if not results:
            return calls({"read_file": {"path": "raw_memories.md", "line_offset": 1, "max_lines": 2000}})
        if len(results) == 1:
            files = writes(results[0].results[0].output)
            return calls(*({"write_file": {"path": path, "content": text}} for path, text in files.items()))
        return calls({"finish": {"summary": "done"}})

    return answer


def calls(*wanted: Mapping[str, Mapping[str, object]]) -> Answer:
    """Answer with tool calls, each a mapping of the tool's name to its arguments."""
    made = [(name, arguments) for each in wanted for name, arguments in each.items()]
    return Answer(
        "",
        tuple(ToolCall(f"call-{number}", name, json.dumps(given)) for number, (name, given) in enumerate(made)),
        (),
        TOOLS_USAGE,
        Stop.TOOL_CALLS,
        "model-1",
    )


def said(text: str) -> Answer:
    """Answer with a text."""
    return Answer(text, (), (), Usage(input=1000, output=100), Stop.COMPLETE, "model-1")


def opening(question: Question) -> str:
    """Return the first words of the user."""
    return str(getattr(question.turns[0], "text", ""))
