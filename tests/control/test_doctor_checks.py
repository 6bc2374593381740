"""What doctor looks at besides providers, and what `--fix` puts right: twice the same, and nothing is lost."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from memoryd.control.checks_machine import judge_watches
from memoryd.ledger import meta
from tests.control.conftest import Shell

SECRET = "sk-proj-" + "a1B2" * 12


def by_id(shell: Shell, *words: str) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in shell("doctor", "--offline", "--json", *words).json}


def remembered(shell: Shell) -> None:
    shell.record()
    assert shell("sync", "--now").code == 0


def test_each_finding_has_a_severity_evidence_and_a_remedy_if_something_is_wrong(shell: Shell) -> None:
    remembered(shell)
    found = shell("doctor", "--offline", "--json").json
    assert {"git", "sqlite", "disk", "clock", "watcher", "memory", "recall", "modes", "caps"} <= {
        f["id"] for f in found
    }
    for each in found:
        assert each["severity"] in {"ok", "info", "warning", "error"}
        assert each["evidence"]
        assert each["remedy"] or each["severity"] in {"ok", "info"}


def test_a_sound_home_is_left_alone_by_fix(shell: Shell) -> None:
    remembered(shell)
    said = shell("doctor", "--offline", "--fix")
    assert (said.code, "fixed" in said.out, "0 errors, 0 warnings" in said.out) == (0, False, True), said.out


def test_what_is_safe_is_put_right_said_and_then_left_alone(shell: Shell) -> None:
    remembered(shell)
    home = shell.home
    summary = (home.recall / "everywhere.md").read_text()
    home.path.chmod(0o755)
    home.config_file.chmod(0o644)
    shutil.rmtree(home.recall)
    (home.bin / "hook.py").write_text("old")
    lock = home.git_dir / "index.lock"
    lock.touch()
    os.utime(lock, (1_000_000, 1_000_000))
    before = by_id(shell)
    wrong = {"modes", "folder_recall", "lock_index.lock", "runner", "recall"}
    assert wrong <= {name for name, each in before.items() if each["severity"] == "warning"}
    assert all("memoryd doctor --fix" in before[name]["remedy"] for name in wrong)

    said = shell("doctor", "--offline", "--fix")
    assert said.code == 0
    assert f"fixed   {home.path}: mode 755 is 700 now" in said.out
    assert f"fixed   {lock}: removed" in said.out
    assert "0 errors, 0 warnings" in said.out
    assert (home.recall / "everywhere.md").read_text() == summary
    assert "fixed" not in shell("doctor", "--offline", "--fix").out


def test_a_deleted_memory_folder_comes_back_by_fix(shell: Shell) -> None:
    remembered(shell)
    kept = (shell.home.memories / "MEMORY.md").read_text()
    for path in shell.home.memories.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert by_id(shell)["folder_missing"]["repair"] == "reopen"
    shell("doctor", "--offline", "--fix")
    assert (shell.home.memories / "MEMORY.md").read_text() == kept


def test_a_fresh_lock_is_somebody_at_work_and_stays(shell: Shell) -> None:
    remembered(shell)
    (shell.home.git_dir / "index.lock").touch()
    assert "lock_index.lock" not in by_id(shell, "--fix")
    assert (shell.home.git_dir / "index.lock").exists()


def test_while_another_memoryd_works_fix_says_that_it_cannot(shell: Shell) -> None:
    remembered(shell)
    (shell.home.recall / "everywhere.md").unlink()
    with shell.held("sync"):
        said = shell("doctor", "--offline", "--fix")
    assert "not now: " in said.out
    assert "is not that of the memory as it stands" in said.out, "the finding stands"


@pytest.mark.parametrize("name", ["memories", "bin", "backups", "recall", "staging", "quarantine"])
def test_a_folder_of_the_home_that_is_a_link_is_refused_by_all_that_writes(shell: Shell, name: str) -> None:
    """I7: what it leads to stays as it is, byte for byte."""
    remembered(shell)
    folder, elsewhere = shell.home.path / name, shell.folder / "elsewhere"
    folder.mkdir(exist_ok=True)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = {path: path.lstat().st_mtime_ns for path in [elsewhere, *elsewhere.rglob("*")]}

    for words in (["sync", "--now"], ["note", "Deploy on Fridays."], ["run"], ["doctor", "--offline", "--fix"]):
        said = shell(*words)
        assert said.code == 1, words
        assert f"{folder} is a symlink" in said.out + said.err, words
    assert {path: path.lstat().st_mtime_ns for path in [elsewhere, *elsewhere.rglob("*")]} == before

    found = by_id(shell)[f"link_{name}"]
    assert (found["severity"], "which itself may be a link" in found["remedy"]) == ("error", True)
    folder.unlink()
    elsewhere.rename(folder)
    assert shell("sync", "--now").code == 0


def test_a_home_that_is_itself_a_link_works_as_any_other(shell: Shell) -> None:
    remembered(shell)
    shell.home.path.rename(shell.folder / "elsewhere")
    shell.home.path.symlink_to(shell.folder / "elsewhere")
    assert shell("sync", "--now").code == 0
    assert shell("note", "Deploy on Fridays.").code == 0
    assert not [each for each in by_id(shell) if each.startswith("link_")]


def test_a_secret_in_a_person_s_file_is_named_by_its_line_and_never_shown(shell: Shell) -> None:
    remembered(shell)
    notes = shell.home.memories / "extensions" / "ad_hoc" / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "2026-11-29T10-00-00-key.md").write_text(f"one\nthe key is {SECRET}\n")
    (shell.home.memories / "link.md").symlink_to("MEMORY.md")
    (shell.home.memories / f"{SECRET}.md").write_text("its name is one")
    (shell.home.memories / f"{SECRET}.bin").write_bytes(b"\0")
    said = shell("doctor", "--offline")
    assert said.code == 1
    assert "a secret in its name" in said.out
    assert "extensions/ad_hoc/notes/2026-11-29T10-00-00-key.md, line 2: a secret" in said.out
    assert "link.md: symlink" in said.out
    assert SECRET not in said.out + said.err


def test_what_no_run_might_write_is_told_without_being_an_error(shell: Shell) -> None:
    remembered(shell)
    handbook = shell.home.memories / "MEMORY.md"
    handbook.write_text(handbook.read_text() + "\n# Task Group: mine\nscope: none\n")
    found = by_id(shell)
    assert found["memory_form"]["severity"] == "info"
    assert "MEMORY.md" in found["memory_form"]["evidence"]


def test_wrong_settings_are_a_finding_too(shell: Shell) -> None:
    shell.configure("[extract]\nmodle = 'x'\n")
    said = shell("doctor", "--offline")
    assert said.code == 2
    assert "extract.model" in said.out


def test_a_ledger_that_cannot_be_read_does_not_keep_doctor_from_the_rest(shell: Shell) -> None:
    shell.write(meta.get, "first_start_at")
    shell.write(lambda conn: conn.execute("PRAGMA user_version = 999"))
    found = by_id(shell)
    assert "version 999" in found["ledger"]["evidence"]
    assert found["disk"]["severity"] == "ok"


@pytest.mark.parametrize(
    ("folders", "watches", "instances", "severity"),
    [(10, 65_536, 128, "ok"), (60_000, 65_536, 128, "warning"), (10, 65_536, 1, "warning"), (10, None, None, "info")],
)
def test_the_watches_that_the_system_gives_are_compared_with_the_folders(
    folders: int, watches: int | None, instances: int | None, severity: str
) -> None:
    found = judge_watches(folders, watches, instances)
    assert found.severity == severity
    assert severity in {"ok", "info"} or "sysctl fs.inotify" in found.remedy


def test_a_clock_behind_memoryd_s_own_files_is_named(shell: Shell) -> None:
    remembered(shell)
    ahead = shell.home.ledger_file.stat().st_mtime + 10 * 86_400
    os.utime(shell.home.config_file, (ahead, ahead))
    assert by_id(shell)["clock"]["severity"] == "warning"


def test_fix_on_a_home_that_is_not_there_makes_none(shell: Shell, tmp_path: Path) -> None:
    shutil.rmtree(shell.home.path)
    shell("doctor", "--offline", "--fix")
    assert not shell.home.path.exists()
