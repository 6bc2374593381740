"""What `connect` gives an agent: the memory itself, and a way to search it: the MCP server, or else the skill.

What is given beside is left out, and said, where it cannot be had; the memory itself is given all the same.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.control.connecting import record
from memoryd.control.connecting.connect import Change, Done, connect, put_in, take_out, target_of
from memoryd.control.connecting.files import Found
from memoryd.control.connecting.mcp_extra import missing
from memoryd.control.connecting.target import MCP, PARTS, SKILL, Target, skill_way
from memoryd.errors import UsageError
from memoryd.workspace.layout import Home


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for beside the memory; `skill` None: where there is no server."""

    mcp: bool = True
    skill: bool | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """The memory itself, and what came of each part beside it."""

    memory: Change
    parts: tuple[Change, ...] = ()

    @property
    def all(self) -> tuple[Change, ...]:
        """Everything, in the order in which it was done."""
        return (self.memory, *self.parts)


def give(agent: str, via: str | None, wish: Wish, home: Home, environ: Mapping[str, str], *, dry_run: bool) -> Given:
    """Connect an agent. Raises UsageError and StorageError for the memory itself; of the rest, StorageError."""
    seen: dict[Path, Found] = {}
    memory = connect(agent, via, home, environ, seen, dry_run=dry_run)
    target = target_of(agent)
    folder = target.folder(environ)
    server = _server(agent, target, folder, wish, home, environ, seen, dry_run=dry_run)
    skill = _skill(agent, target, folder, wish, home, seen, has_server=_is_there(server), dry_run=dry_run)
    return Given(memory, tuple(each for each in (server, skill) if each is not None))


def take_back(agent: str, home: Home, environ: Mapping[str, str], *, dry_run: bool) -> Given:
    """Take everything out again, the last first, so that each file is found as it was left.

    Raises UsageError for a file that cannot be used, before any is touched; StorageError on writing.
    """
    if not dry_run:
        take_back(agent, home, environ, dry_run=True)
    seen: dict[Path, Found] = {}
    parts = [take_out(agent, part, home, environ, seen, dry_run=dry_run) for part in reversed(PARTS)]
    memory = take_out(agent, "", home, environ, seen, dry_run=dry_run)
    return Given(memory, tuple(part for part in parts if part.done is not Done.NOT_CONNECTED))


def _is_there(server: Change | None) -> bool:
    return server is not None and server.done is not Done.LEFT_OUT


def _server(
    agent: str,
    target: Target,
    folder: Path,
    wish: Wish,
    home: Home,
    environ: Mapping[str, str],
    seen: dict[Path, Found],
    *,
    dry_run: bool,
) -> Change | None:
    kept = record.recorded(home, agent, MCP)
    if not wish.mcp:
        return None
    if kept is None and (why := _no_server(target, environ)):
        return Change(Done.LEFT_OUT, agent, MCP, part=MCP, why=why)
    ways = target.servers(folder, home)
    way = next((each for each in ways if kept and each.file == kept.path), ways[0])
    try:
        return put_in(agent, MCP, way, home, seen, dry_run=dry_run)
    except UsageError as error:
        return Change(Done.LEFT_OUT, agent, MCP, part=MCP, why=str(error))


def _no_server(target: Target, environ: Mapping[str, str]) -> str:
    """Say what keeps the agent from starting the server, "" when nothing does."""
    if (lack := missing()) is not None:
        return f"{lack.what} ({lack.remedy}; then connect again)"
    if shutil.which(target.PROGRAM, path=environ.get("PATH", "")) is None:
        return f"the program {target.PROGRAM} is not on the PATH (install it, then connect again)"
    return ""


def _skill(
    agent: str,
    target: Target,
    folder: Path,
    wish: Wish,
    home: Home,
    seen: dict[Path, Found],
    *,
    has_server: bool,
    dry_run: bool,
) -> Change | None:
    kept = record.recorded(home, agent, SKILL)
    is_wished = (kept is not None or not has_server) if wish.skill is None else wish.skill
    way = skill_way(target, folder, home) if is_wished else None
    if way is None:
        return None
    try:
        return put_in(agent, SKILL, way, home, seen, dry_run=dry_run)
    except UsageError as error:
        return Change(Done.LEFT_OUT, agent, SKILL, part=SKILL, why=str(error))
