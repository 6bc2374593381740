import os
import sys
from pathlib import Path
from typing import Self

import pytest

from memoryd.control.main import COMMANDS, EXIT_CONFIGURATION, EXIT_INTERRUPTED, main
from memoryd.ledger import meta
from tests.control.conftest import Shell


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    listed = capsys.readouterr().out
    assert all(f"  {name}" in listed for name in COMMANDS)
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == listed


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("memoryd 0.")


@pytest.mark.parametrize(("word", "hint"), [("synk", "did you mean `memoryd sync`?"), ("xyzzy", "memoryd --help")])
def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str], word: str, hint: str) -> None:
    assert main([word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert hint in err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert "--home DIR" in capsys.readouterr().out


def test_the_home_may_stand_before_the_command(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    home = str(shell.home.path)
    assert main(["--home", home, "config", "check"]) == 0
    assert main([f"--home={home}", "config", "check"]) == 0
    assert capsys.readouterr().out.count(home) == 2


@pytest.mark.parametrize("words", ["config check", "sessions list", "service status", "service restart", "jobs list"])
def test_the_home_may_stand_behind_the_command_and_behind_its_action(shell: Shell, words: str) -> None:
    command, action = words.split()
    shell.write(meta.get, "first_start_at")
    behind_the_command = shell(command, action)
    assert main([command, action, "--home", str(shell.home.path)]) == behind_the_command.code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("jobs show --json KEY", "there is no job 'KEY'"),
        ("sessions set-mode --json ID disabled", "there is no session 'ID'"),
        ("forget ID --purge --json OTHER", "there is no session 'ID'"),
        ("review show --json 7", "there is no proposal 7"),
        ("undo --json -- -1", "cannot undo '-1' changes"),
    ],
)
def test_options_may_stand_between_the_words(shell: Shell, words: str, said: str) -> None:
    shell.write(meta.get, "first_start_at")
    done = shell(*words.split())
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_what_stands_behind_two_dashes_is_no_option(shell: Shell) -> None:
    done = shell("note", "--", "--force", "is never used")
    assert done.code == 0
    assert [path.read_text().splitlines()[-1] for path in shell.home.memories.rglob("notes/*.md")] == [
        "--force is never used"
    ]


@pytest.mark.parametrize(("command", "code"), [("sync", 2), ("status", 2), ("run", EXIT_CONFIGURATION)])
def test_a_wrong_setting_is_one_line_with_its_place(shell: Shell, command: str, code: int) -> None:
    shell.configure("[extract]\nmodle = 'x'\n")
    said = shell(command)
    assert (said.code, said.out) == (code, "")
    assert said.err.count("\n") == 1
    assert "config.toml" in said.err
    assert "extract.model" in said.err


def test_a_ledger_of_a_newer_version_is_named(shell: Shell) -> None:
    shell.write(meta.get, "first_start_at")
    shell.write(lambda conn: conn.execute("PRAGMA user_version = 999"))
    for command, code in (("status", 2), ("sync", 2), ("run", EXIT_CONFIGURATION)):
        said = shell(command)
        assert (said.code, said.err.count("\n")) == (code, 1), said


class _Broken:
    """A stdout that fails in a way of the test's choosing."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def write(self, _text: str) -> int:
        raise self._error

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        return self._descriptor

    def __enter__(self) -> Self:
        self._descriptor = os.open(os.devnull, os.O_WRONLY)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), EXIT_INTERRUPTED, "memoryd: interrupted\n"),
        (BrokenPipeError(), 0, ""),
        (ZeroDivisionError("odd"), 1, "memoryd: a fault in memoryd itself: ZeroDivisionError: odd (at "),
    ],
)
def test_whatever_goes_wrong_is_one_line_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str
) -> None:
    with _Broken(error) as broken, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", broken)
        assert main(["--help"]) == code
    err = capsys.readouterr().err
    assert err.startswith(words)
    assert err.count("\n") == (1 if words else 0)
    assert "Traceback" not in err


def test_the_words_of_the_process_are_taken_when_none_are_given(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["memoryd", "config", "check", "--home", str(shell.home.path)])
    assert main() == 0
    assert str(Path(shell.home.config_file)) in capsys.readouterr().out
