from pathlib import Path

from memoryd.redact import Redactor
from memoryd.workspace.acceptance import judge
from memoryd.workspace.folder import Folder
from memoryd.workspace.mending import clean_strays, empty_folder, rewrite_provenance
from memoryd.workspace.provenance import with_provenance
from tests.workspace.factories import MEMORY, A, a_folder, a_summary_file, files, write_files

FACTS_A = f"cwd=/home/dev/shop, rollout_path=/s/{A}.jsonl, updated_at=2025-11-29T09:38:15+00:00, thread_id={A}"


def test_what_has_no_place_in_a_staged_folder_is_removed(tmp_path: Path) -> None:
    write_files(tmp_path, {**files(), ".git/HEAD": "x", "skills/x/.git/HEAD": "x", "skills/x/a.md": "", ".env": "x"})
    (tmp_path / "skills/link").symlink_to("/etc")
    (tmp_path / "picture.png").write_bytes(b"\x00")
    write_files(tmp_path, {"junk.md": "x"})
    before = a_folder()
    assert clean_strays(tmp_path) == (".git", ".env", "picture.png", "skills/link", "skills/x")
    assert clean_strays(tmp_path, before) == ("junk.md",)
    assert Folder.read(tmp_path) == before
    assert Path("/etc").is_dir()


def test_provenance_comes_from_the_headers_and_a_note_stays() -> None:
    text = with_provenance(MEMORY, a_folder())
    assert f"- rollout_summaries/a.md ({FACTS_A}, fast)\n" in text
    assert "- rollout_summaries/b.md (cwd=/home/dev/shop, rollout_path=/s/" in text
    assert with_provenance(text, a_folder()) == text


def test_a_directory_with_a_comma_stays_one_value_and_repeating_changes_nothing() -> None:
    folder = Folder({"rollout_summaries/a.md": a_summary_file(A, cwd="/a, b (c)")})
    once = with_provenance("- rollout_summaries/a.md (a note, of two parts)\r", folder)
    assert once == (
        f"- rollout_summaries/a.md (cwd=/a, b (c), rollout_path=/s/{A}.jsonl, updated_at=2025-11-29T09:38:15+00:00, "
        f"thread_id={A}, a note, of two parts)\r"
    )
    assert with_provenance(once, folder) == once


def test_rows_of_files_that_are_not_there_and_other_lines_stay() -> None:
    text = "- rollout_summaries/x.md (cwd=/made/up)\nsee rollout_summaries/a.md (x)\n"
    assert with_provenance(text, a_folder()) == text


def test_a_header_without_values_says_unknown() -> None:
    folder = Folder({"rollout_summaries/a.md": "no header"})
    assert with_provenance("- rollout_summaries/a.md", folder) == (
        "- rollout_summaries/a.md (cwd=unknown, rollout_path=unknown, updated_at=unknown, thread_id=unknown)"
    )


def test_the_handbook_of_a_folder_is_rewritten_in_place(tmp_path: Path) -> None:
    write_files(tmp_path, files())
    rewrite_provenance(tmp_path)
    first = (tmp_path / "MEMORY.md").stat()
    assert FACTS_A in (tmp_path / "MEMORY.md").read_text()
    rewrite_provenance(tmp_path)
    assert (tmp_path / "MEMORY.md").stat().st_ino == first.st_ino


def test_without_evidence_both_files_are_written_and_accepted(tmp_path: Path) -> None:
    empty_folder(tmp_path)
    after = Folder.read(tmp_path)
    verdict = judge(
        before=Folder(files()), after=after, removed_threads=(), max_summary_bytes=1000, redactor=Redactor()
    )
    assert sorted(after.files) == ["MEMORY.md", "memory_summary.md"]
    assert verdict.complaints == ()


def test_one_of_the_two_files_that_is_no_text_stays_for_acceptance_to_name(tmp_path: Path) -> None:
    write_files(tmp_path, files())
    before = Folder.read(tmp_path)
    (tmp_path / "MEMORY.md").write_bytes(b"x" * (1024 * 1024 + 1))
    (tmp_path / "memory_summary.md").write_bytes(b"v1\n\xff\n")

    assert clean_strays(tmp_path, before) == ()

    verdict = judge(
        before=before,
        after=Folder.read(tmp_path),
        removed_threads=(),
        max_summary_bytes=40_000,
        redactor=Redactor(),
    )
    assert "MEMORY.md is larger than 1 MiB; write it anew" in verdict.complaints
    assert "memory_summary.md is not UTF-8 text; write it anew" in verdict.complaints


def test_a_symlink_in_the_place_of_a_file_is_removed(tmp_path: Path) -> None:
    write_files(tmp_path, files(MEMORY=None))
    (tmp_path / "MEMORY.md").symlink_to("/etc/passwd")

    assert clean_strays(tmp_path, Folder.read(tmp_path)) == ("MEMORY.md",)
