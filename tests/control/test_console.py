import io
import json
import sys

import pytest

from memoryd.control import console
from memoryd.daemon.progress import Step
from tests.support.log_lines import LogLines


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (-30, "30 s"),
        (60, "1 min"),
        (3600, "1 h"),
        (12_000, "3 h 20 min"),
        (90_060, "1 d 1 h 1 min"),
    ],
)
def test_a_length_of_time_is_told_roughly(seconds: float, text: str) -> None:
    assert console.span(seconds) == text


def test_numbers_and_instants_are_told_as_people_do() -> None:
    assert (console.plural(1, "session"), console.plural(2, "session")) == ("1 session", "2 sessions")
    assert console.moment(None) == "never"
    assert len(console.moment(1_700_000_000.5)) == len("2026-11-29 09:38:15")


def test_json_is_one_document_in_its_own_letters(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"word": "grüß", "other": object})
    printed = capsys.readouterr().out
    assert "grüß" in printed
    assert json.loads(printed)["other"].startswith("<class")


def test_progress_is_log_lines_where_there_is_no_terminal() -> None:
    log = LogLines()
    with console.progress_reporter() as progress:
        progress(Step("extract", 1, 3, "remembered"))
    (line,) = log.events("pass.progressed")
    assert (line["stage"], line["done"], line["total"], line["note"]) == ("extract", 1, 3, "remembered")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with console.progress_reporter() as progress:
        progress(Step("discover", 0, 0))
        progress(Step("discover", 3, 3))
        progress(Step("extract", 1, 3))
        progress(Step("consolidate", 1, 1))
    shown = terminal.getvalue()
    assert all(words in shown for words in console.STAGES.values())
    assert "1/3" in shown
