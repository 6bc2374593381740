"""What shells complete is what the commands understand; bash's own function is asked where there is a bash."""

import os
import pty
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from memoryd.control.main import COMMANDS, load, main, parser_of
from tests.control.conftest import Shell

BASH, FISH = shutil.which("bash"), shutil.which("fish")
needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash")


@pytest.fixture
def script(tmp_path: Path, shell: Shell) -> Path:
    said = shell_completion(shell, "bash")
    path = tmp_path / "completion.bash"
    path.write_text(said)
    return path


def shell_completion(shell: Shell, name: str) -> str:
    shell._capsys.readouterr()
    assert main(["completion", name]) == 0
    return shell._capsys.readouterr().out


def completed(script: Path, *words: str) -> list[str]:
    """Ask bash's function what the last of these words may become."""
    assert BASH is not None
    ask = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _memoryd; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [BASH, "--norc", "-c", ask, "-", str(script), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=script.parent,
    )
    assert done.stderr == ""
    return [row for row in done.stdout.split("\n") if row]


@needs_bash
def test_the_first_word_is_a_command(script: Path) -> None:
    offered = completed(script, "memoryd", "")
    assert set(COMMANDS) <= set(offered)
    assert completed(script, "memoryd", "im") == ["import"]
    assert completed(script, "memoryd", "--home", "somewhere", "im") == ["import"]


@needs_bash
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("import", "co"), ["codex"]),
        (("import", "codex", "--dr"), ["--dry-run"]),
        (("connect", "ge"), ["gemini"]),
        (("init", "--provider", "anth"), ["anthropic"]),
        (("sync", "--backfill", ""), ["recent", "all"]),
        (("jobs", "re"), ["retry"]),
        (("completion", "z"), ["zsh"]),
        (("service", "inst"), ["install"]),
        (("service", "install", "--ling"), ["--linger"]),
        (("init", "--model", ""), []),
    ],
)
def test_words_options_and_their_values_follow(script: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(script, "memoryd", *words) == offered


@needs_bash
def test_files_are_completed_where_one_belongs(script: Path) -> None:
    (script.parent / "a session.jsonl").touch()
    (script.parent / "folder").mkdir()
    assert completed(script, "memoryd", "status", "--home", "fol") == ["folder"]
    assert "completion.bash" in completed(script, "memoryd", "explain", "compl")


HOSTILE = [
    "$(touch ran)",
    "x`touch ran`",
    "y$(touch${IFS}ran)",
    ";touch ran",
    "*",
    "it's",
    'q"uote',
    "-rf",
    "a b",
    "\\back",
]


@needs_bash
def test_a_files_name_is_offered_as_a_word_that_says_it_and_runs_nothing(script: Path) -> None:
    folder = script.parent / "hostile"
    folder.mkdir()
    for name in HOSTILE:
        (folder / name).touch()
    (folder / "new\nline").touch()
    offered = completed(script, "memoryd", "--home", "x", "explain", "hostile/")
    assert BASH is not None
    said = subprocess.run(
        [BASH, "--norc", "-c", f"printf '%s\\0' {' '.join(offered)}"],
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    names = {f"hostile/{name}" for name in HOSTILE}
    assert names <= set(said.stdout.split("\0")) <= {*names, "hostile/new", "line", ""}
    assert not list(script.parent.rglob("ran"))


@needs_bash
@pytest.mark.parametrize("typed", ["hostile/x", "'hostile/x", '"hostile/x', "hostile\\/x"])
def test_the_tab_key_inserts_it_quoted(script: Path, typed: str) -> None:
    """Readline quotes what is said to be a file's name: without that the next Enter would run it."""
    folder = script.parent / "hostile"
    folder.mkdir()
    (folder / "x$(touch${IFS}ran)").touch()
    assert BASH is not None
    terminal, its_side = pty.openpty()
    told = f"source {script}; memoryd() {{ printf 'told:%s:' \"$2\"; exit; }}\nmemoryd explain {typed}\t\n"
    with subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-i"],
        stdin=its_side,
        stdout=its_side,
        stderr=its_side,
        start_new_session=True,
        cwd=script.parent,
        env={"PATH": os.environ["PATH"], "HOME": str(script.parent), "PS1": "", "TERM": "dumb"},
    ):
        os.close(its_side)
        os.write(terminal, told.encode())
        said = b""
        with suppress(OSError):  # a terminal whose last process has ended is an error
            while more := os.read(terminal, 65536):
                said += more
    os.close(terminal)
    assert b"told:hostile/x$(touch${IFS}ran):" in said
    assert not list(script.parent.rglob("ran"))


@needs_bash
def test_every_option_of_every_command_is_offered(script: Path) -> None:
    text = script.read_text()
    for name in COMMANDS:
        row = next(row for row in text.splitlines() if row.strip().startswith(f'"{name}") '))
        for action in parser_of(name, load(name))._actions:
            assert all(option in row.split('"')[3].split() for option in action.option_strings), (name, action)


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_the_others_name_every_command_and_are_understood_where_that_shell_is(shell: Shell, name: str) -> None:
    text = shell_completion(shell, name)
    assert all(command in text for command in COMMANDS)
    program = shutil.which(name)
    if program is not None:
        subprocess.run(
            [program, "-n", "-c", text], check=True, timeout=60, env={"HOME": str(shell.folder), "PATH": os.defpath}
        )


@pytest.mark.skipif(FISH is None, reason="there is no fish")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("memoryd im", ["import"]),
        ("memoryd --home /somewhere im", ["import"]),
        ("memoryd import ", ["claude", "codex"]),
        ("memoryd import codex --dr", ["--dry-run"]),
        ("memoryd service inst", ["install"]),
        ("memoryd service install --ling", ["--linger"]),
        ("memoryd service status --ling", []),
        ("memoryd init --provider anth", ["anthropic"]),
    ],
)
def test_fish_is_offered_the_same(shell: Shell, line: str, offered: list[str]) -> None:
    assert FISH is not None
    ask = "source (echo $argv[1] | psub); complete -C $argv[2]"
    done = subprocess.run(
        [FISH, "--no-config", "-c", ask, shell_completion(shell, "fish"), line],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={"HOME": str(shell.folder), "PATH": os.environ["PATH"], "TMPDIR": str(shell.folder)},
    )
    assert done.stderr == ""
    assert [row.split("\t")[0] for row in done.stdout.splitlines()] == offered
