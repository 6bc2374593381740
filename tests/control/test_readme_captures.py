"""What README shows of `memoryd status` and `memoryd demo` is what they say: compared with places and times masked."""

import re
from pathlib import Path

import pytest

from memoryd.control.main import main
from memoryd.daemon import control_socket
from tests.control.conftest import Shell
from tests.ledger.factories import OTHER

README = (Path(__file__).parents[2] / "README.md").read_text()
LEFT_OUT = "..."
"""A line of README that stands for any number of lines."""
THIRD, FOURTH = "01a226ab-6a00-7000-8000-000000000001", "01a226ab-6b00-7000-8000-000000000002"


def shown(command: str) -> str:
    """Return what README shows below a command."""
    (block,) = re.findall(rf"(?ms)^```\n\$ {re.escape(command)}\n(.*?)^```$", README)
    return str(block)


def masked(text: str) -> str:
    """Replace what differs from one run, day or machine to the next."""
    for pattern, instead in (
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \((?:now|in [^)]+|[^)]+ ago)\)", "WHEN"),
        (r"since WHEN: ", "since WHEN "),
        (r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", "STAMP"),
        (r"\d{4}-\d\d-\d\d", "DAY"),
        (r"/tmp/memoryd-demo-\w+", "HOME"),
        (r"pid \d+", "pid N"),
        (r"memoryd \d+\.\d+\.\d+", "memoryd VERSION"),
        (r"\d[\d.]* (?:bytes|[KMG]iB)\b", "SIZE"),
        (r"STAMP-\w{4}-", "STAMP-HASH-"),
    ):
        text = re.sub(pattern, instead, text)
    return re.sub(r" {2,}", "  ", text)


def agrees(readme: str, said: str) -> bool:
    """Tell whether README shows what was said, line by line, where lines may be left out."""
    parts = re.split(rf"(?m)^{re.escape(LEFT_OUT)}$\n?", masked(readme))
    return re.fullmatch("(?s:.*)".join(re.escape(part) for part in parts), masked(said)) is not None


def a_usual_day(shell: Shell) -> str:
    """Return what status says beside a daemon: two sessions remembered, one that rests, one of a script."""
    shell.record("Run the tests with pytest -q, please.", "Always use tabs in the Makefile.", "Done?")
    shell.record("Never deploy on Fridays.", thread_id=OTHER)
    assert shell("sync", "--now").code == 0
    shell.record("What is left to do?", thread_id=THIRD, idle_hours=2)
    shell.record("Summarise the diff.", thread_id=FOURTH, source="exec")
    assert shell("sync").code == 0

    async def answer(_request: control_socket.Request, _tell: control_socket.Tell) -> dict[str, object]:
        return {"paused": None, "since": None}

    with shell.held("daemon", answer):
        return shell("status").out


def test_the_capture_of_status_is_true(shell: Shell) -> None:
    said = a_usual_day(shell)
    assert agrees(shown("memoryd status"), said), f"README shows something else than:\n{said}"


def test_the_capture_of_demo_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    assert agrees(shown("memoryd demo"), said), f"README shows something else than:\n{said}"


@pytest.mark.parametrize(("readme", "said", "is_true"), [("a\n...\nd\n", "a\nb\nc\nd\n", True), ("a\n", "b\n", False)])
def test_lines_may_be_left_out_and_nothing_else(readme: str, said: str, is_true: bool) -> None:
    assert agrees(readme, said) is is_true
