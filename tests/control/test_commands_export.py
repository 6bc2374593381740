import json
import os
import stat
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


def test_before_anything_was_learned_an_export_is_empty(shell: Shell) -> None:
    said = shell("export", str(shell.folder / "out"), "--json")
    assert (said.code, said.json["files"], said.json["outputs"]) == (0, 0, 0)
