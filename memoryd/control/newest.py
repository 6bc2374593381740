"""The newest sessions that lie in the agents' folders, seen by a sync or not: so that there is one to be explained."""

from collections.abc import Mapping
from heapq import nlargest
from typing import Any, Final

from memoryd.control.console import when
from memoryd.control.finding import Candidate, look
from memoryd.pipeline.context import Agent

SHOWN: Final = 10


def newest(agents: Mapping[str, Agent], limit: int = SHOWN) -> list[Candidate]:
    """Return the sessions that changed last, newest first; only their beginnings are read."""
    files = ((agent, file) for agent in agents.values() for file in agent.reader.find(agent.homes))
    return [look(agent, file) for agent, file in nlargest(limit, files, key=lambda each: each[1].mtime_ns)]


def as_json(session: Candidate) -> dict[str, Any]:
    """Return what is told of a session."""
    return {
        "thread_id": session.head.thread_id if session.head else None,
        "agent": session.agent.reader.name,
        "path": str(session.file.path),
        "cwd": session.head.cwd if session.head else None,
        "changed_at": session.file.mtime_ns // 10**9,
        "problem": session.problem,
    }


def lines(sessions: list[Candidate], agents: Mapping[str, Agent], *, now: float) -> list[str]:
    """Tell them to a person."""
    if not agents:
        return ["no agent is configured, so there is no session to explain: run `memoryd init`"]
    if not sessions:
        return [f"there is no session in the folders of {', '.join(agents)} yet"]
    told = ["the newest sessions; `memoryd explain ID` tells more of one, a unique beginning of the ID will do"]
    for session in map(as_json, sessions):
        name = session["thread_id"] or f"{session['path']} (no session)"
        told.append(
            f"  {name}  {session['agent']}  {when(session['changed_at'], now)}  {session['cwd'] or ''}".rstrip()
        )
    return told
