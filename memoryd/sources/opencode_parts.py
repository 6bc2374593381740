"""Parts of OpenCode's messages as items: what the person typed, what the model said, and what its tools did."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Raw

from memoryd.sources.items import Item, ItemKind
from memoryd.sources.opencode_records import Message
from memoryd.sources.rawjson import as_fields, as_int, as_list, as_number, as_text, compact, is_text, is_true

SHELL, QUESTION = "bash", "question"
WEB_TOOLS = frozenset({"webfetch", "websearch", "codesearch"})
# Those of the agent itself that have an underscore; any other such name is `<server>_<tool>` of an MCP server. A
# plug-in's tool may be named alike: it counts as external, too.
OWN_TOOLS = frozenset({"apply_patch", "plan_enter", "plan_exit", "lsp_hover", "lsp_diagnostics", "todo_write"})
REMINDER_OPEN, REMINDER_CLOSE = "<system-reminder>", "</system-reminder>"
# known, and no evidence; those with a reason are counted
NOISE: dict[str, str | None] = {
    "reasoning": "reasoning",
    "compaction": "compaction",
    "subtask": "subtask",
    "step-start": None,
    "step-finish": None,
    "patch": None,
    "snapshot": None,
    "agent": None,
    "retry": None,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part stands: its message, its own ordinal and the directory."""

    message: Message
    ordinal: int
    cwd: str | None

    @property
    def at(self) -> float | None:
        """Return epoch seconds of the message, None when it does not say."""
        return self.message.created_ms / 1000 if self.message.created_ms else None


def spoken_text(fields: dict[str, Raw], dropped: Counter[str]) -> str:
    """Return a text part's words, empty when they are the harness's own (counted) or none."""
    text = as_text(fields.get("text")) or ""
    if is_true(fields.get("synthetic")) or is_true(fields.get("ignored")):
        dropped["reminder" if text.lstrip().startswith(REMINDER_OPEN) else "harness"] += 1
        return ""
    if text.lstrip().startswith(REMINDER_OPEN) and text.rstrip().endswith(REMINDER_CLOSE):
        dropped["reminder"] += 1
        return ""
    return text if text.strip() else ""


def as_typed(text: str) -> str:
    """Take off what `opencode run` adds: a last line feed, and quotes around an argument that has a space in it.

    It writes `"` within as `\\"`; what was piped in follows on the next line.
    """
    text = text.removesuffix("\n")
    end = text.find('"', 1) if text.startswith('"') else -1
    while 0 <= end < len(text) - 1 and text[end - 1] == "\\":
        end = text.find('"', end + 1)
    argument, rest = text[1:end], text[end + 1 :]
    if end < 0 or " " not in argument or (rest and not rest.startswith("\n")):
        return text
    return argument.replace('\\"', '"') + rest


def attachment_reason(fields: dict[str, Raw]) -> str:
    """Return why a file part is left out; its data URL is never built."""
    return "image" if (as_text(fields.get("mime")) or "").startswith("image/") else "attachment"


def tool_items(fields: dict[str, Raw], place: Place, dropped: Counter[str]) -> Iterator[Item]:
    """Yield a tool's call, and its output once there is one; the answers to a question are the human speaking."""
    tool = as_text(fields.get("tool")) or "tool"
    call_id = as_text(fields.get("callID"))
    state = as_fields(fields.get("state"))
    times = as_fields(state.get("time"))
    external = is_external(tool)
    text = _call_text(tool, state.get("input"))
    yield Item(
        ItemKind.TOOL_CALL,
        text,
        place.ordinal,
        _seconds(times.get("start")) or place.at,
        place.cwd,
        tool=tool,
        call_id=call_id,
        external=external,
    )
    for file in as_list(state.get("attachments")):
        dropped[attachment_reason(as_fields(file))] += 1
    metadata = as_fields(state.get("metadata"))
    at = _seconds(times.get("end")) or _seconds(times.get("start")) or place.at
    answer = _answers(state.get("input"), metadata.get("answers")) if tool == QUESTION else ""
    if answer:
        yield Item(ItemKind.HUMAN, answer, place.ordinal, at, place.cwd, tool=tool, call_id=call_id)
        return
    output = as_text(state.get("output")) or as_text(state.get("error")) or ""
    exit_code = as_int(metadata.get("exit"))
    if output.strip() or exit_code is not None:
        yield Item(
            ItemKind.TOOL_OUTPUT,
            output,
            place.ordinal,
            at,
            place.cwd,
            tool=tool,
            call_id=call_id,
            exit_code=exit_code,
            external=external,
        )


def is_external(tool: str) -> bool:
    """Say whether a tool brings in words from outside the machine: the web, MCP."""
    return tool in WEB_TOOLS or ("_" in tool and tool not in OWN_TOOLS)


def part_time(fields: dict[str, Raw], place: Place) -> float | None:
    """Return epoch seconds of a text part, else those of its message."""
    return _seconds(as_fields(fields.get("time")).get("start")) or place.at


def _call_text(tool: str, given: Raw | None) -> str:
    if tool == SHELL:
        command = as_text(as_fields(given).get("command"))
        if command is not None and command.strip():
            return command
    # an input that was cut in the store is a text
    arguments = as_text(given) if given and is_text(given) else compact(given)
    return f"{tool} {arguments or ''}".rstrip()


def _answers(given: Raw | None, answers: Raw | None) -> str:
    """Render each answered question with its answer; empty when nothing was answered."""
    asked = [as_text(as_fields(raw).get("question")) for raw in as_list(as_fields(given).get("questions"))]
    lines: list[str] = []
    for position, raw in enumerate(as_list(answers)):
        words = ", ".join(word for label in as_list(raw) if (word := as_text(label)))
        question = asked[position] if position < len(asked) else None
        if words:
            lines.append(f"Asked: {question}\nAnswered: {words}" if question else words)
    return "\n".join(lines)


def _seconds(milliseconds: Raw | None) -> float | None:
    value = as_number(milliseconds)
    return None if value is None else value / 1000
