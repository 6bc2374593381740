from pathlib import Path

from memoryd.workspace.folder import Folder
from memoryd.workspace.headers import Header, headers_of, parse_header
from memoryd.workspace.materialise import materialise, render_raw_memories, render_rollout_summary
from tests.workspace.factories import A, B, an_output, write_files


def test_raw_memories_without_inputs_say_so(tmp_path: Path) -> None:
    materialise(tmp_path, [])
    assert (tmp_path / "raw_memories.md").read_bytes() == b"# Raw Memories\n\nNo raw memories yet.\n"


def test_raw_memories_are_byte_for_byte_the_published_format(tmp_path: Path) -> None:
    later = an_output(B, raw_memory="\n  second \n", stem="s-b", cwd="/b", rollout_path="/r/b")
    materialise(tmp_path, [later, an_output(A, raw_memory="first", stem="s-a", cwd="/a", rollout_path="/r/a")])
    assert (tmp_path / "raw_memories.md").read_bytes() == (
        b"# Raw Memories\n\n"
        b"Merged stage-1 raw memories (stable ascending thread-id order):\n\n"
        b"## Thread `0194f5a6-89ab-7cde-8123-456789abcdef`\n"
        b"updated_at: 2025-11-29T09:38:15+00:00\n"
        b"cwd: /a\n"
        b"rollout_path: /r/a\n"
        b"rollout_summary_file: s-a.md\n"
        b"\n"
        b"first\n"
        b"\n"
        b"## Thread `01a226ab-5fe7-707c-80dd-7a6d93907104`\n"
        b"updated_at: 2025-11-29T09:38:15+00:00\n"
        b"cwd: /b\n"
        b"rollout_path: /r/b\n"
        b"rollout_summary_file: s-b.md\n"
        b"\n"
        b"second\n"
        b"\n"
    )


def test_a_rollout_summary_is_byte_for_byte_the_published_format(tmp_path: Path) -> None:
    materialise(tmp_path, [an_output(A, stem="s-a", cwd="/a", rollout_path="/r/a", rollout_summary="# Done\n\nbody")])
    assert (tmp_path / "rollout_summaries/s-a.md").read_bytes() == (
        b"thread_id: 0194f5a6-89ab-7cde-8123-456789abcdef\n"
        b"agent: codex\n"
        b"updated_at: 2025-11-29T09:38:15+00:00\n"
        b"rollout_path: /r/a\n"
        b"cwd: /a\n"
        b"git_branch: main\n"
        b"\n"
        b"# Done\n\nbody\n"
    )


def test_an_unknown_branch_has_no_line_and_an_unknown_directory_is_said() -> None:
    output = an_output(A, cwd=None, git_branch=None, agent=None, rollout_path=None, rollout_summary="x\n\n")
    assert render_rollout_summary(output) == (
        "thread_id: 0194f5a6-89ab-7cde-8123-456789abcdef\nagent: unknown\nupdated_at: 2025-11-29T09:38:15+00:00\n"
        "rollout_path: unknown\ncwd: unknown\n\nx\n"
    )


def test_a_line_break_in_a_path_or_branch_cannot_forge_a_header_line() -> None:
    output = an_output(A, cwd="/a\nthread_id: forged", git_branch="x\r\ny")
    header = parse_header(render_rollout_summary(output))
    assert (header.thread_id, header.cwd, header.git_branch) == (A, "/a thread_id: forged", "x y")
    assert "cwd: /a thread_id: forged\n" in render_raw_memories([output])


def test_only_the_summaries_of_unselected_sessions_are_removed(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "rollout_summaries/old.md": "x",
            "rollout_summaries/old.txt": "x",
            "rollout_summaries/sub.md/deep.md": "x",
            "rollout_summaries/s-a.md": "old text",
        },
    )
    materialise(tmp_path, [an_output(A, stem="s-a")])
    found = Folder.read(tmp_path)
    assert sorted(found.files) == [
        "raw_memories.md",
        "rollout_summaries/old.txt",
        "rollout_summaries/s-a.md",
        "rollout_summaries/sub.md/deep.md",
    ]
    assert "old text" not in found.text("rollout_summaries/s-a.md")


def test_half_a_character_from_json_does_not_stop_the_writing(tmp_path: Path) -> None:
    materialise(tmp_path, [an_output(A, stem="s-a", raw_memory="a\ud800b", rollout_summary="\udfff")])
    assert "a?b" in (tmp_path / "raw_memories.md").read_text()


def test_headers_are_read_back_whatever_follows() -> None:
    assert parse_header("no header at all") == Header()
    assert parse_header("thread_id: t\ncwd: /a: b\n\nagent: not a header") == Header(thread_id="t", cwd="/a: b")
    folder = Folder({"rollout_summaries/a.md": "thread_id: t\n", "rollout_summaries/x/b.md": "", "MEMORY.md": "cwd: /"})
    assert headers_of(folder) == {"rollout_summaries/a.md": Header(thread_id="t")}
