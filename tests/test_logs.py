"""Logs: what a line looks like, what never stands in one, and that catalogue and code say the same."""

import ast
import io
import json
import logging
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from memoryd import logs
from memoryd.redact import Redactor
from tests.support.clock import FakeClock
from tests.support.event_catalogue import BEGIN, README, written_into

PACKAGE = Path(__file__).parents[1] / "memoryd"
LOGGING_ROOMS = {"pipeline", "daemon", "control"}
METHODS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
SECRET = "ghp_" + "aB3" * 12


class Terminal(io.StringIO):
    """A stream that says that a person looks at it."""

    def isatty(self) -> bool:
        return True


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_json_with_schema_time_level_and_event_first() -> None:
    out = io.StringIO()
    logs.configure("auto", "info", out)
    logs.get().info("job.completed", tokens_in=3, path=Path("/x"), ids=("a", "b"), facts={"k": None})
    (line,) = lines(out)
    assert list(line)[:4] == ["schema", "at", "level", "event"]
    assert str(line.pop("at")).endswith("Z")
    assert line == {
        "schema": 1,
        "level": "info",
        "event": "job.completed",
        "tokens_in": 3,
        "path": "/x",
        "ids": ["a", "b"],
        "facts": {"k": None},
    }


def test_lines_go_to_stderr_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "info")
    logs.get().info("daemon.started")
    captured = capsys.readouterr()
    assert (captured.out, json.loads(captured.err)["event"]) == ("", "daemon.started")


def test_before_configuration_nothing_is_written_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    logs.get().warning("watcher.failed")
    assert capsys.readouterr().out == ""


def test_a_terminal_gets_readable_lines() -> None:
    out = Terminal()
    logs.configure("auto", "info", out)
    logs.get().info("daemon.started", agents=["codex"])
    assert "daemon.started" in out.getvalue()
    assert "schema" not in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_the_format_can_be_forced_either_way() -> None:
    piped, terminal = io.StringIO(), Terminal()
    logs.configure("console", "info", piped)
    logs.get().info("daemon.started")
    logs.configure("json", "info", terminal)
    logs.get().info("daemon.stopped")
    assert "\x1b" not in piped.getvalue()
    assert "[info" in piped.getvalue()
    assert lines(terminal)[0]["event"] == "daemon.stopped"


def test_the_level_is_a_threshold_that_a_second_configuration_moves() -> None:
    out = io.StringIO()
    log = logs.get()
    logs.configure("json", "warning", out)
    log.info("daemon.started")
    logs.configure("json", "debug", out)
    log.debug("job.claimed")
    assert [line["event"] for line in lines(out)] == ["job.claimed"]


def test_what_is_bound_stands_in_every_line_of_the_block() -> None:
    out = io.StringIO()
    logs.configure("json", "info", out)
    with logs.bind(kind="memory_stage1", job_key="t"):
        logs.get().info("job.completed")
    logs.get().info("daemon.stopped")
    inside, after = lines(out)
    assert (inside["kind"], inside["job_key"]) == ("memory_stage1", "t")
    assert "kind" not in after


@pytest.mark.parametrize("form", ["json", "console"])
def test_tracebacks_show_no_local_variables(form: str) -> None:
    out = io.StringIO()
    logs.configure("json" if form == "json" else "console", "info", out)
    try:
        rollout_text = "what the person wrote"
        raise ValueError(len(rollout_text))
    except ValueError:
        logs.get().exception("service.crashed")
    assert "ValueError" in out.getvalue()
    assert "test_tracebacks_show_no_local_variables" in out.getvalue()
    assert "what the person wrote" not in out.getvalue()
    assert "rollout_text" not in out.getvalue().replace("len(rollout_text)", "")


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_secret_reaches_a_line_i6(form: str) -> None:
    out = io.StringIO()
    logs.configure("json" if form == "json" else "console", "info", out)
    try:
        raise ValueError(f"server said {SECRET}")
    except ValueError as error:
        logs.get().exception("job.failed", error=str(error), deep={"list": [f"x {SECRET}"]}, thing=error)
    logging.getLogger("library").warning("GET /?token=%s", SECRET)
    assert out.getvalue().count("server said") >= 2
    assert SECRET not in out.getvalue()


def test_the_users_own_patterns_are_taken_out_too() -> None:
    out = io.StringIO()
    logs.configure("json", "info", out, redactor=Redactor(["project-[a-z]+"]))
    logs.get().info("job.completed", error="about project-nightingale")
    assert "nightingale" not in out.getvalue()


def test_records_of_libraries_take_the_same_way_out() -> None:
    out = io.StringIO()
    logs.configure("json", "info", out)
    logging.getLogger("library").info("counted %d", 3)
    (line,) = lines(out)
    assert (line["schema"], line["level"], line["event"]) == (1, "info", "counted 3")


@pytest.mark.parametrize("name", ["httpx", "httpcore", "apscheduler", "apscheduler.scheduler", "aiosqlite"])
def test_talkative_libraries_are_heard_from_warning_on(name: str) -> None:
    out = io.StringIO()
    logs.configure("json", "debug", out)
    logging.getLogger(name).info("GET https://api.example/v1?key=1")
    logging.getLogger(name).warning("trouble")
    assert [line["event"] for line in lines(out)] == ["trouble"]


def test_configuring_twice_writes_each_line_once() -> None:
    out = io.StringIO()
    logs.configure("json", "info", out)
    logs.configure("json", "error", out)
    logs.get().error("service.failed")
    logging.getLogger("httpx").warning("trouble")
    assert len(lines(out)) == 1


def test_what_is_said_again_and_again_is_left_out_and_counted() -> None:
    """Numbers make no difference; another text, the end of a job and what is no warning are said always."""
    out, clock = io.StringIO(), FakeClock()
    logs.configure("json", "info", out, monotonic=clock.monotonic)
    log = logs.get()
    for number in range(logs.MOST_ALIKE + 4):
        log.warning("storage.paused", error=f"{number} bytes are free", retry_in=number)
        log.warning("storage.paused", error="read-only", service=f"other-{number}")
        log.error("job.failed", job_key="k", error="the same")
        log.info("job.enqueued", count=1)
        logging.getLogger("httpx").warning("pool is full")
    counts = Counter((line["event"], str(line.get("error", ""))[-8:]) for line in lines(out))
    assert counts == {
        ("storage.paused", "are free"): logs.MOST_ALIKE,
        ("storage.paused", "ead-only"): logs.MOST_ALIKE,
        ("job.failed", "the same"): logs.MOST_ALIKE + 4,
        ("job.enqueued", ""): logs.MOST_ALIKE + 4,
        ("pool is full", ""): logs.MOST_ALIKE,
    }
    clock.freeze(logs.REPEAT_SECONDS)
    log.warning("storage.paused", error="9 bytes are free", retry_in=1)
    assert (lines(out)[-1]["event"], lines(out)[-1]["repeated"]) == ("storage.paused", 4)


def test_what_was_said_is_remembered_within_bounds() -> None:
    out = io.StringIO()
    logs.configure("json", "info", out)
    for number in range(logs.MOST_REMEMBERED + 10):
        logs.get().warning("session.unreadable", path="x" * number)
    (repeats,) = [each for handler in logging.getLogger().handlers for each in handler.filters]
    assert len(vars(repeats)["_said"]) == logs.MOST_REMEMBERED


@dataclass(frozen=True, slots=True)
class Call:
    """One place in the code that logs."""

    place: str
    room: str
    method: str
    event: str | None
    fields: tuple[str, ...]


def calls() -> list[Call]:
    return [
        Call(
            place=f"{path.relative_to(PACKAGE)}:{node.lineno}",
            room=path.relative_to(PACKAGE).parts[0],
            method=node.func.attr,
            event=literal(node.args),
            fields=tuple(keyword.arg for keyword in node.keywords if keyword.arg),
        )
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_log_call(node.func)
    ]


def is_log_call(function: ast.Attribute) -> bool:
    receiver = ast.unparse(function.value)
    return function.attr in METHODS and (
        receiver.split(".")[-1].lstrip("_") in {"log", "logger"} or "get()" in receiver
    )


def literal(arguments: list[ast.expr]) -> str | None:
    if len(arguments) == 1 and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, str):
        return arguments[0].value
    return None


def test_every_event_of_the_code_is_a_literal_of_the_catalogue() -> None:
    unknown = [f"{call.place} {call.event or '(not one literal)'}" for call in calls() if call.event not in logs.EVENTS]
    assert unknown == []


def test_code_and_catalogue_agree_on_the_level_of_each_event() -> None:
    wrong = [
        f"{call.place} {call.event} is {METHODS[call.method]}, the catalogue says {logs.EVENTS[call.event].level}"
        for call in calls()
        if call.event in logs.EVENTS and METHODS[call.method] != logs.EVENTS[call.event].level
    ]
    assert wrong == []


def test_code_gives_only_fields_that_the_catalogue_names() -> None:
    extra = [
        f"{call.place} {call.event}: {field}"
        for call in calls()
        if call.event in logs.EVENTS
        for field in call.fields
        if field not in (*logs.EVENTS[call.event].fields, *logs.BOUND, "exc_info")
    ]
    assert extra == []


def test_every_event_of_the_catalogue_is_used() -> None:
    assert sorted(set(logs.EVENTS) - {call.event for call in calls() if call.event}) == []


def test_readme_has_the_catalogue() -> None:
    """`python -m tests.support.event_catalogue` writes it."""
    readme = README.read_text()
    assert written_into(readme) == readme
    assert all(f"`{name}`" in readme.partition(BEGIN)[0] for name in (*logs.BOUND, *logs.FIRST, *logs.CANONICAL))


def test_only_the_rooms_that_act_log() -> None:
    assert {call.room for call in calls()} <= LOGGING_ROOMS
    others = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "structlog" in path.read_text() and path.name != "logs.py"
    ]
    assert others == [], "structlog stays in logs.py"


@pytest.mark.parametrize("name", sorted(logs.EVENTS))
def test_an_event_is_named_subject_past_participle_and_explained(name: str) -> None:
    event = logs.EVENTS[name]
    assert re.fullmatch(r"[a-z]+\.([a-z]+ed|lease_lost|missing|unreadable)", name)
    assert event.meaning.endswith(".")
    assert event.level in get_args(logs.Level)
    assert len(set(event.fields)) == len(event.fields)
