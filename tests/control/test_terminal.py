import io
import json
import sys
from contextlib import redirect_stdout

import pytest

from memoryd.control.main import main
from memoryd.control.terminal import drawn_on, guarded_stdout
from memoryd.text import spelled_out
from tests.control.conftest import Shell

STEERING = "\x1b]0;other title\x07\x1b[2J\x1b[8mhidden\r\x9b31m\u202eltr\u200b\0\U000e0041\udcff"


class ATerminal(io.StringIO):
    """What is written to it, and that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_steers_a_terminal_or_is_not_seen_is_spelled_out_and_the_rest_stays() -> None:
    assert spelled_out("\tä 👩\u200d💻\n") == "\tä 👩\u200d💻\n"
    assert spelled_out("\x1b[2J\r\x9b\u202e") == "\\u001b[2J\\u000d\\u009b\\u202e"
    assert json.loads(spelled_out(json.dumps({"a": STEERING}, ensure_ascii=False))) == {"a": STEERING}


def test_a_terminal_gets_no_escape_but_the_colours_of_diffs() -> None:
    terminal = ATerminal()
    with redirect_stdout(terminal), guarded_stdout():
        print(f"\x1b[32m+ {STEERING}\x1b[0m")
        sys.stdout.writelines(["\x1b[5m"])
        drawn_on().write("\x1b[?25l")
    said = terminal.getvalue()
    assert said.startswith("\x1b[32m+ \\u001b]0;other")
    assert said.endswith("\x1b[0m\n\\u001b[5m\x1b[?25l")
    assert said.count("\x1b") == 3
    assert not set(said) & set("\x07\r\x9b\u202e\u200b\0\U000e0041\udcff")


@pytest.mark.parametrize(
    "words", [("read", "MEMORY.md"), ("search", "--any", "evil"), ("search", "--any", "evil", "--json")]
)
def test_a_memory_does_not_steer_the_terminal_on_which_it_is_read(shell: Shell, words: tuple[str, ...]) -> None:
    shell.configure()
    shell.home.memories.mkdir(mode=0o700)
    text = STEERING.replace("\0", "").replace("\udcff", "")
    (shell.home.memories / "MEMORY.md").write_text(f"# Task Group: evil {text}\n")
    (shell.home.memories / "evil\u202e.md").write_text("evil\n")
    with redirect_stdout(terminal := ATerminal()):
        assert main([words[0], "--home", str(shell.home.path), *words[1:]]) == 0
    said = terminal.getvalue()
    assert not set(said) & set("\x1b\x07\r\x9b\u202e\u200b\U000e0041")
    assert "evil" in said


def test_elsewhere_what_cannot_be_encoded_is_said_all_the_same() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    with redirect_stdout(stream), guarded_stdout():
        print("ä \udcff \x1b[2J")
    assert raw.getvalue() == b"\\xe4 \\udcff \x1b[2J\n"


def test_an_error_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("forget",),
        ("sessions", "set-mode"),
        ("jobs", "show"),
        ("jobs", "retry"),
        ("sync", "--thread"),
    ],
)
def test_a_name_of_bytes_that_are_no_text_is_no_fault_of_memoryd(shell: Shell, words: tuple[str, ...]) -> None:
    shell.record()
    assert shell("sync", "--now").code == 0
    said = shell(*words, "a\udcff", *(["enabled"] if "set-mode" in words else []))
    assert said.code == 2
    assert "a fault in memoryd" not in said.err
