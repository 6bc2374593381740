"""What is known of the agents' programs: their options, and what their output says."""

import json

import pytest

from memoryd.control.example_config import PRESETS
from memoryd.llm.command import programs
from memoryd.llm.command.programs import OTHER, PROGRAMS, completed, program_of
from memoryd.llm.command.said import ReadOutput, Said, read_claude, read_codex, read_gemini, read_opencode, read_plain
from memoryd.llm.question import Usage

AGENTS = sorted(PROGRAMS)


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        ("codex", "codex"),
        ("/opt/bin/claude", "claude"),
        ("gemini.js", "gemini"),
        ("./opencode", "opencode"),
        ("sh", ""),
    ],
)
def test_a_program_is_known_by_its_file_name(command: str, agent: str) -> None:
    assert program_of([command]).agent == agent


def test_a_program_that_is_not_known_is_run_as_it_is() -> None:
    assert completed(["mine", "--flag"], OTHER.always) == ("mine", "--flag")


def test_options_that_the_user_has_set_are_left_alone() -> None:
    command = ["codex", "exec", "--json", "-s", "read-only", "-c", "features.hooks=true", "--output-schema=x"]
    done = completed(command, [*programs.CODEX.always, ("--sandbox", "workspace-write"), ("--output-schema", "y")])
    assert done[: len(command)] == tuple(command)
    assert done.count("--json") == 1
    assert not {"workspace-write", "features.hooks=false", "y"} & set(done)
    assert "--ephemeral" in done


def test_of_two_options_alike_the_first_is_taken() -> None:
    assert completed(["codex"], [("--sandbox", "a"), ("--sandbox", "b")]) == ("codex", "--sandbox", "a")


@pytest.mark.parametrize("name", AGENTS)
def test_the_preset_of_a_program_holds_all_that_makes_it_ephemeral(name: str) -> None:
    command = PRESETS[f"{name}-cli"]["command"]
    assert isinstance(command, list)
    assert completed(command, PROGRAMS[name].always) == tuple(command)


@pytest.mark.parametrize("name", AGENTS)
def test_a_key_that_is_paid_by_use_never_passes_by_itself(name: str) -> None:
    program = PROGRAMS[name]
    assert not set(program.keys) & set(program.variables)
    assert not [each for each in program.variables if each.endswith("_API_KEY")]


def test_a_plain_output_is_the_answer_and_vouches_for_nothing() -> None:
    assert read_plain("\n an answer\n") == Said(text="an answer")


def lines(*events: object) -> str:
    return "\n".join(["a warning", *(json.dumps(event) for event in events), "{half a line"])


def test_codex_says_its_last_message_and_its_usage() -> None:
    output = lines(
        {"type": "item.completed", "item": {"type": "error", "message": "no metadata"}},
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "thinking aloud"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "the answer"}},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 3, "reasoning_output_tokens": 2},
        },
    )
    assert read_codex(output) == Said("the answer", Usage(9, 3, 4, 2), "", is_complete=True)


def test_codex_says_what_failed() -> None:
    failed = lines(
        {"type": "turn.started"}, {"type": "turn.failed", "error": {"message": "You've hit your usage limit."}}
    )
    assert read_codex(failed) == Said(error="You've hit your usage limit.")
    assert read_codex(lines({"type": "error", "message": "waiting for network"})).error == "waiting for network"


CLAUDE = {"type": "result", "subtype": "success", "is_error": False, "result": "the answer"}


def test_claude_counts_what_was_cached_apart() -> None:
    usage = {"input_tokens": 50, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 7, "output_tokens": 9}
    said = read_claude(json.dumps({**CLAUDE, "usage": usage}))
    assert said == Said("the answer", Usage(60, 9, 7), is_complete=True)


def test_claude_says_its_error_in_place_of_its_answer() -> None:
    output = json.dumps({**CLAUDE, "is_error": True, "result": "Not logged in · Please run /login"})
    assert read_claude(output) == Said(error="Not logged in · Please run /login")
    assert read_claude(json.dumps({"type": "result", "subtype": "error_max_turns"})).error == "error_max_turns"


def test_claude_prints_a_list_when_it_is_verbose() -> None:
    assert read_claude(json.dumps([{"type": "system"}, CLAUDE])).text == "the answer"


def test_claude_without_json_has_failed() -> None:
    assert read_claude("Invalid API key") == Said(error="Invalid API key")


def test_gemini_adds_up_its_models() -> None:
    tokens = {"prompt": 30, "candidates": 4, "thoughts": 2, "cached": 1}
    output = json.dumps(
        {"response": "the answer", "stats": {"models": {"a": {"tokens": tokens}, "b": {"tokens": tokens}}}}
    )
    assert read_gemini(f"Loaded cached credentials.\n{output}") == Said(
        "the answer", Usage(60, 12, 2, 4), is_complete=True
    )
    assert read_gemini(json.dumps({"error": {"message": "Invalid auth"}})).error == "Invalid auth"


def test_opencode_says_the_texts_of_its_last_step_and_the_tokens_of_all() -> None:
    tokens = {"input": 40, "output": 5, "reasoning": 1, "cache": {"read": 2, "write": 3}}
    output = lines(
        {"type": "step_start", "part": {}},
        {"type": "text", "part": {"text": "I look."}},
        {"type": "step_finish", "part": {"reason": "tool-calls", "tokens": tokens}},
        {"type": "step_start", "part": {}},
        {"type": "text", "part": {"text": "the "}},
        {"type": "text", "part": {"text": "answer"}},
        {"type": "step_finish", "part": {"reason": "stop", "tokens": tokens}},
    )
    assert read_opencode(output) == Said("the answer", Usage(90, 12, 4, 2), "", is_complete=True)
    failed = lines({"type": "error", "error": {"name": "UnknownError", "data": {"message": "boom"}}})
    assert read_opencode(failed) == Said(error="boom")


@pytest.mark.parametrize("read", [read_codex, read_claude, read_gemini, read_opencode])
@pytest.mark.parametrize(
    "garbage", ["", "\0\x01", "[1, 2]", "null", '{"type": 5}', "[" * 100_000, '{"usage": {"input_tokens": "x"}}']
)
def test_garbage_is_no_answer_and_no_crash(read: ReadOutput, garbage: str) -> None:
    said = read(garbage)
    assert (said.text, said.is_complete) == ("", False)
