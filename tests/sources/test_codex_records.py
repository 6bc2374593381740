"""Lines become records in every shape that Codex has had, and session_meta says who drove a session."""

import json
from typing import Any

import pytest

from memoryd.sources.codex_records import (
    SessionMeta,
    decode_record,
    parse_meta,
)
from memoryd.sources.decoding import is_blank
from memoryd.sources.identity import canonical_thread_id, uuid_time
from memoryd.sources.items import MemoryMode, SessionKind
from memoryd.sources.jsonl import Line

THREAD = "01a2284b-263a-7881-b0d7-aa5a2ff0d2e2"
PARENT = "01a2284b-5eaa-70b1-8eee-7ff17262d9ed"


def a_line(data: bytes, index: int = 3) -> Line:
    return Line(index, data, ended=True)


def a_meta(**payload: Any) -> SessionMeta:
    record = decode_record(a_line(json.dumps({"type": "session_meta", "payload": {"id": THREAD} | payload}).encode()))
    assert record is not None
    meta = parse_meta(record)
    assert meta is not None
    return meta


def test_an_enveloped_line_has_its_own_ordinal_and_time() -> None:
    record = decode_record(
        a_line(b'{"timestamp":"2026-11-29T17:12:25.308Z","ordinal":9,"type":"response_item","payload":{"a":1}}')
    )
    assert record is not None
    assert (record.type, bytes(record.payload), record.at, record.ordinal) == (
        "response_item", b'{"a":1}', 1795972345.308, 9,
    )  # fmt: skip


@pytest.mark.parametrize("ordinal", ["null", '"7"', "-1", "1.5", "99999999999999999999"])
def test_a_line_without_a_usable_ordinal_is_counted_by_its_index(ordinal: str) -> None:
    record = decode_record(a_line(b'{"type":"x","payload":{},"ordinal":' + ordinal.encode() + b"}"))
    assert record is not None
    assert record.ordinal == 3


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"type":"message","role":"user","content":[]}', "response_item"),
        (b'{"record_type":"state"}', "state"),
        (b'{"id":"x","timestamp":"2025-05-07T17:24:21.123Z"}', "session_meta"),
        (b'{"timestamp":"2025-05-07T17:24:21.123Z","type":"shutdown"}', "shutdown"),
    ],
)
def test_lines_without_a_payload_are_told_apart(data: bytes, expected: str) -> None:
    record = decode_record(a_line(data))
    assert record is not None
    assert record.type == expected


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbf{"type":"event_msg","payload":{}}',
        b'{"type":"event_msg","payload":{"used":NaN}}',
        b'{"type":"event_msg","payload":{"text":"\\ud83d"}}',
        b'{"type":"event_msg","payload":{"text":"a\x00b"}}',
        b'{"type":"event_msg","payload":{"text":"caf\xe9"}}',
        b'{"type":"event_msg","payload":{}}\r',
    ],
)
def test_what_only_a_lenient_decoder_reads_is_read(data: bytes) -> None:
    record = decode_record(a_line(data))
    assert record is not None
    assert record.type == "event_msg"


@pytest.mark.parametrize(
    "data", [b"{", b'{"a":1}{"b":2}', b"42", b"[]", b"null", b"\x00\x00", b'{"a":"\\', b"", b" \r", b"NaN", None]
)
def test_what_is_no_object_is_no_record(data: bytes | None) -> None:
    assert decode_record(Line(0, data, ended=True)) is None


def test_only_white_space_is_blank() -> None:
    assert [is_blank(a_line(data)) for data in (b"", b" \t\r", b"\x00", b"x")] == [True, True, False, False]
    assert not is_blank(Line(0, None, ended=True))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-11-29T17:12:25Z", 1795972345.0),
        ("2026-11-29T18:12:25+01:00", 1795972345.0),
        ("2026-11-29T17:12:25", 1795972345.0),
        ("not a time", None),
        (None, None),
    ],
)
def test_a_time_without_an_offset_is_utc_and_nonsense_is_none(written: str | None, expected: float | None) -> None:
    assert a_meta(timestamp=written).started_at == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("cli", SessionKind.INTERACTIVE),
        ("vscode", SessionKind.INTERACTIVE),
        ({"custom": "atlas"}, SessionKind.INTERACTIVE),
        ({"custom": "chatgpt"}, SessionKind.INTERACTIVE),
        (None, SessionKind.INTERACTIVE),
        ("exec", SessionKind.NONINTERACTIVE),
        ("mcp", SessionKind.NONINTERACTIVE),
        ("unknown", SessionKind.NONINTERACTIVE),
        ("a source of next year", SessionKind.NONINTERACTIVE),
        ({"custom": "sdk"}, SessionKind.NONINTERACTIVE),
        ({}, SessionKind.NONINTERACTIVE),
        (7, SessionKind.NONINTERACTIVE),
        ({"subagent": "review"}, SessionKind.SUBAGENT),
        ({"subagent": "compact"}, SessionKind.SUBAGENT),
        ({"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}, SessionKind.SUBAGENT),
        ({"subagent": {"other": "guardian"}}, SessionKind.SUBAGENT),
        ({"internal": "something"}, SessionKind.SUBAGENT),
        ({"internal": "memory_consolidation"}, SessionKind.MEMORY_RUN),
        ({"subagent": "memory_consolidation"}, SessionKind.MEMORY_RUN),
        ({"subagent": {"other": "memory_consolidation"}}, SessionKind.MEMORY_RUN),
    ],
)
def test_the_source_says_who_drove_the_session(source: Any, expected: SessionKind) -> None:
    assert a_meta(source=source).kind is expected


def test_no_source_at_all_is_a_terminal_of_2025() -> None:
    assert a_meta().kind is SessionKind.INTERACTIVE


def test_a_thread_source_or_a_parent_makes_a_sub_agent_whatever_the_source() -> None:
    kinds = [a_meta(source="cli", thread_source=said).kind for said in ("user", "subagent", "memory_consolidation")] + [
        a_meta(source="cli", parent_thread_id=PARENT).kind
    ]
    assert kinds == [SessionKind.INTERACTIVE, SessionKind.SUBAGENT, SessionKind.MEMORY_RUN, SessionKind.SUBAGENT]


def test_the_parent_is_named_by_the_spawn_when_nothing_else_names_it() -> None:
    meta = a_meta(source={"subagent": {"thread_spawn": {"parent_thread_id": PARENT.upper()}}})
    assert meta.parent_id == PARENT


def test_a_fork_names_what_it_was_forked_from() -> None:
    meta = a_meta(forked_from_id=PARENT, history_base={"thread_id": PARENT, "end_ordinal_exclusive": 72})
    assert (meta.forked_from, meta.parent_id, meta.has_history_base) == (PARENT, None, True)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("enabled", MemoryMode.ENABLED),
        ("Disabled", MemoryMode.DISABLED),
        ("polluted", MemoryMode.POLLUTED),
        ("a mode of next year", MemoryMode.DISABLED),
        (None, None),
        (1, None),
    ],
)
def test_an_unknown_memory_mode_counts_as_disabled(written: Any, expected: MemoryMode | None) -> None:
    assert a_meta(memory_mode=written).memory_mode is expected


def test_the_session_id_stands_in_for_a_missing_id() -> None:
    record = decode_record(a_line(b'{"type":"session_meta","payload":{"session_id":"%s"}}' % THREAD.encode()))
    assert record is not None
    meta = parse_meta(record)
    assert meta is not None
    assert meta.thread_id == THREAD


def test_a_meta_without_any_id_names_no_thread() -> None:
    record = decode_record(a_line(b'{"type":"session_meta","payload":{"id":""}}'))
    assert record is not None
    assert parse_meta(record) is None


def test_facts_of_the_wrong_type_are_left_out() -> None:
    meta = a_meta(cwd=3, git=[], timestamp=5, originator=None, ephemeral="true", subagent_history_start_ordinal="x")
    assert (meta.cwd, meta.git_branch, meta.started_at, meta.originator, meta.ephemeral, meta.history_starts_at) == (
        None, None, None, None, False, None,
    )  # fmt: skip


def test_a_uuid_is_bare_and_any_other_id_names_its_agent() -> None:
    assert canonical_thread_id("codex", THREAD.upper()) == THREAD
    assert canonical_thread_id("codex", "not-a-uuid") == "codex:not-a-uuid"


def test_only_a_version_7_uuid_tells_a_time() -> None:
    assert uuid_time(THREAD) == 1795972343.354
    assert [uuid_time(text) for text in ("87207ab4-43f1-4c73-8be2-1290dad5cffd", "auto-compact-0", None)] == [None] * 3
