"""What failed, what then worked, and what was changed in between."""

import pytest

from memoryd.pipeline.offline_commands import (
    are_similar,
    command_line,
    failures_of,
    is_lasting,
    is_probe,
    program_of,
    runs_of,
    trouble_line,
)
from memoryd.pipeline.offline_extract import failure_bullet
from memoryd.sources.items import Item, ItemKind
from tests.support.offline_sessions import flat, patch, run


def bullets(*parts: list[Item]) -> list[str]:
    items = flat(*parts)
    return [failure_bullet(failure) for failure in failures_of(runs_of(items), items)]


def test_a_cure_names_the_failure_the_changes_and_what_worked() -> None:
    (bullet,) = bullets(
        run("pytest -q", 1, "E   ModuleNotFoundError: No module named 'orders'\n1 failed in 0.1s\n"),
        run("cat setup.py"),
        run("pip install -e ."),
        run("python - <<'EOF'\nprint()\nEOF"),
        patch("orders/app.py"),
        run("uv run pytest -q"),
    )

    assert bullet == (
        "`pytest -q` failed with exit code 1 (\"E ModuleNotFoundError: No module named 'orders'\"); after running "
        "`pip install -e .`, changing `orders/app.py`, `uv run pytest -q` worked with exit code 0"
    )


def test_similar_failures_in_a_row_are_one_and_the_last_one_tells() -> None:
    assert bullets(run("make test", 2, "error: first"), run("make test", 1, "error: second"), run("make test")) == [
        '`make test` failed with exit code 1 ("error: second"), 2 times; the same command worked with exit code 0'
    ]


def test_a_failure_without_a_cure_says_so() -> None:
    assert bullets(run("make deploy", 3), run("make test")) == [
        "`make deploy` failed with exit code 3; no similar command worked later in the session"
    ]


def test_failing_probes_teach_nothing() -> None:
    assert bullets(run("grep -rn foo src", 1), run("ls missing", 2), run("git diff --quiet", 1)) == []


def test_calls_and_outputs_are_paired_by_their_ids() -> None:
    call, output = ItemKind.TOOL_CALL, ItemKind.TOOL_OUTPUT
    items = [
        Item(call, "make a", 0, call_id="a"),
        Item(call, "make b", 1, call_id="b"),
        Item(output, "", 2, call_id="b", exit_code=1),
        Item(output, "", 3, call_id="a", exit_code=0),
        Item(output, "", 4, call_id="unknown", exit_code=0),
        Item(output, "no code", 5, call_id="a"),
    ]

    assert [(one.command, one.exit_code) for one in runs_of(items)] == [("make b", 1), ("make a", 0)]


def test_an_output_without_any_call_and_edits_are_no_runs() -> None:
    assert runs_of(flat(Item(ItemKind.TOOL_OUTPUT, "", 0, exit_code=0), patch("a.py"))) == []


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        ("npm install", "pnpm install"),
        ("python -m build", "python3 -m build"),
        ("pytest tests/a.py -q", "uv run pytest tests/a.py -q"),
        ("pytest tests/a.py", "pytest tests/a.py -x --lf"),
        ("cd app && make test", "make test && git diff --stat"),
        ("FOO=1 sudo make test", "BAR=2 make test"),
        ("terraform apply", "terraform apply -lock=false"),
        ("docker build -t a .", "docker build --no-cache -t a ."),
    ],
)
def test_the_same_try_is_similar(failed: str, later: str) -> None:
    assert are_similar(failed, later)


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        ("git push", "git commit"),
        ("npm install", "npm test"),
        ("pytest tests/a.py", "pytest tests/b.py"),
        ("make test", "ls"),
        ("ls a", "ls b"),
        ("make test", "cargo build"),
        ("", "make"),
        ("FOO=1", "make"),
    ],
)
def test_another_try_is_not_similar(failed: str, later: str) -> None:
    assert not are_similar(failed, later)


@pytest.mark.parametrize(
    "command",
    ["ls", "cd x && git status", "cat a | head", "sed -n 1,5p a", "kubectl -n x get pods", "env", "echo a 2>&1", ""],
)
def test_looking_is_a_probe(command: str) -> None:
    assert is_probe(command)


@pytest.mark.parametrize(
    "command",
    ["make", "git commit -m x", "git", "echo a > b", "sed -i s/a/b/ c", "kubectl rollout status x", "ls && make"],
)
def test_doing_is_no_probe(command: str) -> None:
    assert not is_probe(command)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("ok\nerror: no route\nFound 1 error in 2 files\n", "error: no route"),
        ("Permission denied\nbye\n", "Permission denied"),
        ("this failed\nbye\n", "this failed"),
        ("FAILED (failures=1)\nAssertionError: 2 != 3\n1 failed in 0.1s\n=====\n", "AssertionError: 2 != 3"),
        ("Chunk ID: a\nOutput:\nall is lost\n", "all is lost"),
        ("bad \x1b[31m error: colour", None),
        ("====\n", None),
        ("", None),
    ],
)
def test_the_telling_line_of_an_output(output: str, line: str | None) -> None:
    assert trouble_line(output) == line


def test_a_command_is_its_first_line_cut_between_words() -> None:
    assert command_line("\n  make   all \nmore") == "make all"
    assert len(command_line("word " * 100)) <= 160
    assert command_line("bad \0 line") == command_line("") == ""


def test_only_commands_that_can_be_repeated_are_worth_knowing() -> None:
    assert [is_lasting(command) for command in ("make", "git commit -m x", "python <<'E'", "rm -r x", "")] == [
        True,
        False,
        False,
        False,
        False,
    ]


def test_the_program_of_a_command_is_the_first_that_does_something() -> None:
    assert [program_of(command) for command in ("cd x && ./bin/tool y", "ls", "A=1 sudo make")] == ["tool", "", "make"]
