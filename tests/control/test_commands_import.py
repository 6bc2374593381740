from pathlib import Path

import pytest

from tests.control.conftest import Shell
from tests.pipeline.test_import_claude import a_claude_memory
from tests.support.codex_memories import a_codex_memory


@pytest.fixture
def codex(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    shell.home.config_file.write_text("")
    home = a_codex_memory(shell.folder / "their-codex")
    monkeypatch.setenv("CODEX_HOME", str(home))
    return home


def test_codex_is_imported_from_where_its_variable_says_and_the_report_has_counts(shell: Shell, codex: Path) -> None:
    said = shell("import", "codex")
    assert said.code == 0, said
    assert "3 sessions imported" in said.out
    assert "nothing was sent" in said.out
    again = shell("import", "codex", "--json")
    assert again.json["sessions"] == {"unchanged": 3}
    assert again.json["consolidation"] is False
    assert "nothing new" in shell("import", "codex").out
    assert "Import the memory of Codex" in shell("history").out


def test_a_dry_run_says_what_would_come_and_makes_nothing(shell: Shell, codex: Path) -> None:
    before = sorted(shell.home.path.iterdir())
    said = shell("import", "codex", "--dry-run")
    assert said.code == 0, said
    assert "3 sessions would be imported" in said.out
    assert sorted(shell.home.path.iterdir()) == before
    shell("import", "codex")
    assert shell("import", "codex", "--dry-run", "--json").json["sessions"] == {"unchanged": 3}


def test_claude_is_imported_from_a_folder_that_is_named(shell: Shell) -> None:
    claude = a_claude_memory(shell.folder / "their-claude")
    assert shell("import", "claude", "--from", str(claude), "--dry-run", "--json").json["files"] == {"imported": 2}
    said = shell("import", "claude", "--from", str(claude), "--json")
    assert (said.code, said.json["files"]) == (0, {"imported": 2})
    assert shell("import", "claude", "--from", str(claude), "--dry-run").out.count("2 here already") == 1


@pytest.mark.parametrize("agent", ["codex", "claude"])
def test_a_folder_without_a_memory_is_wrong_use(shell: Shell, agent: str) -> None:
    empty = shell.folder / "empty"
    empty.mkdir()
    for extra in ([], ["--dry-run"]):
        said = shell("import", agent, "--from", str(empty), *extra)
        assert said.code == 2
        assert "there is no memory of" in said.err
    assert "there is no folder" in shell("import", agent, "--from", str(empty / "gone")).err


def test_a_daemon_that_holds_the_lock_is_asked(shell: Shell, codex: Path) -> None:
    asked: list[object] = []

    async def answer(request: object, _tell: object) -> dict[str, object]:
        asked.append(request)
        return {
            "agent": "codex",
            "homes": [],
            "dry_run": False,
            "read": [],
            "sessions": {},
            "files": {},
            "bullets": 0,
            "left_out": [],
            "left_out_unnamed": 0,
            "commit": None,
            "consolidation": False,
        }

    with shell.held(answer=answer):
        assert shell("import", "codex").code == 0
    assert asked == [{"do": "import", "agent": "codex", "homes": [str(codex)]}]
