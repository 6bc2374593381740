"""What a Gemini CLI session amounts to: rewritten, replaced and withdrawn messages, calls in two forms, the harness."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memoryd.errors import SessionWithoutItems
from memoryd.sources.gemini import GeminiReader
from memoryd.sources.gemini_fold import MAX_MESSAGES
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.reader import Reading
from tests.support.gemini_sessions import CONTEXT, a_call, a_header, a_message, a_response, write_session
from tests.support.sessions import Command, iso

NOW = 1_700_000_000.0
SESSION = "2d247c28-8968-477b-b063-c99f17f9f9f8"
HUMAN, FINAL, COMMENTARY = ItemKind.HUMAN, ItemKind.ASSISTANT_FINAL, ItemKind.ASSISTANT_COMMENTARY
CALL, OUTPUT, HARNESS = ItemKind.TOOL_CALL, ItemKind.TOOL_OUTPUT, ItemKind.HARNESS_CONTEXT


def told(home: Path, *records: Any) -> tuple[list[Item], Reading]:
    """Read a session of these records after a header; messages get times, two seconds apart."""
    lines = [a_header(SESSION, NOW)]
    for step, record in enumerate(records, start=1):
        at = {"timestamp": iso(NOW + 2 * step)} if "id" in record else {}
        lines.append(at | record)
    content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    write_session(home, SESSION, content, NOW, NOW)
    reader = GeminiReader()
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        return list(reading), reading


def words(home: Path, *records: Any) -> list[tuple[ItemKind, str]]:
    return [(item.kind, item.text) for item in told(home, *records)[0]]


def user(text: str, name: str | None = None) -> dict[str, Any]:
    return a_message("user", text) | ({"id": name} if name else {})


def agent(text: Any, name: str | None = None, **fields: Any) -> dict[str, Any]:
    return a_message("gemini", text, **fields) | ({"id": name} if name else {})


def replaced(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"$set": {"messages": [{"timestamp": iso(NOW + 900)} | message for message in messages]} | members}


CONTEXT_MESSAGE = user(CONTEXT.format(cwd="/home/dev/shop"), "context")
SUMMARY = user("<state_snapshot>\nwe fixed it\n</state_snapshot>", "summary")

# the log of edits


def test_a_later_line_with_the_same_id_takes_the_place_of_the_earlier(tmp_path: Path) -> None:
    assert words(tmp_path, user("old", "u"), agent("reply", "a"), user("new", "u")) == [
        (FINAL, "reply"),
        (HUMAN, "new"),
    ]


def test_a_call_that_is_written_as_it_proceeds_is_told_once(tmp_path: Path) -> None:
    call = a_call("x", 1, Command("make", "ok"))
    started = {key: value for key, value in call.items() if key != "result"} | {"status": "executing"}
    calling = agent("I build.", "a", toolCalls=[started])
    items = words(tmp_path, user("build"), agent("I build.", "a"), calling, calling | {"toolCalls": [call]})
    assert items == [(HUMAN, "build"), (FINAL, "I build."), (CALL, "make"), (OUTPUT, "ok")]


def test_a_list_takes_the_place_of_all_messages(tmp_path: Path) -> None:
    items, reading = told(tmp_path, user("a", "1"), agent("b", "2"), replaced(user("c", "3"), agent("d", "4")))
    assert [(item.kind, item.text) for item in items] == [(HUMAN, "c"), (FINAL, "d")]
    assert reading.dropped == Counter(rolled_back=2)


def test_a_list_may_say_a_persons_words_anew(tmp_path: Path) -> None:
    assert words(tmp_path, user("old", "1"), replaced(user("new", "1"))) == [(HUMAN, "new")]


def test_a_message_that_still_stands_keeps_its_own_line_with_its_time_and_calls(tmp_path: Path) -> None:
    call = a_call("x", 1, Command("make", "no rule", 2))
    as_part = {"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}}
    items, reading = told(
        tmp_path,
        user("build", "1"),
        agent("I build.", "2", toolCalls=[call]),
        replaced(
            user("build", "1"),
            agent([{"text": "thinking", "thought": True}, {"text": "I build."}, as_part], "2"),
            a_message("user", call["result"]) | {"id": "2_response"},
        ),
        user("again", "3"),
    )
    assert [(item.kind, item.text, item.ordinal) for item in items] == [
        (HUMAN, "build", 1), (FINAL, "I build.", 2), (CALL, "make", 2), (OUTPUT, "no rule", 2),
        (HUMAN, "again", 4)]  # fmt: skip
    assert items[0].at == NOW + 2
    assert reading.dropped == Counter()


def test_the_last_of_several_lists_counts(tmp_path: Path) -> None:
    lists = replaced(user("a", "1"), user("b", "2")), replaced(user("a", "1"), user("c", "3"))
    assert words(tmp_path, *lists, user("d", "4")) == [(HUMAN, "a"), (HUMAN, "c"), (HUMAN, "d")]


def test_a_resume_that_begins_with_the_context_takes_nothing_away(tmp_path: Path) -> None:
    resumed = a_header(SESSION, NOW + 600), replaced(CONTEXT_MESSAGE), replaced()
    items = words(tmp_path, replaced(CONTEXT_MESSAGE), user("a"), agent("b"), *resumed)
    assert [kind for kind, _ in items] == [HARNESS, HUMAN, FINAL]


def test_what_was_compressed_was_said_all_the_same(tmp_path: Path) -> None:
    records = user("a", "1"), agent("b", "2"), replaced(SUMMARY, agent("Got it.", "x"), user("a", "y")), user("c", "3")
    items, reading = told(tmp_path, *records)
    assert [(item.kind, item.text) for item in items] == [(HUMAN, "a"), (FINAL, "b"), (HUMAN, "c")]
    assert reading.dropped == Counter(compaction=1)


def test_a_rewind_takes_a_message_and_all_that_follows_away(tmp_path: Path) -> None:
    records = user("a", "1"), agent("b", "2"), user("c", "3"), agent("d", "4"), {"$rewindTo": "3"}, user("e", "5")
    items, reading = told(tmp_path, *records)
    assert [(item.kind, item.text) for item in items] == [(HUMAN, "a"), (FINAL, "b"), (HUMAN, "e")]
    assert reading.dropped == Counter(rolled_back=2)


def test_a_rewind_finds_messages_of_a_list(tmp_path: Path) -> None:
    listed = replaced(user("a", "1"), user("b", "2"), agent("c", "3"))
    assert words(tmp_path, listed, user("d", "4"), {"$rewindTo": "2"}) == [(HUMAN, "a")]


def test_a_rewind_into_a_compression_takes_back_what_came_after_it(tmp_path: Path) -> None:
    records = user("a", "1"), replaced(SUMMARY, user("a", "y")), user("b", "2"), {"$rewindTo": "y"}, user("c", "3")
    assert words(tmp_path, *records) == [(HUMAN, "a"), (HUMAN, "c")]


def test_a_rewind_to_nowhere_is_counted_and_takes_nothing(tmp_path: Path) -> None:
    items, reading = told(tmp_path, user("a"), {"$rewindTo": "unheard-of"})
    assert [item.text for item in items] == ["a"]
    assert reading.unknown == Counter({"$rewindTo": 1})


def test_a_message_that_is_written_again_after_a_rewind_counts(tmp_path: Path) -> None:
    assert words(tmp_path, user("a", "1"), {"$rewindTo": "1"}, user("a", "1")) == [(HUMAN, "a")]


def test_a_header_may_bring_messages_along(tmp_path: Path) -> None:
    header = a_header(SESSION, NOW) | replaced(user("a"))["$set"]
    assert words(tmp_path, header) == [(HUMAN, "a")]


def test_very_many_messages_are_followed_in_bounded_memory(tmp_path: Path) -> None:
    many = [user(f"{number}", f"{number}") for number in range(MAX_MESSAGES + 10)]
    items, reading = told(tmp_path, *many, user("last", f"{MAX_MESSAGES}"), {"$rewindTo": "0"})
    assert len(items) == MAX_MESSAGES + 10
    assert items[-1].text == "last"
    assert reading.unknown == Counter({"$rewindTo": 1})


# calls


def test_an_output_comes_from_the_persons_row_where_the_call_has_none(tmp_path: Path) -> None:
    call = a_call("x", 1, Command("make", "ok"))
    result = call.pop("result")
    items = words(tmp_path, user("a"), agent("", toolCalls=[call]), a_message("user", result), agent("done"))
    assert items == [(HUMAN, "a"), (CALL, "make"), (OUTPUT, "ok"), (FINAL, "done")]


def test_calls_may_be_parts_of_what_the_agent_says(tmp_path: Path) -> None:
    part = {"functionCall": {"id": "c", "name": "read_file", "args": {"file_path": "x"}}}
    response = a_message("user", [a_response("c", "read_file", {"output": "content"})])
    items, _ = told(tmp_path, user("a"), agent([{"text": "I look."}, part]), response, agent("Seen."))
    assert [(item.kind, item.text, item.tool, item.call_id) for item in items[1:4]] == [
        (COMMENTARY, "I look.", None, None),
        (CALL, 'read_file {"file_path":"x"}', "read_file", "c"),
        (OUTPUT, "content", "read_file", "c"),
    ]


def test_an_output_has_the_time_of_its_call(tmp_path: Path) -> None:
    call = a_call("x", 1, Command("make", "ok")) | {"timestamp": iso(NOW + 77)}
    items, _ = told(tmp_path, user("a"), agent("", toolCalls=[call]))
    assert [item.at for item in items] == [NOW + 2, NOW + 4, NOW + 77]


def test_a_tool_of_a_server_is_external_whatever_it_is_called(tmp_path: Path) -> None:
    call = a_call("x", 1, Command("q")) | {"name": "lookup", "displayName": "lookup (wiki MCP Server)"}
    items, _ = told(tmp_path, user("a"), agent("", toolCalls=[call]))
    assert [item.external for item in items[1:]] == [True, True]


def test_images_in_results_are_counted(tmp_path: Path) -> None:
    call = a_call("x", 1, Command("shot", "done"))
    call["result"].append({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})
    items, reading = told(tmp_path, user("a"), agent("", toolCalls=[call]))
    assert items[-1].text == "done"
    assert reading.dropped == Counter(image=1)


# words


def test_the_person_typed_what_is_shown(tmp_path: Path) -> None:
    sent = [{"text": "explain @a.py"}, {"text": "the whole of a.py"}]
    message = a_message("user", sent, displayContent=[{"text": "explain @a.py"}])
    items, reading = told(tmp_path, message)
    assert [(item.kind, item.text) for item in items] == [(HUMAN, "explain @a.py")]
    assert reading.dropped == Counter(expansion=1)


def test_what_is_shown_and_sent_alike_is_told_once(tmp_path: Path) -> None:
    items, reading = told(tmp_path, a_message("user", "a", displayContent=[{"text": "a"}]))
    assert [item.text for item in items] == ["a"]
    assert reading.dropped == Counter()


@pytest.mark.parametrize("kind", ["info", "error", "warning"])
def test_notices_of_the_program_are_no_evidence(tmp_path: Path, kind: str) -> None:
    items, reading = told(tmp_path, user("a"), a_message(kind, "Request cancelled."))
    assert [item.text for item in items] == ["a"]
    assert reading.dropped == Counter(notice=1)


def test_thoughts_are_dropped(tmp_path: Path) -> None:
    thoughts = [{"subject": "s", "description": "secretly"}]
    items, reading = told(tmp_path, user("a"), agent("b", thoughts=thoughts), agent([{"text": "t", "thought": True}]))
    assert [item.text for item in items] == ["a", "b"]
    assert reading.dropped == Counter(reasoning=1)


def test_a_message_of_a_kind_nobody_knows_is_counted(tmp_path: Path) -> None:
    _, reading = told(tmp_path, user("a"), a_message("hologram", "b"), {"id": "x"}, {"brand": "new"}, {"id": 7})
    assert reading.unknown == Counter({"hologram": 1, "message": 1, "record": 2})


def test_a_session_of_records_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    write_session(tmp_path, SESSION, b'{"brand": "new"}\n', NOW, NOW)
    reader = GeminiReader()
    (file,) = reader.find([tmp_path])
    with reader.read(file) as reading, pytest.raises(SessionWithoutItems, match="17 bytes"):
        list(reading)


def test_an_old_session_without_anything_known_is_an_error(tmp_path: Path) -> None:
    write_session(tmp_path, SESSION, b'{"messages": [7, {"type": "hologram"}]}', NOW, NOW, legacy=True)
    reader = GeminiReader()
    (file,) = reader.find([tmp_path])
    with reader.read(file) as reading, pytest.raises(SessionWithoutItems):
        list(reading)
    assert reading.unknown == Counter({"message": 1, "hologram": 1})


def test_a_message_stands_where_only_a_torn_line_would_rewrite_it(tmp_path: Path) -> None:
    lines = [a_header(SESSION, NOW), {"timestamp": iso(NOW)} | user("a"), {"timestamp": iso(NOW)} | agent("b", "m")]
    torn = json.dumps({"timestamp": iso(NOW)} | agent("b, and more", "m")).replace(
        '{"timestamp"', '{"id": "m", "timestamp"'
    )
    content = "".join(f"{json.dumps(line)}\n" for line in lines) + torn[:-20] + "\n"
    write_session(tmp_path, SESSION, content.encode(), NOW, NOW)
    reader = GeminiReader()
    (file,) = reader.find([tmp_path])
    with reader.read(file) as reading:
        assert [item.text for item in reading] == ["a", "b"]
    assert reading.bad_lines == 1


# sessions that read as plain by how their lines begin

NOWHERE = '{"$rewindTo": "nobody"}'  # takes nothing away, but has every line looked into


def read_bytes(home: Path, content: bytes) -> tuple[list[Item], Reading]:
    write_session(home, SESSION, content, NOW, NOW)
    reader = GeminiReader()
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        return list(reading), reading


def a_plain_line(random: Random, name: str, step: int) -> str:
    """Write what stands in a session that takes nothing back; a message begins with its id, as the program does it."""
    at, text = {"timestamp": iso(NOW + step)}, f"text {step}"
    message = random.choice(
        [user(text), agent(text), agent(text, toolCalls=[a_call("x", step, Command("make", "ok"))])]
    )
    whole = json.dumps({"id": name} | at | message | {"id": name})
    others = (
        json.dumps({"$set": {"lastUpdated": iso(NOW + step)}}),
        json.dumps(replaced(CONTEXT_MESSAGE)),
        json.dumps({"id": name} | at | a_message("info", "Updated.") | {"id": name}),
        json.dumps({"$set": {"summary": text}}),
        whole[:-20],
        "",
    )
    return whole if random.random() < 0.6 else random.choice(others)


@pytest.mark.parametrize("seed", range(60))
def test_a_plain_session_tells_what_it_tells_when_every_line_is_looked_into(tmp_path: Path, seed: int) -> None:
    random, name, lines = Random(seed), "m0", [json.dumps(a_header(SESSION, NOW))]
    for step in range(12):
        name = name if random.random() < 0.4 else f"m{step}"
        lines.append(a_plain_line(random, name, step))
    ending = random.choice(["\n", "\r\n"])
    content = ending.join([*lines, ""]).encode()
    items, reading = read_bytes(tmp_path, content)
    thorough, other = read_bytes(tmp_path, content + f"{NOWHERE}\n".encode())
    assert items == thorough
    assert reading.dropped == other.dropped
    assert reading.bad_lines == other.bad_lines


def test_a_message_behind_a_torn_one_that_was_written_anew_later_is_told_once(tmp_path: Path) -> None:
    old, between, new = (
        json.dumps({"id": name, "timestamp": iso(NOW)} | agent(text, name))
        for name, text in (("m", "old"), ("n", "between"), ("m", "new"))
    )
    lines = json.dumps(a_header(SESSION, NOW)), old[:30] + old, between, new, NOWHERE, ""
    items, reading = read_bytes(tmp_path, "\n".join(lines).encode())
    assert [item.text for item in items] == ["between", "new"]
    assert reading.bad_lines == 1
