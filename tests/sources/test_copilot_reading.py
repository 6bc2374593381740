"""What is taken out of a Copilot CLI session: the person's words and what ran, not what the program says itself."""

from pathlib import Path
from typing import Any

import pytest

from memoryd.sources.copilot import CopilotReader
from memoryd.sources.copilot_reading import Withdrawn
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.reader import Reading
from tests.support.copilot_sessions import a_copilot_session, assistant, tool, user

NOW = 1_700_000_000.0
READER = CopilotReader()
ASKED = {"question": "Which branch?", "choices": ["main", "next"]}


def read(tmp_path: Path, *events: dict[str, Any]) -> tuple[list[Item], Reading]:
    path = a_copilot_session(tmp_path, now=NOW, turns=[], extra=events)
    with READER.read(READER.locate(path)) as reading:
        return list(reading), reading


def texts(items: list[Item], kind: ItemKind) -> list[str]:
    return [item.text for item in items if item.kind is kind]


def test_the_programs_dressing_of_a_message_is_not_the_persons(tmp_path: Path) -> None:
    items, _ = read(tmp_path, user("  do it\n"))
    assert texts(items, ItemKind.HUMAN) == ["do it"]


@pytest.mark.parametrize("source", [None, "", "user", "immediate-prompt"])
def test_what_the_person_typed_is_human(tmp_path: Path, source: str | None) -> None:
    items, _ = read(tmp_path, user("do it", **({} if source is None else {"source": source})))
    assert texts(items, ItemKind.HUMAN) == ["do it"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"source": "skill-pdf"}, "skill"),
        ({"source": "skill"}, "skill"),
        ({"content": '<skill-context name="pdf">how to</skill-context>'}, "skill"),
        ({"source": "system"}, "harness"),
        ({"source": "command"}, "harness"),
        ({"source": "jit-instruction"}, "harness"),
        ({"source": "instruction-discovery"}, "harness"),
        ({"source": "thinking-exhausted-continuation"}, "harness"),
        ({"source": "autopilot", "isAutopilotContinuation": True}, "harness"),
        ({"isAutopilotContinuation": True}, "harness"),
    ],
)
def test_what_the_program_put_in_the_persons_mouth_is_dropped(
    tmp_path: Path, data: dict[str, Any], reason: str
) -> None:
    items, reading = read(tmp_path, user(data.pop("content", "continue"), **data))
    assert (items, reading.dropped) == ([], {reason: 1})


@pytest.mark.parametrize(
    "data", [{"source": "agent-7"}, {"crossSession": {"version": 1, "origin": "authenticated-cross-session"}}]
)
def test_messages_of_other_agents_are_theirs(tmp_path: Path, data: dict[str, Any]) -> None:
    items, _ = read(tmp_path, user("look at this", **data))
    assert [(item.kind, item.text) for item in items] == [(ItemKind.OTHER_AGENT, "look at this")]


def test_what_happened_in_a_sub_agent_is_no_evidence(tmp_path: Path) -> None:
    inside = [user("explore") | {"agentId": "a1"}, assistant("found", parentToolCallId="call_9")]
    inside += [event | {"agentId": "a1"} for event in tool("bash", {"command": "ls"}, "x")]
    started = {"type": "subagent.started", "data": {"toolCallId": "call_9", "agentName": "explore"}}
    items, reading = read(tmp_path, user("go"), started, *inside, assistant("Done."))
    assert [item.text for item in items] == ["go", "Done."]
    assert (reading.dropped, sum(reading.unknown.values())) == ({"side_chain": 4}, 0)


def test_known_events_without_evidence_are_counted_by_reason_or_not_at_all(tmp_path: Path) -> None:
    events = [
        {"type": "system.message", "data": {"role": "system", "content": "You are"}},
        {"type": "system.notification", "data": {"content": "<system_notification>", "kind": {"type": "agent_idle"}}},
        {"type": "skill.invoked", "data": {"name": "pdf", "content": "how to", "path": "/s"}},
        {"type": "session.compaction_start", "data": {}},
        {"type": "session.compaction_complete", "data": {"success": True, "summaryContent": "all of it"}},
        {"type": "session.truncation", "data": {"performedBy": "BasicTruncator"}},
        {"type": "session.binary_asset", "data": {"assetId": "sha256:1", "data": "AAAA"}},
        {"type": "assistant.reasoning", "data": {"content": "hm", "reasoningId": "r"}},
        {"type": "hook.start", "data": {"hookType": "preToolUse"}},
        {"type": "hook.end", "data": {"hookType": "preToolUse", "success": True}},
        {"type": "permission.requested", "data": {}},
        {"type": "abort", "data": {"reason": "user initiated"}},
        {"type": "session.error", "data": {"errorType": "quota", "message": "no"}},
        {"type": "session.shutdown", "data": {"shutdownType": "routine"}},
    ]
    items, reading = read(tmp_path, *events)
    assert items == []
    assert reading.dropped == {"developer": 1, "harness": 1, "skill": 1, "compaction": 1, "image": 1, "reasoning": 1}
    assert (sum(reading.unknown.values()), reading.bad_lines) == (0, 0)


def test_an_event_of_a_type_that_nobody_knows_is_counted(tmp_path: Path) -> None:
    _, reading = read(tmp_path, user("x"), {"type": "session.from_the_future", "data": {}})
    assert reading.unknown == {"session.from_the_future": 1}


def test_a_resumed_session_goes_on_in_the_folder_that_it_names(tmp_path: Path) -> None:
    resumed = {"type": "session.resume", "data": {"eventCount": 3, "context": {"cwd": "/home/dev/other"}}}
    moved = {"type": "session.context_changed", "data": {"cwd": "/home/dev/third", "branch": "x"}}
    bare = {"type": "session.resume", "data": {"eventCount": 5}}
    items, reading = read(tmp_path, user("one"), resumed, user("two"), moved, bare, user("three"))
    assert [item.cwd for item in items] == ["/home/dev/shop", "/home/dev/other", "/home/dev/third"]
    assert reading.unknown == {}


def test_turns_that_were_rewound_are_no_evidence(tmp_path: Path) -> None:
    gone = [user("wrong") | {"id": "u2"}, assistant("Oops.")]
    rewound = {"type": "session.snapshot_rewind", "data": {"upToEventId": "u2", "eventsRemoved": 2}}
    items, reading = read(tmp_path, user("right"), *gone, rewound, user("again"))
    assert [item.text for item in items] == ["right", "again"]
    assert reading.dropped == {"rolled_back": 2}


def test_the_phase_that_an_answer_tells_is_believed(tmp_path: Path) -> None:
    items, _ = read(
        tmp_path,
        user("x"),
        assistant("Thus.", phase="final_answer"),
        assistant("By the way.", phase="commentary"),
    )
    assert [item.kind for item in items[1:]] == [ItemKind.ASSISTANT_FINAL, ItemKind.ASSISTANT_COMMENTARY]


def test_the_persons_answer_to_a_question_is_human(tmp_path: Path) -> None:
    items, _ = read(tmp_path, *tool("ask_user", ASKED, "User responded: next, and no tags"))
    assert texts(items, ItemKind.HUMAN) == ["Asked: Which branch?\nAnswered: next, and no tags"]
    assert not texts(items, ItemKind.TOOL_OUTPUT)


@pytest.mark.parametrize(
    ("result", "success"),
    [
        ("User responded: The user is not available to respond and will review your work later.", True),
        ("cancelled", False),
    ],
)
def test_where_nobody_answered_nobody_spoke(tmp_path: Path, result: str, success: bool) -> None:
    items, _ = read(tmp_path, *tool("ask_user", ASKED, result, success=success))
    assert not texts(items, ItemKind.HUMAN)
    assert texts(items, ItemKind.TOOL_OUTPUT) == [result]


@pytest.mark.parametrize(
    ("complete", "result", "code"),
    [
        ({"shellExecution": {"exitCode": 3}}, "x\n<shellId: 0 completed with exit code 3>", 3),
        ({}, "x\n<exited with exit code 2>", 2),
        ({}, "x\n<shellId: abc completed with exit code -9>\n", -9),
        ({"toolTelemetry": {"metrics": {"exit_code": 1.0}}}, "x", 1),
        ({"exitCode": 4}, "x", 4),
        ({"result": {"content": "x", "contents": [{"type": "shell_exit", "exitCode": 5, "shellId": "0"}]}}, "", 5),
        ({}, "x", None),
    ],
)
def test_how_a_command_ended_is_told_by_the_event_or_by_its_last_line(
    tmp_path: Path, complete: dict[str, Any], result: str, code: int | None
) -> None:
    items, _ = read(tmp_path, *tool("bash", {"command": "false"}, result, **complete))
    assert [(item.text, item.exit_code) for item in items] == [("false", None), ("x", code)]


def test_a_call_that_failed_says_why(tmp_path: Path) -> None:
    failed = {"success": False, "result": None, "error": {"message": "no such file", "code": "failure"}}
    items, _ = read(tmp_path, *tool("view", {"path": "/x"}, "", **failed))
    assert texts(items, ItemKind.TOOL_OUTPUT) == ["no such file"]


@pytest.mark.parametrize(
    ("name", "start", "external"),
    [
        ("bash", {}, False),
        ("web_fetch", {}, True),
        ("web_search", {}, True),
        ("github-mcp-server-list_issues", {"mcpServerName": "github-mcp-server", "mcpToolName": "list_issues"}, True),
    ],
)
def test_words_from_outside_the_machine_are_marked(
    tmp_path: Path, name: str, start: dict[str, Any], external: bool
) -> None:
    items, _ = read(tmp_path, *tool(name, {"command": "x", "url": "y"}, "found", start=start))
    assert [(item.tool, item.external) for item in items] == [(name, external)] * 2


def test_a_caption_for_the_screen_is_no_work(tmp_path: Path) -> None:
    items, reading = read(tmp_path, *tool("report_intent", {"intent": "Exploring"}, "Intent logged"))
    assert (items, reading.unknown) == ([], {})


def test_a_patch_reads_as_the_patch(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** End Patch"
    items, _ = read(tmp_path, *tool("apply_patch", patch, "ok"), *tool("apply_patch", {"input": patch}, "ok", "2"))
    assert texts(items, ItemKind.TOOL_CALL) == [patch, patch]


def test_images_are_left_out_and_counted(tmp_path: Path) -> None:
    picture = {"type": "blob", "mimeType": "image/png", "data": "AAAA"}
    shown = {"result": {"content": "a chart", "binaryResultsForLlm": [{"type": "image", "data": "AAAA"}]}}
    items, reading = read(tmp_path, user("look", attachments=[picture]), *tool("view", {"path": "x"}, "", **shown))
    assert [item.text for item in items] == ["look", 'view {"path":"x"}', "a chart"]
    assert reading.dropped == {"image": 2}


@pytest.mark.parametrize(
    ("stretches", "held"),
    [([], []), ([(2, 4)], [2, 3]), ([(5, 6), (0, 9)], list(range(9))), ([(1, 3), (2, 5), (7, 8)], [1, 2, 3, 4, 7])],
)
def test_withdrawn_stretches_may_lie_in_each_other(stretches: list[tuple[int, int]], held: list[int]) -> None:
    withdrawn = Withdrawn(range(*each) for each in stretches)
    assert ([index for index in range(10) if index in withdrawn], bool(withdrawn)) == (held, bool(held))


def test_a_session_of_rewinds_is_read_in_the_time_of_its_size(tmp_path: Path) -> None:
    """Each row was compared with each rewind: of 100,000 of both nobody saw the end."""
    events: list[dict[str, Any]] = []
    for number in range(15_000):
        events.append({**user("again"), "id": f"row-{number}"})
        events.append({"type": "session.snapshot_rewind", "data": {"upToEventId": f"row-{number}"}})
    items, reading = read(tmp_path, *events, user("Always use tabs."))
    assert texts(items, ItemKind.HUMAN) == ["Always use tabs."]
    assert reading.dropped["rolled_back"] == 15_000
