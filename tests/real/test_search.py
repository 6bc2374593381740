"""The agents' real programs call a tool of our server: how they name it, and that nothing of it becomes evidence."""

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoryd.pipeline.evidence import Evidence, gather
from memoryd.redact import Redactor
from memoryd.sources.readers import READERS
from tests.real.connecting import PROGRAMS, Program
from tests.support.model_asked import Recorded
from tests.support.model_replies import Call, Reply
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import install_recorded

pytest.importorskip("mcp", reason="the extra memoryd[mcp] is not installed")
HOMES = {"codex": ".codex", "claude": ".claude", "opencode": ".local/share/opencode"}
# A program cannot be asked whether a tool may be called, and says no.
ALLOWED = {
    "codex": ["--dangerously-bypass-approvals-and-sandbox"],
    "claude": ["--allowedTools", "mcp__memoryd__search"],
    "opencode": [],
}
MOST_WAITS = 10
ASKED = {"query": "zebra-crossing preferences of the user"}
SEARCH = "Search what earlier sessions on this machine taught"


@dataclass(frozen=True)
class Searched:
    """What the program called the tool, what it gave the model, and what our reader makes of the session."""

    tool: str
    given: str
    evidence: Evidence


def search_by(program: Program, folder: Path) -> Searched:
    """Connect a program, let its model call our search, and read the session that it records."""
    place = Place(folder, measured=False)
    place.configure()
    install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.171.0"])
    assert place.run("sync", "--now", "--backfill", "all").code == 0
    for name, text in program.files.items():
        (place.user_home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.user_home / name).write_text(text, encoding="utf-8")
    said = place.run("connect", program.name, "--json").json
    assert said["mcp"]["result"] == "connected", said
    cwd = folder / "work"
    cwd.mkdir()
    called: list[str] = []
    given: list[str] = []
    waits: list[None] = []

    def reply(asked: Recorded) -> Reply:
        name = _name_of_search(asked.body.get("tools") or [])
        text = json.dumps(asked.body)
        if name is None and program.name == "codex" and len(waits) < MOST_WAITS:
            waits.append(name)  # it does not wait for its servers before the first request
            return Reply(calls=(Call("exec_command", {"cmd": "sleep 1"}),))
        if name is None:
            return Reply(text="Title")
        if not called:
            called.append(name)
            return Reply(calls=(Call(name, ASKED),))
        given.append(text)
        return Reply(text="Yes.")

    with ModelServer() as server:
        server.reply_with(reply)
        words = [*program.words(server)]
        words[-1:-1] = ALLOWED[program.name] if program.name == "codex" else []
        words += ALLOWED[program.name] if program.name != "codex" else []
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**place.environ, **program.environ(server)},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    assert done.returncode == 0, done
    return Searched(called[0] if called else "", given[0] if given else "", _read(program.name, place))


def _name_of_search(tools: Sequence[Any]) -> str | None:
    """Return the name under which the model is offered our search, also inside a namespace."""
    for tool in tools:
        inner = tool.get("function") or tool
        if SEARCH in str(inner.get("description")):
            return str(inner["name"])
        if found := _name_of_search(inner.get("tools") or []):
            return f"{inner['name']}__{found}"  # Codex takes the whole name, too, and records it in two fields
    return None


def _read(agent: str, place: Place) -> Evidence:
    reader = READERS[agent]
    (file,) = reader.find([place.user_home / HOMES[agent]])
    with reader.read(file) as items:
        return gather(items, redactor=Redactor(), private_tags=(), home=place.home, budget_tokens=50_000)


@pytest.mark.parametrize("program", [each for each in PROGRAMS if not each.via], ids=lambda program: program.name)
def test_a_search_by_the_program_answers_its_model_and_leaves_no_evidence(program: Program, tmp_path: Path) -> None:
    if shutil.which(program.name) is None:
        pytest.skip(f"{program.name} is not on PATH: npm install {program.package}")
    searched = search_by(program, tmp_path)
    assert "memoryd" in searched.tool
    assert "nothing found" in searched.given or "MEMORY.md:" in searched.given
    assert searched.evidence.dropped["own_call"] == 1
    assert searched.evidence.dropped["own_output"] == 1
    assert "zebra-crossing" not in searched.evidence.text
    assert not searched.evidence.external
