"""Something else in the place of what is memoryd's: every command ends, and says what to do."""

import os
from pathlib import Path

import pytest

from memoryd.workspace.layout import Home
from tests.control.conftest import Shell

NAMES = ("ledger.sqlite3", "memoryd.lock", "memories", "recall", "staging", "backups")


def put(home: Home, name: str) -> Path:
    """Put a FIFO there, for which whoever opens it waits; what was there is moved beside it."""
    path = home.path / name
    if path.exists():
        path.rename(home.path / f"{name}.before")
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_what_writes_names_what_is_in_its_place_and_nothing_is_lost(shell: Shell, name: str) -> None:
    shell.record()
    assert shell("sync", "--now").code == 0
    path = put(shell.home, name)

    for words in (["sync", "--now"], ["forget", "0194"], ["undo"], ["reset", "--yes"]):
        said = shell(*words)
        assert said.code == 1, words
        assert f"memoryd: {path} is no " in said.err, words
        assert "(move it elsewhere: memoryd makes its own in its place)\n" in said.err, words

    path.unlink()
    (shell.home.path / f"{name}.before").rename(path)
    assert shell("sync", "--now").code == 0
    assert "tabs" in shell("recall").out + shell("search", "tabs").out


@pytest.mark.parametrize("name", NAMES)
def test_what_reads_ends_and_status_and_doctor_name_it(shell: Shell, name: str) -> None:
    shell.record()
    assert shell("sync", "--now").code == 0
    path = put(shell.home, name)

    for words in (["search", "tabs"], ["recall"], ["why", "tabs"], ["explain"], ["memories"]):
        assert "a fault in memoryd itself" not in shell(*words).err, words
    for words in (["status"], ["doctor", "--offline"]):
        said = shell(*words)
        assert (said.code, f"{path} is no " in said.out) == (1, True), said


def test_status_names_a_link_that_keeps_memoryd_from_starting(shell: Shell, tmp_path: Path) -> None:
    shell.record()
    assert shell("sync", "--now").code == 0
    shell.home.recall.rename(tmp_path / "recall")
    shell.home.recall.symlink_to(tmp_path / "recall")

    said = shell("status")

    assert (said.code, f"{shell.home.recall} is a symlink: memoryd does not start" in said.out) == (1, True)
