"""The reader of OpenCode: where its sessions lie, whose they are, and what they hold in either store."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryd.errors import SessionUnreadable, SessionVanished, SessionWithoutItems
from memoryd.sources.items import Item, ItemKind, SessionFile, SessionKind
from memoryd.sources.opencode import OpenCodeReader
from memoryd.sources.reader import Reading
from tests.support.opencode_sessions import (
    RUN_RULES,
    StoredMessage,
    a_fork,
    a_stored_session,
    an_opencode_session,
    connect,
    install_recorded_opencode,
    text_part,
    tool_part,
    write_session,
)
from tests.support.sessions import Command, Turn

NOW = 1_700_000_000.0
STORES = ("database", "tree")
MEGABYTE = 1024 * 1024


@pytest.fixture
def reader() -> OpenCodeReader:
    return OpenCodeReader()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def read(reader: OpenCodeReader, path: Path, relatives: Sequence[SessionFile] = ()) -> tuple[list[Item], Reading]:
    with reader.read(reader.locate(path), relatives) as reading:
        return list(reading), reading


def humans(items: Sequence[Item]) -> list[str]:
    return [item.text for item in items if item.kind is ItemKind.HUMAN]


def parts_of(home: Path, store: str, *parts: Any, role: str = "assistant", **more: Any) -> tuple[list[Item], Reading]:
    """Read a session in which a person says hello and one message with these parts follows."""
    path = an_opencode_session(
        home, now=NOW, turns=[Turn("hello", None)], store=store, extra=[StoredMessage(role, 0, list(parts), more)]
    )
    items, reading = read(OpenCodeReader(), path)
    assert items[0].text == "hello"
    return items[1:], reading


# the recorded sessions


def test_every_recorded_session_is_found_with_its_kind(reader: OpenCodeReader, tmp_path: Path) -> None:
    paths = install_recorded_opencode(tmp_path, now=NOW, idle_hours=7)
    files = list(reader.find([tmp_path]))
    assert sorted(file.path for file in files) == paths
    kinds = Counter(reader.head(file).kind for file in files)
    assert kinds == {SessionKind.SUBAGENT: 3, SessionKind.INTERACTIVE: 4, SessionKind.NONINTERACTIVE: 4}


@pytest.mark.parametrize("version", ["1.0.185", "1.2.27", "1.18.33"])
def test_the_words_of_the_recorded_sessions_come_out_without_the_quotes_of_the_command_line(
    reader: OpenCodeReader, tmp_path: Path, version: str
) -> None:
    install_recorded_opencode(tmp_path, now=NOW, idle_hours=7, names=[version])
    said = {tuple(humans(read(reader, file.path)[0])) for file in reader.find([tmp_path])}
    first = (
        "Please fix the pagination off-by-one bug in calc.py",
        "From now on I prefer that you always run the tests",
    )
    fork = {(*first, "From now on I prefer short answers")} if version != "1.0.185" else set()
    assert said == {first, ("Please delegate a look at the repo",), ("SCOUT list the files in this repo",)} | fork


def test_a_recorded_fork_tells_only_what_its_parent_does_not(reader: OpenCodeReader, tmp_path: Path) -> None:
    install_recorded_opencode(tmp_path, now=NOW, idle_hours=7, names=["1.18.33"])
    heads = {file: reader.head(file) for file in reader.find([tmp_path])}
    (fork,) = [file for file, head in heads.items() if head.kind is SessionKind.INTERACTIVE]
    older = [file for file, head in heads.items() if head.lineage == heads[fork].lineage and file != fork]
    assert len(older) == 1
    items, reading = read(reader, fork.path, older)
    assert humans(items) == ["From now on I prefer short answers"]
    assert reading.dropped == {"copied": 12}


# finding and naming


def test_a_database_names_its_sessions_by_their_ids_and_describes_them_by_rows_and_time(
    reader: OpenCodeReader, tmp_path: Path
) -> None:
    path = an_opencode_session(tmp_path, now=NOW, idle_hours=7, turns=[("a", "b"), ("c", "d")])
    assert path == tmp_path / "opencode.db#ses_one"
    (file,) = reader.find([tmp_path])
    assert file == SessionFile("opencode", str(path), 4 + 6, int((NOW - 7 * 3600) * 1e9))
    assert reader.tail(file).record_bytes == 10
    assert reader.head(file).thread_id == "opencode:ses_one"


def test_the_databases_of_other_channels_are_read_and_other_files_are_not(
    reader: OpenCodeReader, tmp_path: Path
) -> None:
    for number, name in enumerate(("opencode.db", "opencode-dev.db", "opencode.db.bak", "other.db", "opencodex.db")):
        an_opencode_session(tmp_path, now=NOW, name=str(number), store=name)
    assert [file.path.name for file in reader.find([tmp_path])] == ["opencode.db#ses_0", "opencode-dev.db#ses_1"]


def test_a_session_that_stands_in_both_stores_is_the_databases(reader: OpenCodeReader, tmp_path: Path) -> None:
    session = a_stored_session(now=NOW)
    in_tree = write_session(tmp_path, session, store="tree")
    (before,) = reader.find([tmp_path])
    assert before.path == in_tree
    marks = reader.tail(before), reader.head(before), read(reader, in_tree)[0]
    path = write_session(tmp_path, session)
    write_session(tmp_path, session, store="opencode-dev.db")
    (after,) = reader.find([tmp_path])
    assert after.path == path
    # the migration alone is no news: the watermark, the identity and the words are what they were
    assert (reader.tail(after), reader.head(after), read(reader, path)[0]) == marks


def test_an_archived_session_is_still_a_session(reader: OpenCodeReader, tmp_path: Path) -> None:
    path = an_opencode_session(tmp_path, now=NOW, archived_ms=int(NOW * 1000))
    assert [file.path for file in reader.find([tmp_path])] == [path]


def test_ids_that_cannot_stand_in_a_path_are_nobodys(reader: OpenCodeReader, tmp_path: Path) -> None:
    an_opencode_session(tmp_path, now=NOW)
    with closing(connect(tmp_path / "opencode.db")) as connection:
        for name in ("../../x", "a#b", "", "new\nline", "x" * 300):
            connection.execute(
                "INSERT INTO session SELECT ?, project_id, parent_id, slug, directory, title, version, summary_diffs,"
                " revert, permission, time_created, time_updated, time_archived FROM session WHERE id = 'ses_one'",
                (name,),
            )
    assert [file.path.name for file in reader.find([tmp_path])] == ["opencode.db#ses_one"]


def test_a_home_with_a_number_sign_in_its_path_is_read(reader: OpenCodeReader, tmp_path: Path, store: str) -> None:
    home = tmp_path / "a#b c%41?d" / "opencode"
    path = an_opencode_session(home, now=NOW, store=store, turns=["hello"])
    (file,) = reader.find([home])
    assert file.path == path
    assert humans(read(reader, path)[0]) == ["hello"]
    assert reader.locate(path) == file


def test_a_home_needs_a_database_or_a_tree(reader: OpenCodeReader, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in STORES:
        an_opencode_session(tmp_path / name, now=NOW, store=name)
    homes = [tmp_path / "empty", tmp_path / "database", tmp_path / "tree"]
    assert reader.missing_roots(homes) == [tmp_path / "empty"]


# whose session


def test_a_session_with_a_parent_is_a_sub_agents(reader: OpenCodeReader, tmp_path: Path, store: str) -> None:
    path = an_opencode_session(tmp_path, now=NOW, store=store, parent_id="ses_other", permission=RUN_RULES)
    head = reader.head(reader.locate(path))
    assert (head.kind, head.parent_id) == (SessionKind.SUBAGENT, "opencode:ses_other")


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        (RUN_RULES, SessionKind.NONINTERACTIVE),
        (None, SessionKind.INTERACTIVE),
        ([], SessionKind.INTERACTIVE),
        ([{"permission": "edit", "pattern": "*", "action": "deny"}], SessionKind.INTERACTIVE),
        ([{"permission": "question", "pattern": "*", "action": "allow"}], SessionKind.INTERACTIVE),
        ("nonsense", SessionKind.INTERACTIVE),
    ],
)
def test_a_session_that_may_ask_nothing_was_started_by_opencode_run(
    reader: OpenCodeReader, tmp_path: Path, store: str, rules: Any, kind: SessionKind
) -> None:
    path = an_opencode_session(tmp_path, now=NOW, store=store, permission=rules)
    assert reader.head(reader.locate(path)).kind is kind


def test_a_head_tells_the_directory_and_the_time(reader: OpenCodeReader, tmp_path: Path, store: str) -> None:
    path = an_opencode_session(tmp_path, now=NOW, idle_hours=7, store=store, directory="/home/dev/über")
    head = reader.head(reader.locate(path))
    assert (head.cwd, head.git_branch, head.ephemeral) == ("/home/dev/über", None, False)
    assert head.started_at is not None
    assert NOW - 7 * 3600 - 60 < head.started_at < NOW - 7 * 3600


# forks


def test_a_fork_and_its_parent_share_a_lineage_and_strangers_do_not(
    reader: OpenCodeReader, tmp_path: Path, store: str
) -> None:
    parent = a_stored_session(now=NOW, turns=[("a", "b")])
    paths = [
        write_session(tmp_path, session, store=store)
        for session in (parent, a_fork(parent, name="two", at_ms=parent.updated_ms + 1000, turns=["c"]))
    ]
    paths.append(an_opencode_session(tmp_path, now=NOW - 5, name="three", store=store))
    one, two, three = (reader.head(reader.locate(path)).lineage for path in paths)
    assert one == two
    assert one != three


def test_the_first_of_its_kind_keeps_its_rows_and_later_forks_their_own(
    reader: OpenCodeReader, tmp_path: Path, store: str
) -> None:
    parent = a_stored_session(now=NOW, turns=[("a", "b"), ("c", "d")])
    fork = a_fork(parent, name="two", at_ms=parent.updated_ms + 1000, turns=["e"])
    again = a_fork(fork, name="three", at_ms=fork.updated_ms + 1000, turns=["f"])
    paths = [write_session(tmp_path, session, store=store) for session in (parent, fork, again)]
    files = [reader.locate(path) for path in paths]
    assert humans(read(reader, paths[0])[0]) == ["a", "c"]
    assert humans(read(reader, paths[1], files[:1])[0]) == ["e"]
    items, reading = read(reader, paths[2], files[:2])
    assert (humans(items), reading.dropped) == (["f"], {"copied": 6})
    # with the parent gone the rest belongs to the fork, and the younger one's only to itself
    assert humans(read(reader, paths[2], files[1:2])[0]) == ["f"]
    assert humans(read(reader, paths[2])[0]) == ["a", "c", "e", "f"]


def test_a_parent_loses_nothing_to_its_fork(reader: OpenCodeReader, tmp_path: Path, store: str) -> None:
    parent = a_stored_session(now=NOW, turns=[("a", "b")])
    path = write_session(tmp_path, parent, store=store)
    fork = write_session(tmp_path, a_fork(parent, name="two", at_ms=parent.updated_ms + 1000), store=store)
    assert humans(read(reader, path, [reader.locate(fork)])[0]) == ["a"]


def test_a_fork_in_the_database_knows_its_parent_in_the_tree(reader: OpenCodeReader, tmp_path: Path) -> None:
    parent = a_stored_session(now=NOW, turns=[("a", "b")])
    older = reader.locate(write_session(tmp_path, parent, store="tree"))
    fork = write_session(tmp_path, a_fork(parent, name="two", at_ms=parent.updated_ms + 1000, turns=["c"]))
    assert humans(read(reader, fork, [older])[0]) == ["c"]


def test_a_relative_that_is_gone_is_passed_over(reader: OpenCodeReader, tmp_path: Path, store: str) -> None:
    path = an_opencode_session(tmp_path, now=NOW, store=store, turns=["a"])
    gone = [
        SessionFile("opencode", str(tmp_path / "opencode.db#ses_gone"), 1, 1),
        SessionFile("opencode", str(tmp_path / "nowhere.db#ses_gone"), 1, 1),
        SessionFile("opencode", str(tmp_path / "storage/session/p/ses_gone.json"), 1, 1),
        SessionFile("opencode", str(tmp_path / "nothing.txt"), 1, 1),
    ]
    assert humans(read(reader, path, gone)[0]) == ["a"]


# what was said and done


def test_reasoning_steps_and_patches_are_no_words(tmp_path: Path, store: str) -> None:
    items, reading = parts_of(
        tmp_path,
        store,
        {"type": "step-start", "snapshot": "1"},
        {"type": "reasoning", "text": "hmm"},
        {"type": "patch", "hash": "1", "files": ["a"]},
        {"type": "snapshot", "snapshot": "1"},
        {"type": "agent", "name": "general"},
        {"type": "retry", "attempt": 1},
        {"type": "subtask", "prompt": "p", "description": "d", "agent": "a"},
        {"type": "from-the-future"},
        text_part("Done."),
        {"type": "step-finish", "reason": "stop"},
        finish="stop",
    )
    assert [(item.kind, item.text) for item in items] == [(ItemKind.ASSISTANT_FINAL, "Done.")]
    assert reading.dropped == {"reasoning": 1, "subtask": 1}
    assert reading.unknown == {"part.from-the-future": 1}


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (text_part("Called the Read tool", synthetic=True), "harness"),
        (text_part("a plug-in's notice", ignored=True), "harness"),
        (text_part("<system-reminder>plan mode</system-reminder>", synthetic=True), "reminder"),
        (text_part("<system-reminder>\nplan mode\n</system-reminder>\n"), "reminder"),
        ({"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}, "image"),
        ({"type": "file", "mime": "text/plain", "url": "file:///a/b"}, "attachment"),
        ({"type": "compaction", "auto": True}, "compaction"),
    ],
)
def test_what_the_harness_adds_to_the_persons_words_is_left_out(
    tmp_path: Path, store: str, part: dict[str, Any], reason: str
) -> None:
    items, reading = parts_of(tmp_path, store, part, text_part("and my own words"), role="user")
    assert humans(items) == ["and my own words"]
    assert reading.dropped == {reason: 1}


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ('"fix the bug"\n', "fix the bug"),
        ('"fix the bug"', "fix the bug"),
        ('"say \\"no\\" to it"\n', 'say "no" to it'),
        ('"ends with \\"it\\""', 'ends with "it"'),
        ('"explain this"\npiped in\n', "explain this\npiped in"),
        ("fix\n", "fix"),
        ('"quoted"', '"quoted"'),
        ('"a b" "c d"', '"a b" "c d"'),
        ('"a b', '"a b'),
        ("say \"a b\" to it", "say \"a b\" to it"),
        ("  indented\n\n", "  indented\n"),
        ('"', '"'),
        ('"a C:\\"', "a C:\\\""[:5]),
    ],
)  # fmt: skip
def test_what_opencode_run_puts_around_an_argument_is_taken_off(
    tmp_path: Path, store: str, stored: str, typed: str
) -> None:
    items, _ = parts_of(tmp_path, store, text_part(stored), role="user")
    assert humans(items) == [typed]


def test_why_the_model_stopped_tells_what_its_words_were(tmp_path: Path, store: str) -> None:
    talk = [
        StoredMessage("assistant", 0, [text_part("I look.")], {"finish": "tool-calls"}),
        StoredMessage("assistant", 0, [text_part("unsaid one")], {"finish": "unknown"}),
        StoredMessage("assistant", 0, [text_part("cut off")], {}),
        StoredMessage("user", 0, [text_part("go on")]),
        StoredMessage("assistant", 0, [text_part("Done.")], {"finish": "stop"}),
    ]
    path = an_opencode_session(tmp_path, now=NOW, turns=[Turn("hello", None)], store=store, extra=talk)
    items, _ = read(OpenCodeReader(), path)
    assert [(item.kind.value, item.text) for item in items] == [
        ("human", "hello"),
        ("assistant_commentary", "I look."),
        ("assistant_commentary", "unsaid one"),
        ("assistant_final", "cut off"),
        ("human", "go on"),
        ("assistant_final", "Done."),
    ]


def test_a_summary_is_compaction_and_what_came_before_it_stays(tmp_path: Path, store: str) -> None:
    talk = [
        StoredMessage("user", 0, [{"type": "compaction", "auto": True}]),
        StoredMessage("assistant", 0, [text_part("We did this and that.")], {"summary": True, "mode": "compaction"}),
        StoredMessage("user", 0, [text_part("Continue if you have next steps", synthetic=True)]),
        StoredMessage("user", 0, [text_part("my next wish")], {"summary": {"diffs": []}}),
    ]
    path = an_opencode_session(tmp_path, now=NOW, turns=[("first", "answer")], store=store, extra=talk)
    items, reading = read(OpenCodeReader(), path)
    assert [item.text for item in items] == ["first", "answer", "my next wish"]
    assert reading.dropped == {"compaction": 2, "harness": 1}


def test_a_shell_call_is_its_command_line_with_its_output_and_exit_code(tmp_path: Path, store: str) -> None:
    part = tool_part("bash", {"command": "ls -la | head", "description": "d"}, "total 0\n", exit_code=2)
    part["state"]["time"] = {"start": 1_699_000_000_500, "end": 1_699_000_001_500}
    (call, output), _ = parts_of(tmp_path, store, part, path={"cwd": "/home/dev/other"})
    assert (call.kind, call.text, call.tool, call.call_id) == (ItemKind.TOOL_CALL, "ls -la | head", "bash", "call_bash")
    assert (output.kind, output.text, output.exit_code) == (ItemKind.TOOL_OUTPUT, "total 0\n", 2)
    assert (call.at, output.at, call.cwd) == (1_699_000_000.5, 1_699_000_001.5, "/home/dev/other")
    assert call.ordinal == output.ordinal == 3


def test_a_tool_that_failed_or_is_still_running_tells_what_there_is(tmp_path: Path, store: str) -> None:
    failed, running = tool_part("read", {"filePath": "/a"}), tool_part("bash", {"command": "sleep 9"})
    failed["state"] = {"status": "error", "input": {"filePath": "/a"}, "error": "no such file"}
    running["state"] = {"status": "running", "input": {"command": "sleep 9"}, "time": {"start": 1}}
    items, _ = parts_of(tmp_path, store, failed, running)
    assert [(item.kind.value, item.text) for item in items] == [
        ("tool_call", 'read {"filePath":"/a"}'),
        ("tool_output", "no such file"),
        ("tool_call", "sleep 9"),
    ]


@pytest.mark.parametrize(
    ("tool", "external"),
    [
        ("webfetch", True),
        ("websearch", True),
        ("github_create_issue", True),
        ("bash", False),
        ("apply_patch", False),
        ("task", False),
    ],
)
def test_the_web_and_mcp_servers_are_external(tmp_path: Path, store: str, tool: str, external: bool) -> None:
    items, _ = parts_of(tmp_path, store, tool_part(tool, {"q": "x"}, "y"))
    assert [item.external for item in items] == [external, external]


def test_the_answers_to_a_question_are_the_person_speaking(tmp_path: Path, store: str) -> None:
    asked = {"questions": [{"question": "Which database?"}, {"question": "Which cache?"}, {"question": "Else?"}]}
    part = tool_part("question", asked, 'User has answered your questions: "Which database?"="SQLite"')
    part["state"]["metadata"] = {"answers": [["SQLite"], ["none", "later"], []]}
    items, _ = parts_of(tmp_path, store, part)
    answers = "Asked: Which database?\nAnswered: SQLite\nAsked: Which cache?\nAnswered: none, later"
    assert humans(items) == [answers]
    assert [item.kind for item in items] == [ItemKind.TOOL_CALL, ItemKind.HUMAN]


def test_images_in_a_tools_result_are_counted(tmp_path: Path, store: str) -> None:
    file = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}
    _, reading = parts_of(tmp_path, store, tool_part("read", {"filePath": "a.png"}, "read", attachments=[file, file]))
    assert reading.dropped == {"image": 2}


# taken back


def test_messages_after_the_point_of_a_revert_are_withdrawn(tmp_path: Path, store: str) -> None:
    session = a_stored_session(now=NOW, turns=[("a", "b"), ("c", "d"), ("e", "f")])
    session.revert = {"messageID": session.messages[2].message_id, "snapshot": "1", "diff": "..."}
    items, reading = read(OpenCodeReader(), write_session(tmp_path, session, store=store))
    assert [item.text for item in items] == ["a", "b"]
    assert reading.dropped == {"rolled_back": 4}


def test_a_revert_to_a_part_withdraws_the_rest_of_its_message(tmp_path: Path, store: str) -> None:
    session = a_stored_session(now=NOW, turns=[("a", "b"), ("c", "d")])
    session.messages[1].parts = [{"id": f"prt_{number}", **text_part(f"b{number}")} for number in range(3)]
    session.revert = {"messageID": session.messages[1].message_id, "partID": "prt_1"}
    items, reading = read(OpenCodeReader(), write_session(tmp_path, session, store=store))
    assert [item.text for item in items] == ["a", "b0"]
    assert reading.dropped == {"rolled_back": 4}


# damage and size


def test_rows_that_are_no_json_are_counted_and_harm_no_other(tmp_path: Path, store: str) -> None:
    items, reading = parts_of(tmp_path, store, '{"type": "text", "te', "", "[]", text_part("fine"), finish="stop")
    assert [item.text for item in items] == ["fine"]
    assert reading.bad_lines == 3


def test_a_lone_surrogate_costs_one_character(tmp_path: Path, store: str) -> None:
    items, reading = parts_of(tmp_path, store, '{"type": "text", "text": "a \\ud83d b"}', finish="stop")
    assert [item.text for item in items] == ["a ? b"]
    assert reading.bad_lines == 0


def test_rows_of_which_none_is_understood_are_an_error(tmp_path: Path, store: str) -> None:
    path = an_opencode_session(tmp_path, now=NOW, turns=[], store=store, extra=[StoredMessage("robot", 0, [])])
    with pytest.raises(SessionWithoutItems):
        read(OpenCodeReader(), path)


def test_a_session_without_messages_holds_nothing_and_is_no_error(tmp_path: Path, store: str) -> None:
    path = an_opencode_session(tmp_path, now=NOW, turns=[], store=store)
    reader = OpenCodeReader()
    items, reading = read(reader, path)
    assert (items, reading.record_bytes) == ([], 0)
    assert reader.head(reader.locate(path)).lineage is None


def test_a_big_row_costs_its_first_megabyte(tmp_path: Path, store: str) -> None:
    image = {"type": "file", "mime": "image/png", "url": "data:image/png;base64," + "A" * 3 * MEGABYTE}
    items, reading = parts_of(
        tmp_path,
        store,
        image,
        text_part("word " * MEGABYTE),
        tool_part("bash", {"command": "cat big"}, "x" * 3 * MEGABYTE, exit_code=1),
        tool_part("write", {"filePath": "a", "content": "y" * 3 * MEGABYTE}, "ok"),
        finish="stop",
    )
    text, call, output, write, written = items
    assert text.kind is ItemKind.ASSISTANT_FINAL
    assert text.text.startswith("word word")
    assert (call.text, output.exit_code, written.text) == ("cat big", 1, "ok")
    assert write.text.startswith("write {")
    assert max(len(item.text) for item in items) < 1.1 * MEGABYTE
    assert (reading.dropped, reading.bad_lines) == ({"image": 1}, 0)


def test_the_diffs_in_a_message_of_the_persons_are_not_read(tmp_path: Path, store: str) -> None:
    diffs = {"diffs": [{"file": "a", "before": "x" * MEGABYTE, "after": "y" * MEGABYTE}]}
    items, _ = parts_of(tmp_path, store, text_part("my words"), role="user", summary=diffs)
    assert humans(items) == ["my words"]


def test_many_messages_with_many_parts_come_in_order(tmp_path: Path, store: str) -> None:
    extra = [StoredMessage("user", 0, [text_part(f"{m}.{p}") for p in range(40)]) for m in range(70)]
    path = an_opencode_session(tmp_path, now=NOW, turns=[], store=store, extra=extra)
    items, reading = read(OpenCodeReader(), path)
    assert humans(items) == [f"{m}.{p}" for m in range(70) for p in range(40)]
    assert reading.record_bytes == 70 * 41
    assert [item.ordinal for item in items] == [m * 41 + 1 for m in range(70) for _ in range(40)]


def test_parts_come_in_the_order_of_their_ids_wherever_they_lie(tmp_path: Path, store: str) -> None:
    extra = [
        StoredMessage("user", 0, [text_part(f"{m}.{p}") | {"id": f"prt_{m}_{99 - p}"} for p in range(40)])
        for m in range(9)
    ]
    path = an_opencode_session(tmp_path, now=NOW, turns=[], store=store, extra=extra)
    assert humans(read(OpenCodeReader(), path)[0]) == [f"{m}.{p}" for m in range(9) for p in reversed(range(40))]


def test_messages_without_parts_and_messages_that_are_left_out_do_not_shift_the_others(
    tmp_path: Path, store: str
) -> None:
    extra: list[StoredMessage] = []
    for m in range(60):
        extra.append(StoredMessage("assistant", 0, []))
        extra.append(StoredMessage("assistant", 0, [text_part("summary")] * (m % 7), {"summary": True}))
        extra.append(StoredMessage("user", 0, [text_part(f"{m}.{p}") for p in range(m % 5 * 17)]))
    path = an_opencode_session(tmp_path, now=NOW, turns=[], store=store, extra=extra)
    items, reading = read(OpenCodeReader(), path)
    assert humans(items) == [f"{m}.{p}" for m in range(60) for p in range(m % 5 * 17)]
    assert reading.dropped == {"compaction": 60}


def test_both_stores_tell_the_same_items(tmp_path: Path) -> None:
    turns = [Turn("x y", "done", commands=[Command("ls", "a", 1)], commentary="I look."), Turn("zurück — 😀", "ja")]
    session = a_stored_session(now=NOW, turns=turns)
    reader = OpenCodeReader()
    one, two = (read(reader, write_session(tmp_path / store, session, store=store))[0] for store in STORES)
    assert one == two


# the tree alone


def test_a_part_more_is_seen_before_the_sessions_own_file_is_written(reader: OpenCodeReader, tmp_path: Path) -> None:
    path = an_opencode_session(tmp_path, now=NOW, store="tree")
    backdate(tmp_path)
    (before,) = reader.find([tmp_path])
    marks = reader.tail(before).record_bytes
    folder = max((tmp_path / "storage" / "part").iterdir())
    (folder / "prt_zzz.json").write_text(json.dumps(text_part("and more")))
    (after,) = reader.find([tmp_path])
    assert after != before
    assert after == reader.locate(path)
    assert reader.tail(after).record_bytes == marks + 1
    backdate(tmp_path)
    message = tmp_path / "storage" / "message" / "ses_one" / "msg_zzz.json"
    message.write_text(json.dumps({"role": "user", "time": {"created": 1}}))
    (later,) = reader.find([tmp_path])
    assert later != before
    assert reader.tail(later).record_bytes == marks + 2


def backdate(home: Path) -> None:
    """Two writes within a tick of the file system's clock have the same time."""
    for place in home.rglob("*"):
        os.utime(place, (NOW, NOW))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"time": {"created": 1}}', '{"time": {"updated": "x"}}'])
def test_a_file_that_is_no_session_is_an_error(reader: OpenCodeReader, tmp_path: Path, content: str) -> None:
    path = an_opencode_session(tmp_path, now=NOW, store="tree")
    path.write_text(content)
    for operation in (reader.head, reader.tail, reader.read):
        with pytest.raises(SessionUnreadable):
            operation(reader.locate(path))


def test_a_tree_that_is_taken_away_has_vanished(reader: OpenCodeReader, tmp_path: Path) -> None:
    path = an_opencode_session(tmp_path, now=NOW, store="tree", turns=[("a", "b"), ("c", "d")])
    file = reader.locate(path)
    reading = reader.read(file)
    assert next(reading).text == "a"
    shutil.rmtree(tmp_path / "storage")
    with pytest.raises(SessionVanished):
        list(reading)
    reading.close()
    with pytest.raises(SessionVanished):
        reader.locate(path)
