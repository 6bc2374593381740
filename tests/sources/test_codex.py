"""Codex sessions are found once each, and their beginnings and ends are read without reading what lies between."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import zstandard

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.codex import HEAD_LINES, CodexReader
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionKind, SessionTail
from memoryd.sources.jsonl import BLOCK_BYTES
from tests.support.sessions import a_rollout, a_thread_id, iso, write_rollout

NOW = 1_700_000_000.0
THREAD = a_thread_id(NOW, "thread")
PARENT = a_thread_id(NOW - 9000, "parent")


def no_pause(seconds: float) -> None:
    """Wait for nothing."""


READER = CodexReader(no_pause)


def a_file(path: Path) -> SessionFile:
    return SessionFile("codex", str(path), 0, 0)


def found(*homes: Path) -> list[Path]:
    return [file.path for file in READER.find(homes)]


def row(at: float | None, kind: str, payload: Any) -> bytes:
    record = (
        {"type": kind, "payload": payload} if at is None else {"timestamp": iso(at), "type": kind, "payload": payload}
    )
    return json.dumps(record).encode() + b"\n"


def meta(**payload: Any) -> bytes:
    return row(NOW, "session_meta", {"id": THREAD, "timestamp": iso(NOW), "cwd": "/x", "source": "cli"} | payload)


def a_session(into: Path, *content: bytes, compressed: bool = False) -> SessionFile:
    path = write_rollout(into, THREAD, b"".join(content), NOW, NOW + 60, compressed=compressed)
    return a_file(path)


class TestFind:
    def test_dated_archived_and_compressed_sessions_are_found(self, tmp_path: Path) -> None:
        paths = {
            a_rollout(tmp_path, now=NOW, turns=["one"]),
            a_rollout(tmp_path, now=NOW, turns=["two"], archived=True),
            a_rollout(tmp_path, now=NOW, turns=["three"], compressed=True),
        }
        assert paths == set(found(tmp_path))

    def test_size_and_time_come_with_the_file(self, tmp_path: Path) -> None:
        path = a_rollout(tmp_path, now=NOW)
        facts = path.stat()
        assert list(READER.find([tmp_path])) == [SessionFile("codex", str(path), facts.st_size, facts.st_mtime_ns)]

    def test_a_plain_file_wins_over_its_compressed_twin_wherever_it_lies(self, tmp_path: Path) -> None:
        a_rollout(tmp_path, now=NOW, thread_id=THREAD, compressed=True)
        plain = a_rollout(tmp_path, now=NOW, thread_id=THREAD, archived=True)
        assert found(tmp_path) == [plain]

    def test_an_archived_copy_is_the_same_session(self, tmp_path: Path) -> None:
        live = a_rollout(tmp_path, now=NOW, thread_id=THREAD)
        a_rollout(tmp_path, now=NOW, thread_id=THREAD, archived=True)
        assert found(tmp_path, tmp_path) == [live]

    def test_two_compressed_copies_are_one_session(self, tmp_path: Path) -> None:
        live = a_rollout(tmp_path, now=NOW, thread_id=THREAD, compressed=True)
        a_rollout(tmp_path, now=NOW, thread_id=THREAD, compressed=True, archived=True)
        assert found(tmp_path) == [live]

    def test_only_regular_files_with_the_right_name_are_sessions(self, tmp_path: Path) -> None:
        path = a_rollout(tmp_path, now=NOW)
        name = f"rollout-2023-11-14T15-13-10-{THREAD}.jsonl"
        folder = path.parent
        (folder / name).mkdir()
        os.mkfifo(folder / name.replace(THREAD, PARENT))
        (folder / name.replace(THREAD, a_thread_id(NOW, "link"))).symlink_to(path)
        for other in ("notes.jsonl", f"{name}.tmp", "rollout-2023-11-14.jsonl", f"{THREAD}.jsonl"):
            (folder / other).write_text("{}\n")
        (folder / os.fsdecode(b"rollout-\xff.jsonl")).write_text("{}\n")
        assert found(tmp_path) == [path]

    @pytest.mark.parametrize("odd", [b"\xff\xfe", b"\x1b[2J", "\u2028".encode()])
    def test_a_name_that_is_no_text_is_no_session(self, tmp_path: Path, odd: bytes) -> None:
        session = a_rollout(tmp_path, now=NOW, thread_id=THREAD)
        named = session.parent / f"rollout-{os.fsdecode(odd)}-{PARENT}.jsonl"
        named.write_bytes(session.read_bytes())
        assert found(tmp_path) == [session]

    def test_missing_homes_yield_nothing_and_are_named(self, tmp_path: Path) -> None:
        a_rollout(tmp_path / "here", now=NOW)
        (tmp_path / "empty").mkdir()
        homes = [tmp_path / "here", tmp_path / "empty", tmp_path / "gone"]
        assert len(found(*homes)) == 1
        assert READER.missing_roots(homes) == homes[1:]

    def test_folders_deeper_than_the_dates_are_not_walked(self, tmp_path: Path) -> None:
        deep = a_rollout(tmp_path, now=NOW).parent / "01"
        deep.mkdir()
        (deep / f"rollout-2023-11-14T15-13-10-{THREAD}.jsonl").write_text("{}\n")
        assert len(found(tmp_path)) == 1

    def test_no_session_file_is_opened(self, tmp_path: Path) -> None:
        path = a_rollout(tmp_path, now=NOW)
        before = path.stat().st_atime_ns
        path.chmod(0)
        assert found(tmp_path) == [path]
        assert path.stat().st_atime_ns == before


class TestHead:
    def test_the_first_session_meta_names_the_session(self, tmp_path: Path) -> None:
        path = a_rollout(
            tmp_path, now=NOW, thread_id=THREAD, source="exec", memory_mode="disabled", meta={"forked_from_id": PARENT}
        )
        head = READER.head(a_file(path))
        started_at = int(NOW - 7 * 3600 - 6)
        assert head == SessionHead(
            THREAD, "codex", SessionKind.NONINTERACTIVE, "/home/dev/shop", "main", PARENT, started_at,
            MemoryMode.DISABLED, ephemeral=False, originator="codex_cli_rs",
        )  # fmt: skip

    def test_a_parent_thread_comes_before_the_fork(self, tmp_path: Path) -> None:
        other = a_thread_id(NOW, "other")
        head = READER.head(a_session(tmp_path, meta(forked_from_id=other, parent_thread_id=PARENT)))
        assert (head.parent_id, head.kind) == (PARENT, SessionKind.SUBAGENT)

    def test_memory_is_enabled_where_nothing_is_said(self, tmp_path: Path) -> None:
        assert READER.head(a_session(tmp_path, meta())).memory_mode is MemoryMode.ENABLED

    def test_a_copied_meta_does_not_rename_the_session(self, tmp_path: Path) -> None:
        head = READER.head(a_session(tmp_path, meta(), meta(id=PARENT, cwd="/parent")))
        assert (head.thread_id, head.cwd) == (THREAD, "/x")

    def test_the_directory_of_an_old_file_stands_in_its_context(self, tmp_path: Path) -> None:
        bare = b'{"id":"%s","timestamp":"2025-08-01T10:00:00Z","git":{"branch":"b"}}\n' % THREAD.encode()
        context = {"role": "user", "content": [{"text": "<environment_context><cwd>/old</cwd></environment_context>"}]}
        head = READER.head(a_session(tmp_path, bare, json.dumps({"type": "message", **context}).encode() + b"\n"))
        assert (head.cwd, head.git_branch, head.kind) == ("/old", "b", SessionKind.INTERACTIVE)

    def test_the_directory_may_also_stand_in_the_first_turn(self, tmp_path: Path) -> None:
        records = (meta(cwd=None), row(NOW, "event_msg", {}), row(NOW, "turn_context", {"cwd": "/turn"}))
        assert READER.head(a_session(tmp_path, *records)).cwd == "/turn"

    @pytest.mark.parametrize("rows", [0, 3, 500])
    def test_a_session_may_have_no_directory(self, tmp_path: Path, rows: int) -> None:
        head = READER.head(a_session(tmp_path, meta(cwd=None, timestamp=None), row(NOW, "event_msg", {}) * rows))
        assert (head.cwd, head.started_at) == (None, None)

    def test_a_meta_behind_bad_lines_is_found(self, tmp_path: Path) -> None:
        head = READER.head(a_session(tmp_path, b"\x00\x00\n", row(NOW, "session_meta", {}), meta()))
        assert head.thread_id == THREAD

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "it is empty"),
            (row(NOW, "event_msg", {}), "is a session_meta"),
            (row(NOW, "event_msg", {}) * (HEAD_LINES + 1) + meta(), "is a session_meta"),
        ],
    )
    def test_a_file_that_names_no_session_says_why(self, tmp_path: Path, content: bytes, reason: str) -> None:
        with pytest.raises(SessionUnreadable, match=reason):
            READER.head(a_session(tmp_path, content))

    @pytest.mark.parametrize("name", ["x" * 201, "a\n## Thread `evil`", "nul\0", "\x1b[2J", "bidi\u202e"])
    def test_an_id_that_cannot_be_shown_or_typed_names_no_session(self, tmp_path: Path, name: str) -> None:
        path = a_rollout(tmp_path, now=NOW, meta={"id": name})
        with pytest.raises(SessionUnreadable, match="session_meta"):
            READER.head(a_file(path))

    def test_only_the_beginning_is_read(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta())
        with file.path.open("r+b") as sparse:
            sparse.truncate(1 << 40)
        assert READER.head(file).thread_id == THREAD


class TestTail:
    def test_the_last_record_gives_time_and_the_file_its_size(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta(), row(NOW + 5.9, "event_msg", {}))
        assert READER.tail(file) == SessionTail(int(NOW) + 5, file.path.stat().st_size, None)

    def test_a_torn_end_is_passed_over(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta(), row(NOW + 5, "event_msg", {}), b'\n\n{"timestamp":"2026-')
        assert READER.tail(file).last_record_at == NOW + 5

    def test_a_last_record_longer_than_a_block_is_read(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta(), row(NOW + 5, "event_msg", {"x": "y" * 5 * BLOCK_BYTES}))
        assert READER.tail(file).last_record_at == NOW + 5

    def test_where_records_have_no_times_the_file_has(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta(), row(None, "event_msg", {}))
        assert READER.tail(file) == SessionTail(int(NOW) + 60, file.path.stat().st_size, None, timed=False)
        assert READER.tail(a_session(tmp_path, b"")) == SessionTail(int(NOW) + 60, 0, None, timed=False)

    def test_the_last_memory_mode_of_the_own_session_wins(self, tmp_path: Path) -> None:
        file = a_session(
            tmp_path,
            meta(memory_mode="disabled"),
            meta(memory_mode="polluted"),
            meta(id=PARENT, memory_mode="enabled"),
            meta(),
            row(NOW, "event_msg", {"memory_mode": "enabled"}),
        )
        assert READER.tail(file).memory_mode is MemoryMode.POLLUTED

    def test_all_of_a_compressed_file_is_searched_for_the_last_memory_mode(self, tmp_path: Path) -> None:
        content = (meta(memory_mode="disabled"), b"torn\n", meta(memory_mode="enabled"), meta())
        assert READER.tail(a_session(tmp_path, *content, compressed=True)).memory_mode is MemoryMode.ENABLED

    def test_only_the_last_block_is_searched_for_the_memory_mode(self, tmp_path: Path) -> None:
        filler = row(NOW, "event_msg", {"x": "y" * 1000}) * (2 * BLOCK_BYTES // 1000)
        assert READER.tail(a_session(tmp_path, meta(memory_mode="disabled"), filler)).memory_mode is None

    def test_a_compressed_end_equals_the_plain_one(self, tmp_path: Path) -> None:
        content = meta(memory_mode="disabled") + row(NOW + 9, "event_msg", {"x": "y" * 200_000})
        plain = READER.tail(a_session(tmp_path / "a", content))
        packed = READER.tail(a_session(tmp_path / "b", content, compressed=True))
        assert plain.last_record_at == packed.last_record_at == NOW + 9
        assert plain.record_bytes == packed.record_bytes == len(content)
        assert packed.memory_mode is MemoryMode.DISABLED

    def test_a_file_of_another_name_is_read_too(self, tmp_path: Path) -> None:
        path = tmp_path / "copy.jsonl"
        path.write_bytes(meta(memory_mode="disabled"))
        assert READER.tail(a_file(path)).memory_mode is MemoryMode.DISABLED


class TestSwap:
    def test_a_file_that_was_compressed_since_is_read_under_its_new_name(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta(), compressed=True)
        plain = a_file(file.path.with_suffix(""))
        assert READER.head(plain).thread_id == THREAD

    def test_a_file_that_was_unpacked_since_is_read_under_its_old_name(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta())
        assert READER.head(a_file(file.path.with_name(file.path.name + ".zst"))).thread_id == THREAD

    def test_the_plain_file_wins_while_both_exist(self, tmp_path: Path) -> None:
        packed = a_session(tmp_path, meta(cwd="/stale"), compressed=True)
        a_session(tmp_path, meta(cwd="/fresh"))
        assert READER.head(packed).cwd == "/fresh"

    def test_a_file_in_the_middle_of_the_swap_is_waited_for(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta())
        content = file.path.read_bytes()
        file.path.unlink()
        waits: list[float] = []

        def swap(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                packed = zstandard.ZstdCompressor().compress(content)
                file.path.with_name(file.path.name + ".zst").write_bytes(packed)

        assert CodexReader(swap).head(file).thread_id == THREAD
        assert waits == [0.05, 0.05]

    def test_a_file_that_stays_away_has_vanished_after_three_tries(self, tmp_path: Path) -> None:
        waits: list[float] = []
        with pytest.raises(SessionVanished, match="no longer there"):
            CodexReader(waits.append).read(a_file(tmp_path / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl"))
        assert waits == [0.05, 0.05]

    def test_the_reader_of_the_table_waits_by_itself(self, tmp_path: Path) -> None:
        with pytest.raises(SessionVanished):
            CodexReader().head(a_file(tmp_path / "gone.jsonl"))


class TestHostile:
    @pytest.mark.parametrize("operation", ["head", "tail", "read"])
    def test_a_folder_or_a_fifo_with_the_right_name_is_refused(self, tmp_path: Path, operation: str) -> None:
        folder, pipe = tmp_path / f"rollout-a-{THREAD}.jsonl", tmp_path / f"rollout-b-{THREAD}.jsonl"
        folder.mkdir()
        os.mkfifo(pipe)
        for path in (folder, pipe):
            with pytest.raises(SessionUnreadable, match="not a regular file"):
                getattr(READER, operation)(a_file(path))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_without_permission_is_named_with_a_remedy(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta())
        file.path.chmod(0)
        with pytest.raises(SessionUnreadable, match=r"Permission denied.*check its permissions"):
            READER.head(file)
        file.path.chmod(stat.S_IRUSR | stat.S_IWUSR)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
    def test_a_folder_without_permission_holds_nothing_and_is_named(self, tmp_path: Path) -> None:
        a_rollout(tmp_path, now=NOW)
        (tmp_path / "sessions").chmod(0)
        assert found(tmp_path) == []
        assert READER.missing_roots([tmp_path]) == [tmp_path]
        (tmp_path / "sessions").chmod(0o700)

    def test_a_damaged_compressed_file_is_named(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta(), compressed=True)
        file.path.write_bytes(b"no zstd at all")
        for operation in (READER.head, READER.tail):
            with pytest.raises(SessionUnreadable, match="damaged zstd data"):
                operation(file)

    def test_nothing_appears_beside_the_sessions(self, tmp_path: Path) -> None:
        file = a_session(tmp_path, meta(), row(NOW, "event_msg", {"type": "thread_rolled_back", "num_turns": 1}))
        before = sorted(tmp_path.rglob("*"))
        READER.head(file)
        READER.tail(file)
        with READER.read(file) as reading:
            list(reading)
        assert sorted(tmp_path.rglob("*")) == before
