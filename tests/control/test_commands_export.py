import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.control.conftest import THREAD, Shell
from tests.support.secrets import SHAPES


@pytest.fixture
def learned(shell: Shell) -> Shell:
    shell.record()
    assert shell("sync", "--now").code == 0
    return shell


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(row) for row in path.read_text().splitlines()]


def test_what_was_learned_is_written_as_files_and_json_lines(learned: Shell) -> None:
    target = learned.folder / "out"
    said = learned("export", str(target))
    assert said.code == 0, said
    for path in ("MEMORY.md", "memory_summary.md", "raw_memories.md"):
        assert (target / "memories" / path).read_text() == (learned.home.memories / path).read_text()
    assert not (target / "memories" / ".git").exists()
    (output,) = rows(target / "stage1_outputs.jsonl")
    assert (output["thread_id"], output["agent"], output["selected_for_phase2"]) == (THREAD, "codex", True)
    claims = rows(target / "claims.jsonl")
    assert claims
    assert all(claim["thread_ids"] == [THREAD] for claim in claims)
    manifest = json.loads((target / "manifest.json").read_text())
    assert (manifest["format"], manifest["version"]) == ("memoryd-export", 1)
    assert (manifest["stage1_outputs"], manifest["claims"]) == (1, len(claims))
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in target.rglob("*") if path.is_file())
    folders = [target, *(path for path in target.rglob("*") if path.is_dir())]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in folders)
    assert manifest["complete"] is True


def test_an_export_that_was_cut_short_is_made_anew_without_being_forced(learned: Shell) -> None:
    target = learned.folder / "out"
    assert learned("export", str(target)).code == 0
    manifest = target / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "complete": False}))
    (target / "memories" / "stale.md").write_text("of a session that is forgotten since")
    assert learned("export", str(target)).code == 0
    assert not (target / "memories" / "stale.md").exists()
    assert json.loads(manifest.read_text())["complete"] is True


@pytest.mark.parametrize("place", ["memories", "memories/rollout_summaries"])
def test_an_export_follows_no_link_out_of_its_folder(learned: Shell, place: str) -> None:
    """I7."""
    target, elsewhere = learned.folder / "out", learned.folder / "elsewhere"
    elsewhere.mkdir()
    (target / place).parent.mkdir(parents=True)
    (target / place).symlink_to(elsewhere)
    said = learned("export", str(target), "--force")
    assert (said.code, "is a symlink" in said.err) == (2, True)
    assert list(elsewhere.iterdir()) == []


def test_a_pipe_in_the_place_of_a_manifest_is_not_waited_for(learned: Shell) -> None:
    target = learned.folder / "out"
    target.mkdir()
    os.mkfifo(target / "manifest.json")
    assert learned("export", str(target)).code == 2
    assert learned("export", str(target), "--force").code == 0


def test_a_folder_that_is_not_empty_is_refused_and_with_force_only_an_export_is_replaced(learned: Shell) -> None:
    target = learned.folder / "out"
    (target / "memories").mkdir(parents=True)
    (target / "memories" / "mine.md").write_text("not memoryd's")
    said = learned("export", str(target))
    assert (said.code, "--force" in said.err) == (2, True)
    assert not (target / "manifest.json").exists()
    assert learned("export", str(target), "--force").code == 0
    assert (target / "memories" / "mine.md").read_text() == "not memoryd's"
    (target / "memories" / "stale.md").write_text("of an earlier export")
    (target / "other.txt").write_text("beside it")
    assert learned("export", str(target), "--force").code == 0
    assert not (target / "memories" / "stale.md").exists()
    assert (target / "other.txt").exists()


def test_what_lay_there_before_a_forced_export_survives_its_being_cut_short(learned: Shell) -> None:
    target = learned.folder / "out"
    (target / "memories").mkdir(parents=True)
    mine = target / "memories" / "mine.md"
    mine.write_text("not memoryd's")
    (target / "stage1_outputs.jsonl").mkdir()  # in the way: the export ends here
    assert learned("export", str(target), "--force").code == 1
    assert json.loads((target / "manifest.json").read_text())["complete"] is False
    (target / "stage1_outputs.jsonl").rmdir()
    assert learned("export", str(target)).code == 2
    assert learned("export", str(target), "--force").code == 0
    assert mine.read_text() == "not memoryd's"


@pytest.mark.parametrize(
    "name", ["-", "n" * 300, "loop", "loop/in", "file", "file/in", "/dev/full", "~nobody-of-that-name/x"]
)
def test_what_no_folder_can_be_made_of_is_said_and_nothing_is_written(
    learned: Shell, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(learned.folder)
    (learned.folder / "loop").symlink_to("loop")
    (learned.folder / "file").write_text("theirs")
    before = sorted(learned.folder.iterdir())
    for command in (("export", name), ("import", "codex", "--from", name)):
        said = learned(*command)
        assert said.code in (1, 2), said
        assert "fault in memoryd" not in said.err
    assert sorted(learned.folder.iterdir()) == before
    assert (learned.folder / "file").read_text() == "theirs"


def test_killed_at_any_point_an_export_says_that_it_is_not_whole_and_the_next_one_is(learned: Shell) -> None:
    """kill -9 before each thing that it does to the disk, over nothing and over a whole export of another day."""
    words = [
        sys.executable,
        "-m",
        "tests.support.killed_export",
        str(learned.home.path),
        str(learned.folder / "killed"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    fresh, over = map(int, done.stdout.split())
    assert fresh > 20
    assert over > fresh


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can mount a small disk")
def test_on_a_full_disk_it_says_so_and_the_next_one_is_whole(learned: Shell) -> None:
    target = learned.folder / "small"
    target.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(target)], check=False)
    if mounted.returncode:
        pytest.skip("this machine mounts nothing")
    try:
        filler = target / ".memoryd-filler.tmp"  # named like what an export leaves behind
        for left in (0, 8192):
            filler.write_bytes(bytes(65536 - left))
            said = learned("export", str(target / "out"))
            assert (said.code, "No space left" in said.err) == (1, True)
            assert not (target / "out" / "manifest.json").exists() or left
        filler.unlink()
        assert learned("export", str(target / "out")).code == 0
        assert json.loads((target / "out" / "manifest.json").read_text())["complete"] is True
    finally:
        subprocess.run(["umount", "-l", str(target)], check=True)


@pytest.mark.parametrize("place", ["home/memories/out", "home", "."])
def test_a_place_in_or_around_memoryds_own_folder_is_refused(learned: Shell, place: str) -> None:
    said = learned("export", str(learned.folder / place), "--force")
    assert said.code == 2
    assert "own folder" in said.err


def test_links_are_left_out_and_named_and_no_secret_comes_along(learned: Shell) -> None:
    """I6."""
    secret = SHAPES["openai project"]
    (learned.home.memories / "mine.md").write_text(f"the key is {secret}\n")
    (learned.home.memories / "link.md").symlink_to("/etc/hostname")
    said = learned("export", str(learned.folder / "out"), "--json")
    assert said.json["left_out"] == {"link.md": "symlink"}
    assert "[REDACTED_SECRET" in (learned.folder / "out" / "memories" / "mine.md").read_text()


def test_a_name_that_holds_a_secret_or_no_unicode_is_left_out_and_shown_without_it(learned: Shell) -> None:
    """I6."""
    secret = SHAPES["openai project"]
    (learned.home.memories / f"{secret}.md").write_text("a key as a name\n")
    Path(os.fsdecode(os.fsencode(learned.home.memories) + b"/\xff\n.md")).write_text("no text as a name\n")
    said = learned("export", str(learned.folder / "out"))
    assert said.code == 0, said
    assert (said.out.count("left out"), len(said.out.splitlines())) == (2, 6)
    assert secret not in said.out
    written = b"".join(path.read_bytes() for path in (learned.folder / "out").rglob("*") if path.is_file())
    assert secret.encode() not in written
    assert not any(secret in str(path) for path in (learned.folder / "out").rglob("*"))


def test_what_may_not_be_remembered_is_no_part_of_it(learned: Shell) -> None:
    assert learned("sessions", "set-mode", THREAD, "disabled").code == 0
    assert learned("export", str(learned.folder / "out"), "--json").json["outputs"] == 0


def test_an_export_is_brought_in_elsewhere_with_its_sessions_and_its_words(learned: Shell) -> None:
    target, other, again = (learned.folder / name for name in ("out", "other", "again"))
    assert learned("note", "Be brief").code == 0
    assert learned("export", str(target)).code == 0
    (summary,) = (target / "memories" / "rollout_summaries").iterdir()
    summary.write_text(summary.read_text().replace("agent: codex", "agent: claude"))
    other.mkdir()
    (other / "config.toml").write_text("")
    said = learned("import", "codex", "--from", str(target), "--home", str(other), "--json")
    assert (said.code, said.json["sessions"], said.json["left_out"]) == (0, {"imported": 1}, [])

    assert learned("export", str(again), "--home", str(other)).code == 0
    for path in ("memory_summary.md", "raw_memories.md"):
        assert (again / "memories" / path).read_text() == (target / "memories" / path).read_text()
    handbook = (target / "memories" / "MEMORY.md").read_text()
    assert (again / "memories" / "MEMORY.md").read_text() == handbook[handbook.index("# Task Group") :]
    assert [path.name for path in (again / "memories").rglob("*-be-brief.md")]
    (here,), (there,) = rows(target / "stage1_outputs.jsonl"), rows(again / "stage1_outputs.jsonl")
    taught = ("thread_id", "source_updated_at", "raw_memory", "rollout_summary", "cwd", "git_branch", "rollout_path")
    assert {name: str(there[name]).strip() for name in taught} == {name: str(here[name]).strip() for name in taught}
    assert there["agent"] == "claude"


def test_before_anything_was_learned_an_export_is_empty(shell: Shell) -> None:
    said = shell("export", str(shell.folder / "out"), "--json")
    assert (said.code, said.json["files"], said.json["outputs"]) == (0, 0, 0)
