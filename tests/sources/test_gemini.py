"""Where Gemini CLI's sessions lie, which directory they are of, and what their beginning and their end say."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.gemini import GeminiReader
from memoryd.sources.gemini_records import MAX_DOCUMENT_BYTES, READ_TRIES
from memoryd.sources.items import ItemKind, SessionFile, SessionHead, SessionKind
from tests.support.gemini_sessions import CWD, SLUG, a_gemini_session, a_header, a_message, project, write_session
from tests.support.sessions import Turn, iso

NOW = 1_700_000_000.0
SESSION = "2d247c28-8968-477b-b063-c99f17f9f9f8"
READER = GeminiReader(pause=lambda _: None)


def only(home: Path) -> SessionFile:
    (file,) = READER.find([home])
    return file


def head(home: Path) -> SessionHead:
    return READER.head(only(home))


def said(file: SessionFile, reader: GeminiReader = READER) -> list[str]:
    with reader.read(file) as reading:
        return [item.text for item in reading if item.kind is ItemKind.HUMAN]


def moved(path: Path, folder: str) -> Path:
    """Move a session into the folder of another project, whose directory nothing tells."""
    new = path.parents[2] / folder / "chats" / path.name
    new.parent.mkdir(parents=True)
    path.rename(new)
    return new


# finding


def test_both_formats_are_found(tmp_path: Path) -> None:
    newer = a_gemini_session(tmp_path, now=NOW, turns=["new"])
    older = a_gemini_session(tmp_path, now=NOW, turns=["old"], legacy=True)
    assert [file.path for file in READER.find([tmp_path])] == [newer, older]


def test_a_session_of_the_old_form_that_was_resumed_is_one_session(tmp_path: Path) -> None:
    a_gemini_session(tmp_path, now=NOW, turns=["first"], session_id=SESSION, legacy=True)
    goes_on = a_gemini_session(tmp_path, now=NOW, turns=["first", "second"], session_id=SESSION)
    assert only(tmp_path).path == goes_on


def test_what_else_lies_beside_the_chats_is_no_session(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW)
    for name in ("notes.jsonl", "session-x.jsonl.tmp", "session-x.txt"):
        path.with_name(name).write_bytes(path.read_bytes())
    (path.parents[1] / "logs.json").write_text("[]")
    assert only(tmp_path).path == path


def test_a_sub_agents_session_lies_in_a_folder_named_like_its_parent(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW, kind="subagent")
    nested = path.parent / SESSION / "agent-1.jsonl"
    nested.parent.mkdir()
    path.rename(nested)
    assert only(tmp_path).path == nested
    told = head(tmp_path)
    assert (told.kind, told.parent_id, told.cwd) == (SessionKind.SUBAGENT, SESSION, CWD)


def test_a_header_may_call_itself_a_sub_agents(tmp_path: Path) -> None:
    a_gemini_session(tmp_path, now=NOW, kind="subagent")
    assert head(tmp_path).kind is SessionKind.SUBAGENT


# which directory


def test_the_folder_of_a_project_names_its_root(tmp_path: Path) -> None:
    a_gemini_session(tmp_path, now=NOW, cwd="/home/dev/überall shop")
    (tmp_path / "projects.json").unlink()
    assert head(tmp_path).cwd == "/home/dev/überall shop"


def test_the_map_of_projects_tells_the_directory_of_a_slug(tmp_path: Path) -> None:
    a_gemini_session(tmp_path, now=NOW)
    (tmp_path / "tmp" / SLUG / ".project_root").unlink()
    assert head(tmp_path).cwd == CWD


@pytest.mark.parametrize(
    ("name", "content"),
    [("projects.json", {"projects": {CWD: "another-slug"}}), ("trustedFolders.json", {CWD: "TRUST_FOLDER"})],
)
def test_a_hash_is_the_directory_that_has_it(tmp_path: Path, name: str, content: object) -> None:
    moved(a_gemini_session(tmp_path, now=NOW, legacy=True), hashlib.sha256(CWD.encode()).hexdigest())
    (tmp_path / "projects.json").unlink()
    (tmp_path / name).write_text(json.dumps(content))
    assert head(tmp_path).cwd == CWD


@pytest.mark.parametrize("name", ["a" * 64, "unheard-of"])
def test_a_directory_that_nothing_tells_is_not_guessed(tmp_path: Path, name: str) -> None:
    file_path = moved(a_gemini_session(tmp_path, now=NOW), name)
    assert head(tmp_path).cwd is None
    with READER.read(READER.locate(file_path)) as reading:
        assert {item.cwd for item in reading} == {None}


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"projects": 7}', b"\xff\xfe{", b'{"projects": {"/x": 5}}'])
def test_a_damaged_map_of_projects_harms_no_session(tmp_path: Path, content: bytes) -> None:
    a_gemini_session(tmp_path, now=NOW)
    (tmp_path / "tmp" / SLUG / ".project_root").unlink()
    (tmp_path / "projects.json").write_bytes(content)
    assert (head(tmp_path).cwd, said(only(tmp_path))) == (None, ["Fix the failing test, please."])


def test_a_map_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    a_gemini_session(tmp_path, now=NOW)
    for path in (tmp_path / "projects.json", tmp_path / "tmp" / SLUG / ".project_root"):
        path.unlink()
        os.mkfifo(path)
    assert head(tmp_path).cwd is None


def test_items_stand_in_the_projects_directory(tmp_path: Path) -> None:
    a_gemini_session(tmp_path, now=NOW)
    with READER.read(only(tmp_path)) as reading:
        assert {item.cwd for item in reading} == {CWD}


# heads


@pytest.mark.parametrize("legacy", [False, True])
def test_a_head_tells_what_the_header_says(tmp_path: Path, legacy: bool) -> None:
    a_gemini_session(tmp_path, now=NOW, idle_hours=1, session_id=SESSION, legacy=legacy)
    told = head(tmp_path)
    assert (told.thread_id, told.kind, told.git_branch, told.parent_id, told.lineage) == (
        SESSION, SessionKind.INTERACTIVE, None, None, None)  # fmt: skip
    assert told.started_at is not None
    assert NOW - 3700 < told.started_at < NOW - 3600


def test_an_id_that_is_no_uuid_gets_the_agents_name(tmp_path: Path) -> None:
    a_gemini_session(tmp_path, now=NOW, session_id="my session")
    assert head(tmp_path).thread_id == "gemini:my session"


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 500])
def test_an_id_that_cannot_be_typed_names_no_session(tmp_path: Path, name: str) -> None:
    write_session(tmp_path, SESSION, json.dumps({"sessionId": name}).encode(), NOW, NOW)
    with pytest.raises(SessionUnreadable, match="which session"):
        head(tmp_path)


def test_a_session_without_any_header_has_no_name(tmp_path: Path) -> None:
    lines = [json.dumps(a_message("user", f"{number}")) for number in range(200)]
    write_session(tmp_path, SESSION, "\n".join(lines).encode(), NOW, NOW)
    with pytest.raises(SessionUnreadable, match="which session"):
        head(tmp_path)


# ends


def test_the_end_is_that_of_the_last_message(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW, idle_hours=2)
    tail = READER.tail(only(tmp_path))
    assert (tail.last_record_at, tail.record_bytes, tail.timed) == (int(NOW - 7200), path.stat().st_size, True)


def test_a_summary_that_is_added_later_is_no_news(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW)
    before = READER.tail(only(tmp_path))
    with path.open("a") as late:
        late.write('{"$set":{"summary":"short","memoryScratchpad":{"version":1}}}\n{"$set":{"summary":"shorter"}}\n')
    file = only(tmp_path)
    assert READER.tail(file) == before
    with READER.read(file) as reading:
        list(reading)
    assert (reading.last_record_at, reading.record_bytes) == (before.last_record_at, before.record_bytes)


def test_words_after_a_summary_are_news(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW)
    with path.open("a") as file:
        file.write('{"$set":{"summary":"short"}}\n')
        file.write(json.dumps(a_message("user", "more") | {"timestamp": iso(NOW)}) + "\n")
    tail = READER.tail(only(tmp_path))
    assert (tail.last_record_at, tail.record_bytes) == (int(NOW), path.stat().st_size)


def test_an_old_session_ends_with_its_last_message_whenever_it_was_written_again(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW, idle_hours=2, legacy=True)
    document = json.loads(path.read_text()) | {"lastUpdated": iso(NOW), "summary": "short"}
    path.write_text(json.dumps(document))
    tail = READER.tail(only(tmp_path))
    assert (tail.last_record_at, tail.record_bytes) == (int(NOW - 7200), path.stat().st_size)


def test_an_old_session_without_messages_ends_when_it_says(tmp_path: Path) -> None:
    document = a_header(SESSION, NOW - 60) | {"messages": []}
    write_session(tmp_path, SESSION, json.dumps(document).encode(), NOW, NOW, legacy=True)
    assert READER.tail(only(tmp_path)).last_record_at == int(NOW - 60)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_session_without_times_has_that_of_its_file(tmp_path: Path, legacy: bool) -> None:
    record = json.dumps({"sessionId": SESSION}).encode()
    write_session(tmp_path, SESSION, record, NOW, NOW - 99, legacy=legacy)
    tail = READER.tail(only(tmp_path))
    assert (tail.last_record_at, tail.timed) == (int(NOW - 99), False)
    with READER.read(only(tmp_path)) as reading:
        assert list(reading) == []
    assert (reading.last_record_at, reading.timed) == (int(NOW - 99), False)


# the old form


def test_the_old_form_says_the_same_as_the_new(tmp_path: Path) -> None:
    turns = [Turn("one", "two"), Turn("three", "four", commentary="hm")]
    for home, legacy in ((tmp_path / "old", True), (tmp_path / "new", False)):
        a_gemini_session(home, now=NOW, turns=turns, legacy=legacy)
    told = []
    for name in ("old", "new"):
        with READER.read(only(tmp_path / name)) as reading:
            told.append([(item.kind, item.text) for item in reading if item.kind is not ItemKind.HARNESS_CONTEXT])
    assert told[0] == told[1]


def test_a_half_written_session_is_looked_at_again(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW, turns=["whole"], legacy=True)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    waited: list[float] = []

    def finish_writing(seconds: float) -> None:
        waited.append(seconds)
        path.write_bytes(whole)

    reader = GeminiReader(pause=finish_writing)
    assert said(only(tmp_path), reader) == ["whole"]
    assert len(waited) == 1
    assert 0 < waited[0] < 1


def test_a_session_that_stays_half_written_is_unreadable(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW, legacy=True)
    path.write_bytes(path.read_bytes()[:-20])
    waited: list[float] = []
    reader = GeminiReader(pause=waited.append)
    for operation in (reader.head, reader.tail, reader.read):
        waited.clear()
        with pytest.raises(SessionUnreadable, match="no JSON object"):
            operation(only(tmp_path))
        assert len(waited) == READ_TRIES - 1


def test_a_session_that_vanishes_while_it_is_waited_for_has_vanished(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW, legacy=True)
    path.write_bytes(b"{")
    file = only(tmp_path)
    with pytest.raises(SessionVanished):
        GeminiReader(pause=lambda _: path.unlink()).head(file)


def test_an_absurdly_large_session_of_the_old_form_is_not_read(tmp_path: Path) -> None:
    path = a_gemini_session(tmp_path, now=NOW, legacy=True)
    os.truncate(path, MAX_DOCUMENT_BYTES + 1)
    for operation in (READER.head, READER.tail, READER.read):
        with pytest.raises(SessionUnreadable, match="the most is"):
            operation(only(tmp_path))


def test_a_project_may_be_made_before_its_first_session(tmp_path: Path) -> None:
    project(tmp_path)
    assert list(READER.find([tmp_path])) == []
    assert READER.missing_roots([tmp_path]) == []
