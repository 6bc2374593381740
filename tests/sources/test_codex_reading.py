"""A whole session comes out as items in order, with everything else counted; nothing in it can break the reading."""

import json
from pathlib import Path
from typing import Any

import pytest

from memoryd.errors import SessionWithoutItems
from memoryd.sources.citations import CitationEntry
from memoryd.sources.codex import CodexReader
from memoryd.sources.identity import message_key
from memoryd.sources.items import Item, ItemKind, LimitWindow, MemoryMode, SessionFile
from memoryd.sources.reader import Reading
from tests.support.sessions import Command, Turn, a_rollout, a_thread_id, iso, response, write_rollout

NOW = 1_700_000_000.0
THREAD = a_thread_id(NOW, "thread")
PARENT = a_thread_id(NOW - 9000, "parent")


def a_file(path: Path) -> SessionFile:
    facts = path.stat()
    return SessionFile("codex", str(path), facts.st_size, facts.st_mtime_ns)


def read(path: Path) -> tuple[list[Item], Reading]:
    with CodexReader().read(a_file(path)) as reading:
        return list(reading), reading


def spoken(path: Path) -> list[tuple[ItemKind, str]]:
    return [(item.kind, item.text) for item in read(path)[0]]


def said(role: str, text: str, **fields: Any) -> dict[str, Any]:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return response("message", role=role, content=[part], **fields)


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **payload}}


def meta(thread_id: str = THREAD, **payload: Any) -> dict[str, Any]:
    return {"type": "session_meta", "payload": {"id": thread_id, "timestamp": iso(NOW), "source": "cli"} | payload}


def a_session(into: Path, *records: dict[str, Any] | bytes, torn: bytes = b"") -> Path:
    """Write records as lines, each a second after the one before; bytes are taken as they are."""
    lines = [
        record
        if isinstance(record, bytes)
        else json.dumps({"timestamp": iso(NOW + second), **record}, ensure_ascii=False).encode()
        for second, record in enumerate(records)
    ]
    return write_rollout(into, THREAD, b"".join(line + b"\n" for line in lines) + torn, NOW, NOW + len(lines))


def test_a_session_reads_in_order_with_ordinals_times_and_directories(tmp_path: Path) -> None:
    turns = [Turn("Fix it", answer="Fixed.", commentary="Looking.", commands=[Command("make", "boom\n", 2)])]
    items, reading = read(a_rollout(tmp_path, now=NOW, turns=turns, cwd="/home/dev/a"))
    assert [(item.ordinal, item.kind, item.text, item.exit_code) for item in items] == [
        (2, ItemKind.HUMAN, "Fix it", None),
        (3, ItemKind.ASSISTANT_COMMENTARY, "Looking.", None),
        (4, ItemKind.TOOL_CALL, "make", None),
        (5, ItemKind.TOOL_OUTPUT, "boom\n", 2),
        (6, ItemKind.ASSISTANT_FINAL, "Fixed.", None),
    ]
    assert {item.cwd for item in items} == {"/home/dev/a"}
    assert items[-1].at == reading.last_record_at == NOW - 7 * 3600
    assert reading.items_seen == 5


def test_the_directory_is_the_turns_then_the_contexts_then_the_sessions(tmp_path: Path) -> None:
    context = said("user", "<environment_context><cwd>/from/context</cwd></environment_context>")
    items, _ = read(
        a_session(
            tmp_path,
            meta(cwd="/from/meta"),
            said("user", "one"),
            context,
            said("user", "two"),
            {"type": "turn_context", "payload": {"cwd": "/from/turn"}},
            said("user", "three"),
            context,
            {"type": "turn_context", "payload": {"cwd": None}},
            said("user", "four"),
        )
    )
    assert [item.cwd for item in items if item.kind is ItemKind.HUMAN] == [
        "/from/meta",
        "/from/context",
        "/from/turn",
        "/from/turn",
    ]


def test_what_is_known_and_not_wanted_is_counted_and_never_comes_out(tmp_path: Path) -> None:
    summary = said("assistant", "a summary") | {"metadata": {"compaction_output": True}}
    path = a_session(
        tmp_path,
        meta(),
        said("developer", "rules"),
        said("user", "hello"),
        response("reasoning", summary=[{"type": "summary_text", "text": "secret thought"}]),
        response("image_generation_call", result="AAAA"),
        response("compaction", encrypted_content="x"),
        response("compaction_summary", encrypted_content="x"),
        response("context_compaction"),
        response("compaction_trigger"),
        response("additional_tools"),
        response("ghost_snapshot"),
        {"type": "compacted", "payload": {"message": "history", "replacement_history": [said("user", "old")]}},
        summary,
        {"type": "world_state", "payload": {"state": "x"}},
        {"type": "token_usage_record", "payload": {}},
        event("user_message", message="hello"),
        event("agent_message", message="hi"),
        response("function_call_output", call_id="c", output=[{"type": "input_image", "image_url": "x"}]),
        response("of_next_year"),
        {"type": "also_of_next_year", "payload": {}},
    )
    items, reading = read(path)
    assert [item.text for item in items] == ["hello"]
    assert reading.dropped == {
        "developer": 1,
        "reasoning": 1,
        "image": 2,
        "compaction": 6,
        "additional_tools": 1,
        "ghost_snapshot": 1,
    }
    assert reading.unknown == {"response_item.of_next_year": 1, "also_of_next_year": 1}
    assert reading.bad_lines == 0


def test_other_agents_speak_in_their_own_name(tmp_path: Path) -> None:
    path = a_session(
        tmp_path,
        meta(),
        response("agent_message", author="scout", content=[{"type": "input_text", "text": "calc.py found"}]),
        {"type": "inter_agent_communication", "payload": {"author": "scout", "content": "and a test"}},
        response("agent_message", content=[{"type": "encrypted", "data": "x"}]),
    )
    assert spoken(path) == [(ItemKind.OTHER_AGENT, "calc.py found"), (ItemKind.OTHER_AGENT, "and a test")]


def test_external_tools_are_marked(tmp_path: Path) -> None:
    items, _ = read(
        a_session(
            tmp_path,
            meta(),
            response("web_search_call", action={"type": "search", "query": "q"}),
            response("tool_search_output", call_id="c", tools=[{"name": "mail"}]),
            response("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="d"),
        )
    )
    assert [(item.tool, item.external) for item in items] == [
        ("web_search", True),
        ("tool_search", True),
        ("exec_command", False),
    ]


def test_turns_that_were_rolled_back_never_come_out(tmp_path: Path) -> None:
    path = a_session(
        tmp_path,
        meta(),
        said("user", "keep me"),
        said("assistant", "kept", phase="final_answer"),
        said("user", "drop me"),
        said("assistant", "<oai-mem-citation></oai-mem-citation> dropped", phase="final_answer"),
        event("thread_rolled_back", num_turns=1),
        said("user", "say thread_rolled_back once more"),
    )
    items, reading = read(path)
    assert [item.text for item in items] == ["keep me", "kept", "say thread_rolled_back once more"]
    assert reading.dropped == {"rolled_back": 2}
    assert reading.citations == []


def test_rows_that_a_fork_copied_from_its_parent_never_come_out(tmp_path: Path) -> None:
    own_turn = a_thread_id(NOW + 10, "turn")
    old_turn = a_thread_id(NOW - 8000, "turn")
    path = a_session(
        tmp_path,
        meta(forked_from_id=PARENT, memory_mode="enabled"),
        meta(PARENT, memory_mode="disabled"),
        event("task_started", turn_id=old_turn),
        said("user", "the parent's"),
        {"type": "compacted", "payload": {}},
        event("token_count", rate_limits={"primary": {"used_percent": 5}}),
        {"type": "turn_context", "payload": {"turn_id": own_turn, "cwd": "/fork"}},
        said("user", "the fork's"),
    )
    items, reading = read(path)
    assert [item.text for item in items] == ["the fork's"]
    assert reading.dropped == {"copied": 1}
    assert reading.memory_mode is MemoryMode.ENABLED
    assert reading.rate_limits is None


def test_the_last_memory_mode_of_the_own_session_wins(tmp_path: Path) -> None:
    path = a_session(tmp_path, meta(memory_mode="enabled"), said("user", "x"), meta(memory_mode="disabled"), meta())
    assert read(path)[1].memory_mode is MemoryMode.DISABLED
    assert read(a_session(tmp_path, meta()))[1].memory_mode is None


def test_the_latest_limits_are_kept(tmp_path: Path) -> None:
    path = a_session(
        tmp_path,
        meta(),
        event("token_count", rate_limits={"limit_id": "codex", "primary": {"used_percent": 1}}),
        event("token_count", rate_limits={"limit_id": "codex", "primary": {"used_percent": 2}}),
        event("token_count", rate_limits=None),
    )
    limits = read(path)[1].rate_limits
    assert limits is not None
    assert (limits.seen_at, limits.windows) == (NOW + 2, (LimitWindow(2.0, None, None),))


CITING = (
    "Done.\n\n<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2|note=[n]\n</citation_entries>\n"
    f"<rollout_ids>\n{PARENT}\n</rollout_ids>\n</oai-mem-citation>"
)


def test_citations_are_taken_from_the_assistant_only_and_their_block_out_of_its_words(tmp_path: Path) -> None:
    items, reading = read(
        a_session(
            tmp_path,
            meta(),
            said("user", CITING),
            said("assistant", CITING, id="msg_1", phase="final_answer"),
            said("assistant", CITING.removeprefix("Done.\n\n"), phase="final_answer"),
        )
    )
    assert [(item.kind, item.text) for item in items] == [(ItemKind.HUMAN, CITING), (ItemKind.ASSISTANT_FINAL, "Done.")]
    first, second = reading.citations
    assert (first.message_key, first.at, first.thread_ids) == ("msg_1", NOW + 2, (PARENT,))
    assert first.entries == (CitationEntry("MEMORY.md", 1, 2, "n"),)
    assert second.message_key == message_key(CITING.removeprefix("Done.\n\n"), NOW + 3)


def test_a_message_key_depends_on_text_and_time() -> None:
    keys = {message_key("a", 1.0), message_key("a", None), message_key("b", 1.0), message_key("a\ud800", 1.0)}
    assert len(keys) == 4


def test_messages_of_old_files_without_a_phase_are_told_apart(tmp_path: Path) -> None:
    call = response("function_call", name="shell", arguments='{"command":"ls"}', call_id="c")
    path = a_session(
        tmp_path, meta(), said("user", "go"), said("assistant", "looking"), call, said("assistant", "done")
    )
    assert spoken(path)[1:] == [
        (ItemKind.ASSISTANT_COMMENTARY, "looking"),
        (ItemKind.TOOL_CALL, "ls"),
        (ItemKind.ASSISTANT_FINAL, "done"),
    ]


def test_bad_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    fused = b'{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payl{"timestamp":"2026-01-01T00:00:01Z"}'
    path = a_session(
        tmp_path,
        meta(),
        b"\x00" * 4096,
        b"",
        b"   ",
        fused,
        b"[1, 2]",
        b"not json",
        json.dumps(said("user", "with a carriage return")).encode() + b"\r",
        b"\xef\xbb\xbf" + json.dumps(said("user", "with a mark")).encode(),
        json.dumps(said("user", "lone \ud83d here")).encode(),
        b'{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"caf\xe9"}]}}',
        b'{"type":"response_item","payload":{"x":NaN,"type":"message","role":"user","content":"nan"}}',
    )
    items, reading = read(path)
    assert [item.text for item in items] == [
        "with a carriage return",
        "with a mark",
        "lone ? here",
        "caf\ufffd",
        "nan",
    ]
    assert reading.bad_lines == 4
    assert [item.ordinal for item in items] == [7, 8, 9, 10, 11]


def test_a_torn_last_line_is_forgiven_and_a_whole_one_without_a_newline_is_read(tmp_path: Path) -> None:
    items, reading = read(a_session(tmp_path, meta(), said("user", "whole"), torn=b'{"timestamp":"2026-01'))
    assert ([item.text for item in items], reading.bad_lines, reading.last_record_at) == (["whole"], 0, NOW + 1)
    whole = json.dumps(said("user", "last") | {"timestamp": iso(NOW + 9)}).encode()
    items, reading = read(a_session(tmp_path, meta(), torn=whole))
    assert ([item.text for item in items], reading.last_record_at) == (["last"], NOW + 9)


def test_records_of_the_wrong_shape_break_nothing(tmp_path: Path) -> None:
    odd: list[Any] = [None, 1, "x", [], {}, {"type": None}, {"type": []}, {"type": "message"}, {"id": 3}]
    kinds = [
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "inter_agent_communication",
        "compacted",
        None,
    ]
    records = [{"type": kind, "payload": payload, "metadata": payload} for kind in kinds for payload in odd]
    calls = [
        response(kind, arguments=value, action=value, input=value, output=value, tools=value, name=value)
        for kind in (
            "function_call",
            "function_call_output",
            "local_shell_call",
            "web_search_call",
            "tool_search_output",
        )
        for value in odd
    ]
    items, reading = read(a_session(tmp_path, meta(), *records, *calls, said("user", "still here")))
    assert items[-1].text == "still here"
    assert reading.bad_lines == 0


@pytest.mark.parametrize(
    "content", [b"garbage\nmore garbage\n", b'{"type":"of_next_year","payload":{}}\n', b"\x00" * 99]
)
def test_bytes_of_which_nothing_is_understood_are_an_error_at_the_end(tmp_path: Path, content: bytes) -> None:
    path = write_rollout(tmp_path, THREAD, content, NOW, NOW)
    with CodexReader().read(a_file(path)) as reading, pytest.raises(SessionWithoutItems, match="newer version"):
        list(reading)


def test_an_empty_file_gives_nothing_and_no_error(tmp_path: Path) -> None:
    items, reading = read(write_rollout(tmp_path, THREAD, b"", NOW, NOW + 5))
    assert (items, reading.record_bytes, reading.last_record_at, reading.timed) == ([], 0, NOW + 5, False)


def test_a_reading_that_was_not_finished_can_be_closed(tmp_path: Path) -> None:
    path = a_rollout(tmp_path, now=NOW, turns=["one", "two"])
    reading = CodexReader().read(a_file(path))
    assert next(reading).text == "one"
    reading.close()
    reading.close()
    CodexReader().read(a_file(path)).close()
