import tempfile
from pathlib import Path

import pytest

from tests.control.conftest import Shell


@pytest.fixture
def throw_aways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which throw-away homes are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_demo_remembers_the_bundled_sessions_in_the_home_that_was_named(shell: Shell) -> None:
    shell.home.config_file.unlink()
    said = shell("demo", "--json")
    assert said.code == 0, said
    told = said.json
    assert told["jobs"]["memory_stage1"]["remembered"] >= 5
    assert told["jobs"]["memory_consolidate_global"] == {"published": 1}
    assert told["summary"].startswith("v1\n")
    assert told["excluded"]
    assert (shell.home.memories / "MEMORY.md").exists()


def test_a_home_in_use_is_refused(shell: Shell) -> None:
    said = shell("demo")
    assert said.code == 2
    assert "not empty" in said.err


def test_a_throw_away_home_goes_away_again_unless_it_is_kept(
    shell: Shell, throw_aways: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from memoryd.control.main import main

    assert main(["demo"]) == 0
    told = capsys.readouterr().out
    assert "memory_summary.md" in told
    assert list(throw_aways.iterdir()) == []
    assert main(["demo", "--keep"]) == 0
    (kept,) = throw_aways.iterdir()
    assert str(kept) in capsys.readouterr().out
    assert (kept / "memories" / "MEMORY.md").exists()


def test_ones_own_sessions_are_read_and_left_as_they_are(
    shell: Shell, throw_aways: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """I7; and MEMORYD_* variables have no say."""
    from memoryd.control.main import main

    path = shell.record(idle_hours=24 * 40)
    monkeypatch.setenv("CODEX_HOME", str(shell.codex))
    monkeypatch.setenv("MEMORYD_EXTRACT__PROVIDER", "nobody")
    before = path.read_bytes()
    assert main(["demo", "--mine"]) == 0
    told = capsys.readouterr().out
    assert str(shell.codex) in told
    assert "1 remembered" in told
    assert path.read_bytes() == before
    assert [found for found in shell.codex.rglob("*") if found.is_file()] == [path]


def test_without_a_memory_the_demo_says_so(
    shell: Shell, throw_aways: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memoryd.control.main import main

    monkeypatch.setenv("CODEX_HOME", str(shell.codex))
    assert main(["demo", "--mine"]) == 0
    assert "No memory was written" in capsys.readouterr().out
