"""What a run leaves where nothing belongs is kept apart, bounded, and goes with a purge."""

from pathlib import Path

import pytest

from memoryd.redact import Redactor
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home
from memoryd.workspace.mending import clean_strays
from memoryd.workspace.purging import rewrite_history, wipe
from memoryd.workspace.quarantine import MAX_FILE_BYTES, MAX_FILES, MAX_RUNS, Quarantine
from tests.workspace.factories import NOW, a_folder, files, write_files

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2


def a_quarantine(home: Home, name: str = "0000000001-run") -> Quarantine:
    return Quarantine(home, name, Redactor())


def kept(home: Home) -> list[str]:
    return sorted(path.relative_to(home.quarantine).as_posix() for path in home.quarantine.rglob("*") if path.is_file())


def test_small_texts_are_kept_without_secrets_and_what_is_no_text_is_not(home: Home, tmp_path: Path) -> None:
    """I6."""
    work = tmp_path / "work"
    write_files(
        work, {**files(), "junk.md": f"mine: {KEY}\n", "deep/notes.txt": "x", "big.md": "x" * MAX_FILE_BYTES + "x"}
    )
    write_files(work, {f"{KEY}.md": "x", "nested/.git/HEAD": "x"})
    (work / "picture.png").write_bytes(b"\x00")
    (work / "link.md").symlink_to("/etc/hostname")

    strays = clean_strays(work, a_folder(), quarantine=a_quarantine(home))

    assert set(strays) == {"junk.md", "deep/notes.txt", "big.md", "picture.png", "link.md", "nested", f"{KEY}.md"}
    assert kept(home) == ["0000000001-run/deep/notes.txt", "0000000001-run/junk.md"]
    junk = home.quarantine / "0000000001-run/junk.md"
    assert KEY not in junk.read_text()
    assert junk.stat().st_mode & 0o777 == 0o600
    assert home.quarantine.stat().st_mode & 0o777 == 0o700


def test_a_run_keeps_few_and_the_newest_runs_stay(home: Home, tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number:03}.md": "x" for number in range(MAX_FILES + 1)})
    paths = sorted(path.name for path in tmp_path.glob("*.md"))
    for run in range(MAX_RUNS + 2):
        assert a_quarantine(home, f"{run:010}-run").keep(tmp_path, paths) == MAX_FILES
    assert sorted(path.name for path in home.quarantine.iterdir()) == [
        f"{run:010}-run" for run in range(2, MAX_RUNS + 2)
    ]


def test_nothing_is_written_through_a_link_and_a_quarantine_in_the_way_fails_no_run(home: Home, tmp_path: Path) -> None:
    """I7."""
    write_files(tmp_path / "work", {"junk.md": "x"})
    (tmp_path / "elsewhere").mkdir()
    home.quarantine.symlink_to(tmp_path / "elsewhere")
    assert a_quarantine(home).keep(tmp_path / "work", ["junk.md"]) == 0
    home.quarantine.unlink()
    home.quarantine.write_text("a file of the person's")
    assert a_quarantine(home).keep(tmp_path / "work", ["junk.md"]) == 0
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("purge", [rewrite_history, wipe])
def test_a_purge_and_a_reset_leave_none_of_it(home: Home, repo: Repository, tmp_path: Path, purge: object) -> None:
    """I12."""
    write_files(tmp_path / "work", {"junk.md": "sentinel"})
    assert a_quarantine(home).keep(tmp_path / "work", ["junk.md"]) == 1
    purge(home, repo, now=NOW)  # type: ignore[operator]  # one of the two functions above
    assert not home.quarantine.exists()
