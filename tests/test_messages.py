"""What memoryd says to do can be done: commands that texts name exist, settings too, and errors have a way out."""

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

from memoryd import errors, logs
from memoryd.config import AGENT_HOMES, Settings
from memoryd.control import main, manual
from memoryd.control.main import COMMANDS, load, parser_of
from memoryd.errors import MemorydError
from memoryd.sections import Provider

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "memoryd"
SAMPLES = {"AGENT": "codex", "EVENT": "SessionStart", "COMMAND": "status", "N|COMMIT": "1", "X": "0"}
UNKNOWN = SAMPLES["X"]
"""Stands where a text is put in at run time."""
SOMETIMES = frozenset({"retry", "list", "show", "set-mode", "accept", "reject", "read"})


@dataclass(frozen=True)
class Told:
    """A text that people get to see, and where it stands."""

    place: str
    text: str


@cache
def said_by_code() -> tuple[Told, ...]:
    """Return every string of the program but docstrings; what is put in at run time reads X."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) in docstrings | inner:
                continue
            text = text_of(node)
            if text:
                found.append(Told(f"{path.relative_to(REPOSITORY)}:{node.lineno}", text))  # type: ignore[attr-defined]
    return tuple(found)


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)  # type: ignore[misc]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@cache
def written() -> tuple[Told, ...]:
    """Return the files that people and models get to read."""
    paths = [REPOSITORY / "README.md", REPOSITORY / "config.example.toml", *sorted(PACKAGE.rglob("*.md"))]
    paths += [path for folder in ("systemd", "launchd") for path in sorted((REPOSITORY / folder).iterdir())]
    return tuple(Told(str(path.relative_to(REPOSITORY)), path.read_text()) for path in paths)


def commands_in(told: Told) -> Iterator[str]:
    """Yield what a text calls a command: in back ticks, or a line of a block that a person copies."""
    for quoted in re.findall(r"`memoryd ([^`]+)`", told.text.replace("\\|", "|")):
        yield " ".join(quoted.split())
    for block in re.findall(r"(?ms)^```(?:sh)?\n(.*?)^```$", told.text):
        prompt = "$ " if "$ " in block else ""  # else each line is a command, and nothing is shown that it says
        for row in block.split("\n"):
            if found := re.match(rf"{re.escape(prompt)}memoryd ([^#&>]+)", row):
                yield found[1].strip()


def every_command() -> list[tuple[str, str]]:
    """Return each command that is named anywhere, with one place where it is."""
    found = {words: told.place for told in (*written(), *said_by_code()) for words in commands_in(told)}
    found |= {
        words.removeprefix("memoryd "): f"memoryd {name} --help"
        for name, page in manual.PAGES.items()
        if name in COMMANDS
        for words in page.examples
    }
    return sorted((words, place) for words, place in found.items())


def expanded(usage: str) -> list[list[str]]:
    """Return the command lines that a usage stands for: what is in brackets left out or put in, each alternative."""
    try:
        words = shlex.split(usage.replace("[", " [ ").replace("]", " ] "))
    except ValueError:
        return [[usage]]
    lines, rest = sequence(words)
    assert not rest, f"{usage}: a bracket too many"
    return lines


def sequence(words: Sequence[str]) -> tuple[list[list[str]], Sequence[str]]:
    """Read words up to a closing bracket; return the lines that they stand for, and what follows."""
    lines: list[list[str]] = [[]]
    finished: list[list[str]] = []
    while words and words[0] != "]":
        word, words = words[0], words[1:]
        if word == "[":
            inner, words = sequence(words)
            words = words[1:]
            lines = [line + more for line in lines for more in [[], *inner]]
        elif word == "|":
            finished += lines
            lines = [[]]
        else:
            lines = [[*line, *each] for line in lines for each in alternatives(word)]
    return [*finished, *lines], words


def alternatives(word: str) -> list[list[str]]:
    if word in SAMPLES:
        return [[SAMPLES[word]]]
    if word == "...":
        return [[]]
    return [[sample_of(part)] for part in word.removesuffix("...").split("|") if part]


def sample_of(word: str) -> str:
    """Put something in the place of a word that stands for something: NAME, THREAD, SECONDS."""
    return SAMPLES.get(word, "1" if re.fullmatch(r"[A-Z_]+", word) else word)


def complaint_about(line: Sequence[str]) -> str:
    """Parse a command line as memoryd does; return what is wrong with it, "" when it is right."""
    if not line or line[0] in {"--help", "--version", "-h", UNKNOWN}:
        return ""
    if line[0] not in COMMANDS:
        return f"there is no command {line[0]}"
    said = parsed(line)
    choice = re.search(rf"invalid choice: '{UNKNOWN}' \(choose from '([^']+)'", said)
    if choice and UNKNOWN in line:  # what is put in at run time is one of them
        place = line.index(UNKNOWN)
        return complaint_about([*line[:place], choice[1], *line[place + 1 :]])
    # the command itself is spoken of, not a way to call it
    return "" if len(line) == 1 and "arguments are required" in said else said


def parsed(line: Sequence[str]) -> str:
    """Return what the parser says against a command line."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        try:
            main.parsed(parser_of(line[0], load(line[0])), line[1:])
        except SystemExit as ended:
            return err.getvalue().strip().split("\n")[-1] if ended.code else ""
    return ""


@pytest.mark.parametrize(("usage", "place"), every_command())
def test_a_command_that_any_text_names_is_one(usage: str, place: str) -> None:
    lines = expanded(usage)
    wrong = [f"memoryd {' '.join(line)}: {complaint}" for line in lines if (complaint := complaint_about(line))]
    assert len(wrong) < len(lines) if "[" in usage else not wrong, (place, wrong)


def test_commands_are_named_in_back_ticks() -> None:
    """So that a reader sees where it begins and ends, and the test above finds it."""
    names = "|".join(name for name in COMMANDS if name not in SOMETIMES)
    bare = re.compile(rf"(?<![`\w./-])memoryd ({names})(?![\w-])")
    prose = [told for told in said_by_code() if "memoryd/control/manual.py" not in told.place]
    found = [(told.place, told.text) for told in prose if bare.search(re.sub(r"`[^`]*`", "", told.text))]
    assert [each for each in found if not is_no_advice(each[1])] == []


def is_no_advice(text: str) -> bool:
    """Tell whether a command stands in something else than advice: a usage, an agent's settings, a file's text."""
    return text.startswith(("memoryd ", "source <(", "#"))


def settings_in(told: Told) -> Iterator[str]:
    """Yield the settings that prose names, such as limits.requests_per_day."""
    if " " not in told.text or told.text in logs.EVENTS:
        return
    sections = "|".join(Settings.model_fields)
    yield from re.findall(rf"(?<![\w./`-])((?:{sections})\.[a-zA-Z_]+(?:\.[a-zA-Z_]+)?)(?![\w(./])", told.text)


def is_setting(name: str) -> bool:
    section, key, *rest = name.split(".")
    kind = Settings.model_fields[section].annotation
    if key == "X":
        return True
    if section == "providers":
        return not rest or rest[0] in Provider.model_fields
    assert isinstance(kind, type)
    if not issubclass(kind, BaseModel) or key not in kind.model_fields:
        return False
    return not rest or (name.startswith("sources.roots.") and rest[0] in {*AGENT_HOMES, "generic", "X", "NAME"})


def test_a_setting_that_any_message_names_exists() -> None:
    texts = [told for told in said_by_code() if not told.text.lstrip().upper().startswith(("SELECT", "UPDATE"))]
    named = {(name, told.place) for told in texts for name in settings_in(told)}
    assert len(named) > 40
    assert sorted(each for each in named if not is_setting(each[0])) == []


def test_a_setting_that_readme_names_exists() -> None:
    (readme,) = (told for told in written() if told.place == "README.md")
    named = set(re.findall(rf"`((?:{'|'.join(Settings.model_fields)})\.[a-z_.]+)`", readme.text))
    assert len(named) > 15
    assert (
        sorted(name for name in named if not name.endswith(".py") and name not in logs.EVENTS and not is_setting(name))
        == []
    )


def test_a_variable_of_memoryd_s_that_any_text_names_is_one() -> None:
    named = {name for told in (*written(), *said_by_code()) for name in re.findall(r"MEMORYD_[A-Z_]+[A-Z]", told.text)}
    keys = {name.removeprefix("MEMORYD_").lower().replace("__", ".") for name in named - {"MEMORYD_HOME"}}
    assert "extract.model" in keys
    assert [key for key in keys if key.partition(".")[0] in Settings.model_fields and not is_setting(key)] == []
    assert [key for key in keys if "." not in key] == []


ERRORS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, MemorydError)
}


@cache
def raised() -> tuple[tuple[str, str, bool], ...]:
    """Return each place that makes an error: its class, the place, and whether it says there what to do."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
                has_remedy = any(keyword.arg == "remedy" for keyword in node.keywords)
                found.append((node.func.id, f"{path.relative_to(REPOSITORY)}:{node.lineno}", has_remedy))
    return tuple(found)


def test_every_error_says_what_to_do_where_it_is_made_or_by_its_kind() -> None:
    places = raised()
    assert len(places) > 200
    assert [each for each in places if not each[2] and not ERRORS[each[0]].usual_remedy] == []


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_an_error_tells_its_message_and_one_remedy(name: str) -> None:
    kind = ERRORS[name]
    given, bare = kind("it failed", remedy="mend it"), kind("it failed")
    assert given.told() == "it failed (mend it)"
    assert bare.told() == (f"it failed ({kind.usual_remedy})" if kind.usual_remedy else "it failed")


def test_pages_of_help_are_those_of_commands() -> None:
    assert COMMANDS.keys() == manual.PAGES.keys()
    assert sorted(COMMANDS) == sorted(name for names in manual.GROUPS.values() for name in names)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_stands_alone(name: str) -> None:
    told = parser_of(name, load(name)).format_help()
    assert "examples:\n  memoryd " in told
    assert "exit codes:\n  0 " in told
    assert all(len(line) <= 110 for line in told.split("\n"))
