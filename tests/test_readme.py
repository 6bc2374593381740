"""README is true where code can tell: each command and option that it names exists, and each link leads somewhere."""

import argparse
import re
from pathlib import Path

import pytest

from memoryd.control.main import COMMANDS, load, parser_of

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text()


def quoted() -> list[str]:
    """Return what stands in back ticks, and the lines of the blocks that a person copies or sees."""
    blocks = re.findall(r"(?ms)^```(?:sh)?\n(.*?)^```$", README)
    rows = [row.removeprefix("$ ").partition("#")[0] for block in blocks for row in block.split("\n")]
    prose = re.sub(r"(?ms)^```.*?^```$", "", README)
    return [*rows, *(" ".join(text.split()) for text in re.findall(r"`([^`]+)`", prose))]


def usages() -> list[tuple[str, str]]:
    """Return each use of a command: its name, and what follows."""
    found = [re.search(r"(?:^|[ /])memoryd ([a-z]+)\b(.*)", text) for text in quoted()]
    return sorted({(each[1], each[2]) for each in found if each})


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options of a command and of its actions."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found |= options_of(below)
    return found


@pytest.mark.parametrize(("name", "rest"), usages())
def test_a_command_that_readme_names_exists_with_its_options(name: str, rest: str) -> None:
    assert name in COMMANDS
    assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= options_of(parser_of(name, load(name)))


def test_readme_names_every_command() -> None:
    named = {name for name, _ in usages()} | {word for text in quoted() for word in text.split()[:1]}
    assert COMMANDS.keys() - named == set()


def test_every_link_inside_of_readme_leads_somewhere() -> None:
    anchors = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.+)$", README)
    }
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert {link[1:] for link in links if link.startswith("#")} <= anchors
    assert all((REPOSITORY / link).exists() for link in links if not link.startswith(("#", "http")))
