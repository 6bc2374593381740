from pathlib import Path

import pytest

from memoryd.control.main import main


@pytest.fixture
def home(tmp_path: Path) -> Path:
    memories = tmp_path / "home" / "memories"
    memories.mkdir(parents=True)
    (memories / "memory_summary.md").write_text("v1\n\n## User Profile\n\nA person who likes short answers.\n")
    return tmp_path / "home"


def recall(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert main(["recall", "--home", str(home), *words]) == 0
    return tuple(capsys.readouterr())  # type: ignore[return-value]  # stdout and stderr


def test_recall_prints_what_an_agent_is_given_within_its_marker(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, _ = recall(home, capsys)
    assert given.startswith("<memoryd_memory>\n")
    assert given.endswith("</memoryd_memory>\n")
    assert "short answers" in given


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [("MEMORYD_RECALL__SCOPE", "off", "recall.scope"), ("MEMORYD_RECALL__EXCLUDE_CWD", "/src/*", "recall.exclude_cwd")],
)
def test_recall_gives_nothing_where_the_settings_say_so_and_says_why(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str
) -> None:
    monkeypatch.setenv(variable, value)
    given, said = recall(home, capsys, "--cwd", "/src/app")
    assert given == ""
    assert why in said


def test_recall_without_a_memory_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, said = recall(tmp_path, capsys)
    assert given == ""
    assert "memoryd sync --now" in said
