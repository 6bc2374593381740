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
from memoryd.control.connecting.target import MCP, PARTS, SKILL, Target, Way, skill_way
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
    beside = _Beside(agent, home, environ, seen, dry_run)
    server = _server(beside, wish)
    has_server = server is not None and server.done is not Done.LEFT_OUT
    skill = _skill(beside, wish, has_server=has_server)
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


@dataclass(frozen=True, slots=True)
class _Beside:
    """To whom something is given beside the memory, and what files would hold by now in a dry run (`seen`)."""

    agent: str
    home: Home
    environ: Mapping[str, str]
    seen: dict[Path, Found]
    is_dry: bool

    @property
    def target(self) -> Target:
        return target_of(self.agent)

    @property
    def folder(self) -> Path:
        return self.target.folder(self.environ)

    def put_in(self, part: str, way: Way) -> Change:
        """Put a part in, or leave it out and say why. Raises StorageError."""
        try:
            return put_in(self.agent, part, way, self.home, self.seen, dry_run=self.is_dry)
        except UsageError as error:
            return self.left_out(part, str(error))

    def left_out(self, part: str, why: str) -> Change:
        return Change(Done.LEFT_OUT, self.agent, part, part=part, why=why)


def _server(beside: _Beside, wish: Wish) -> Change | None:
    kept = record.recorded(beside.home, beside.agent, MCP)
    if not wish.mcp:
        return None
    if kept is None and (why := _no_server(beside.target, beside.environ)):
        return beside.left_out(MCP, why)
    ways = beside.target.servers(beside.folder, beside.home)
    way = next((each for each in ways if kept and each.file == kept.path), ways[0])
    return beside.put_in(MCP, way)


def _no_server(target: Target, environ: Mapping[str, str]) -> str:
    """Say what keeps the agent from starting the server, "" when nothing does."""
    if (lack := missing()) is not None:
        return f"{lack.what} ({lack.remedy}; then connect again)"
    if shutil.which(target.PROGRAM, path=environ.get("PATH", "")) is None:
        return f"the program {target.PROGRAM} is not on the PATH (install it, then connect again)"
    return ""


def _skill(beside: _Beside, wish: Wish, *, has_server: bool) -> Change | None:
    kept = record.recorded(beside.home, beside.agent, SKILL)
    is_wished = (kept is not None or not has_server) if wish.skill is None else wish.skill
    return beside.put_in(SKILL, skill_way(beside.folder, beside.home)) if is_wished else None
