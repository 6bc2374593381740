"""What a program's output says: its answer, its tokens, its error. Pure; one reader for each known format.

Formats as printed by codex-cli 0.171 (`exec --json`), Claude Code 2.1 (`--output-format json`), Gemini CLI 0.61
(`--output-format json`) and OpenCode 1.18 (`run --format json`); unknown members and lines are passed over.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from memoryd.llm.fields import count_at, object_at, objects_at, text_at
from memoryd.llm.question import JsonObject, Usage


@dataclass(frozen=True, slots=True)
class Said:
    """An output as it was understood. `is_complete`: the program itself says that its turn came to a good end."""

    text: str = ""
    usage: Usage | None = None
    error: str = ""
    is_complete: bool = False


ReadOutput: TypeAlias = Callable[[str], Said]


def read_plain(output: str) -> Said:
    """Take the whole output for the answer; only the exit status tells whether it is one."""
    return Said(text=output.strip())


def read_codex(output: str) -> Said:
    """Read events: the last message of the agent, and what the turn took."""
    text, error, usage, complete = "", "", None, False
    for event in _objects(output):
        match text_at(event, "type"):
            case "item.completed" if text_at(object_at(event, "item"), "type") == "agent_message":
                text = text_at(object_at(event, "item"), "text")
            case "turn.completed":
                usage, complete = _codex_usage(object_at(event, "usage")), True
            case "turn.failed":
                error = text_at(object_at(event, "error"), "message") or error
            case "error":
                error = text_at(event, "message") or error
    return Said(text, usage, "" if complete else error, complete)


def read_claude(output: str) -> Said:
    """Read the result: one object, or (with --verbose) the last one of a list."""
    result = next((each for each in reversed(_values(output)) if text_at(each, "type") == "result"), {})
    if not result:
        return Said(error=output.strip())
    text, failed = text_at(result, "result"), result.get("is_error") is True
    usage = _claude_usage(object_at(result, "usage"))
    if failed or text_at(result, "subtype") != "success":
        return Said(usage=usage, error=text or text_at(result, "subtype"))
    return Said(text, usage, is_complete=True)


def read_gemini(output: str) -> Said:
    """Read the one object; `stats.models` counts tokens by model."""
    result = next(iter(_values(output)), {})
    error = text_at(object_at(result, "error"), "message")
    models = object_at(object_at(result, "stats"), "models")
    tokens = [object_at(object_at(models, name), "tokens") for name in models]
    usage = Usage(
        input=sum(count_at(each, "prompt") for each in tokens),
        output=sum(count_at(each, "candidates") + count_at(each, "thoughts") for each in tokens),
        cached=sum(count_at(each, "cached") for each in tokens),
        reasoning=sum(count_at(each, "thoughts") for each in tokens),
    )
    complete = isinstance(result.get("response"), str) and not error
    return Said(text_at(result, "response"), usage if usage.input else None, error, complete)


def read_opencode(output: str) -> Said:
    """Read events: the texts of the last step that had any, the tokens of all steps."""
    texts: list[str] = []
    error, usage, complete, is_new_step = "", None, False, True
    for event in _objects(output):
        part = object_at(event, "part")
        match text_at(event, "type"):
            case "step_start":
                is_new_step = True
            case "text":
                texts = [] if is_new_step else texts
                is_new_step = False
                texts.append(text_at(part, "text"))
            case "step_finish":
                usage = _added(usage, _opencode_usage(object_at(part, "tokens")))
                complete = text_at(part, "reason") == "stop"
            case "error":
                about = object_at(event, "error")
                error = text_at(object_at(about, "data"), "message") or text_at(about, "name") or "an error"
    return Said("".join(texts), usage, error, complete and not error)


def _codex_usage(usage: JsonObject) -> Usage | None:
    if not count_at(usage, "input_tokens"):
        return None
    return Usage(
        input=count_at(usage, "input_tokens"),
        output=count_at(usage, "output_tokens"),
        cached=count_at(usage, "cached_input_tokens"),
        reasoning=count_at(usage, "reasoning_output_tokens"),
    )


def _claude_usage(usage: JsonObject) -> Usage | None:
    """`input_tokens` leaves out what was read from or written to a cache."""
    cached = count_at(usage, "cache_read_input_tokens")
    written = count_at(usage, "cache_creation_input_tokens")
    total = count_at(usage, "input_tokens") + cached + written
    if not total:
        return None
    return Usage(input=total, output=count_at(usage, "output_tokens"), cached=cached)


def _opencode_usage(tokens: JsonObject) -> Usage:
    cache = object_at(tokens, "cache")
    cached, reasoning = count_at(cache, "read"), count_at(tokens, "reasoning")
    return Usage(
        input=count_at(tokens, "input") + cached + count_at(cache, "write"),
        output=count_at(tokens, "output") + reasoning,
        cached=cached,
        reasoning=reasoning,
    )


def _added(one: Usage | None, other: Usage) -> Usage:
    if one is None:
        return other
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cached + other.cached,
        one.reasoning + other.reasoning,
    )


def _objects(output: str) -> Iterator[JsonObject]:
    """Yield the JSON objects that stand on a line each."""
    for line in output.splitlines():
        value = _decoded(line) if line.startswith("{") else None
        if isinstance(value, dict):
            yield value


def _values(output: str) -> tuple[JsonObject, ...]:
    """Return the objects of an output that is one JSON value, warnings before its first line left out."""
    start = min((at for at in (output.find("{"), output.find("[{")) if at >= 0), default=0)
    value = _decoded(output[start:].strip())
    if isinstance(value, list):
        return objects_at({"all": value}, "all")
    return (value,) if isinstance(value, dict) else tuple(_objects(output))


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
