"""Tries each connected agent as the agent would: does its file still hold our entry, does the hook run, what comes out.

The very command that stands in the settings is run, with the input that the agent gives at a session's start.
"""

import asyncio
import json
import os
import re
import shlex
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memoryd.clock import Clock
from memoryd.control.checked import Checked
from memoryd.control.connecting.connect import way_taken
from memoryd.control.connecting.edits import Unusable
from memoryd.control.connecting.files import look
from memoryd.control.connecting.record import Record, recorded
from memoryd.control.connecting.servertest import try_part
from memoryd.control.connecting.target import PARTS, TIMEOUT_SECONDS, Way, runner_of, summary_file
from memoryd.control.connecting.targets import TARGETS
from memoryd.errors import MemorydError
from memoryd.workspace.layout import Home

RUNS: Final = 5
SLOW_SECONDS: Final = 0.5
_INTERPRETERS: Final = re.compile(r"^for python in (.+); do$", re.MULTILINE)
"""A hook takes some 30 ms; at this length a person begins to notice that a session starts late."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the runs of a hook gave: the text for the session ("": none), what is wrong with it, the median time."""

    text: str
    fault: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Due:
    """What a session should be given ("": nothing) and why; `pending`: it is so from the next pass on."""

    text: str
    why: str
    pending: bool


Given = Callable[[str], Due]
"""Says what an agent's session should be given here; blocking."""


async def try_agents(home: Home, clock: Clock, cwd: Path, given: Given) -> list[Checked]:
    """Try each connected agent for a session that starts in `cwd`."""
    found = []
    for agent in TARGETS:
        try:
            if kept := recorded(home, agent):
                found.append(await _try(kept, home, clock, cwd, given))
            found += [await _try_part(part, home, clock) for name in PARTS if (part := recorded(home, agent, name))]
        except MemorydError as error:
            found.append(Checked(f"agent_{agent}", "error", f"{agent}: {error.message}", error.remedy))
    nobody = "no agent is connected: `memoryd connect AGENT` gives one its memory at the start of each session"
    return found or [Checked("agents", "info", nobody)]


async def _try_part(kept: Record, home: Home, clock: Clock) -> Checked:
    tried = await try_part(kept, home, clock)
    name = f"{kept.part}_{kept.agent}"
    if tried.fault:
        return Checked(name, "error", f"{kept.agent}: {tried.fault}", tried.remedy)
    return Checked(name, "ok", f"{kept.agent}: {tried.evidence}")


async def _try(kept: Record, home: Home, clock: Clock, cwd: Path, given: Given) -> Checked:
    name, again = f"agent_{kept.agent}", f"run `memoryd connect {kept.agent}` again"
    way = way_taken(kept, home)
    try:
        held = way.edit.mine(look(kept.path).text)
    except Unusable as error:
        return Checked(name, "error", f"{kept.agent}: {kept.path}: {error}", "correct the file")
    if held is None:
        return Checked(name, "error", f"{kept.agent}: our entry is no longer in {kept.path}", again)
    if way.command is None:
        return _tried_file(name, kept, way, home)
    if fault := _runner_fault(runner_of(home)):
        return Checked(name, "error", f"{kept.agent}: sessions start without memory: {fault}", again)
    heard = await _run(way.command, clock, cwd)
    taken = f"the hook takes {heard.seconds * 1000:.0f} ms (median of {RUNS})"
    if heard.fault:
        return Checked(name, "error", f"{kept.agent}: {heard.fault}; {taken}", again)
    due = await asyncio.to_thread(given, kept.agent)
    if due.text and not heard.text and not due.pending:
        return Checked(name, "error", f"{kept.agent}: the hook gives nothing, where there is something to give", again)
    amount = f"{len(heard.text.encode()):,} bytes" if heard.text else "nothing"
    slow = heard.seconds > SLOW_SECONDS
    evidence = f"{kept.agent}: a session in {cwd} is given {amount} ({due.why}); {taken}"
    return Checked(
        name, "warning" if slow else "ok", evidence, "look for what slows programs down here" if slow else ""
    )


def _tried_file(name: str, kept: Record, way: Way, home: Home) -> Checked:
    file = summary_file(home)
    try:
        size = file.stat().st_size
    except OSError:
        remedy = "`memoryd sync` writes it with the first memory"
        return Checked(name, "warning", f"{kept.agent}: sessions are given nothing: there is no {file} yet", remedy)
    return Checked(name, "ok", f"{kept.agent}: each session is given {size:,} bytes ({way.via} of {file})")


def _runner_fault(runner: Path) -> str:
    """Say what keeps the runner from running, "" when nothing does."""
    try:
        script = runner.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"cannot read {runner}: {error.strerror}"
    if not os.access(runner, os.X_OK):
        return f"{runner} is not executable"
    found = _INTERPRETERS.search(script)
    names = shlex.split(found[1]) if found else []
    if names and not any(os.access(name, os.X_OK) for name in names):
        return f"its interpreter is gone: {', '.join(names)}"
    return ""


async def _run(command: str, clock: Clock, cwd: Path) -> _Heard:
    said = {"session_id": "memoryd-self-test", "transcript_path": "", "cwd": str(cwd)}
    asked = json.dumps({**said, "hook_event_name": "SessionStart", "source": "startup"}).encode()
    times, out = [], b""
    for _ in range(RUNS):
        began = clock.monotonic()
        pipe = asyncio.subprocess.PIPE
        hook = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                out, _ = await hook.communicate(asked)
        except TimeoutError:
            hook.kill()
            await hook.wait()
            return _Heard("", f"the hook did not end within {TIMEOUT_SECONDS} s", clock.monotonic() - began)
        times.append(clock.monotonic() - began)
        if hook.returncode:
            return _Heard("", f"the hook ended with {hook.returncode}", times[-1])
    text, fault = _context(out)
    return _Heard(text, fault, statistics.median(times))


def _context(out: bytes) -> tuple[str, str]:
    """Return the text for the session in what a hook printed, and what is wrong with the output."""
    if not out.strip():
        return "", ""
    try:
        said: Any = json.loads(out)
        text = said.get("additionalContext") or said["hookSpecificOutput"]["additionalContext"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", "the hook prints what no agent takes"
    return str(text), ""
