"""What there is on this machine to begin with: agents with their sessions, keys, programs, servers, memories."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd import config
from memoryd.config import AGENT_HOMES, Settings
from memoryd.control.console import plural
from memoryd.llm.command.shell import found
from memoryd.llm.local import LocalServer, find_local_servers
from memoryd.sources.claude_memories import find_project_memories
from memoryd.sources.codex_memories import FOLDERS
from memoryd.sources.readers import READERS

KEY_VARIABLES: Final = {"openai": "OPENAI_API_KEY", "openai-chat": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
CALLS: Final = {
    "claude": ("claude", "-p"),
    "codex": ("codex", "exec"),
    "gemini": ("gemini",),
    "opencode": ("opencode", "run"),
}
"""How the programs of agents are called to answer one question; the options that they need are added at each run."""


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """An agent whose sessions lie on this machine; `has_memory`: it has learned something by itself."""

    name: str
    home: Path
    sessions: int
    has_memory: bool = False


@dataclass(frozen=True, slots=True)
class Here:
    """Everything that was found."""

    agents: tuple[FoundAgent, ...]
    keys: tuple[str, ...]
    programs: tuple[str, ...]
    servers: tuple[LocalServer, ...]

    @property
    def agent_names(self) -> list[str]:
        """Return the agents to read, each once."""
        return list(dict.fromkeys(agent.name for agent in self.agents))

    @property
    def importable(self) -> list[str]:
        """Return the agents whose own memory could be imported."""
        return list(dict.fromkeys(agent.name for agent in self.agents if agent.has_memory))

    def as_json(self) -> dict[str, object]:
        """Return it as `init --json` prints it; of keys the names of their variables."""
        return {
            "agents": [
                {
                    "name": agent.name,
                    "home": str(agent.home),
                    "sessions": agent.sessions,
                    "has_memory": agent.has_memory,
                }
                for agent in self.agents
            ],
            "providers": {
                "keys": list(self.keys),
                "programs": list(self.programs),
                "servers": [
                    {"name": each.name, "base_url": each.base_url, "models": list(each.models)} for each in self.servers
                ],
            },
        }


def look_around(settings: Settings, environ: Mapping[str, str]) -> Here:
    """Look for everything; only servers on this machine are asked anything."""
    return Here(
        agents=tuple(find_agents(settings, environ)),
        keys=tuple(name for name in sorted(set(KEY_VARIABLES.values())) if environ.get(name)),
        programs=tuple(name for name in CALLS if found(name, environ)),
        servers=tuple(asyncio.run(find_local_servers(environ))),
    )


def find_agents(settings: Settings, environ: Mapping[str, str]) -> list[FoundAgent]:
    """Look for the agents whose sessions this version reads."""
    there = []
    for name, reader in READERS.items():
        for home in config.agent_home(name, settings, environ) if name in AGENT_HOMES else []:
            if not reader.missing_roots([home]):  # a home alone may belong to another program of the same maker
                count = sum(1 for _ in reader.find([home]))
                there.append(FoundAgent(name, home, count, _has_memory(name, home)))
    return there


def lines_of(here: Here) -> list[str]:
    """Tell what was found."""
    lines = [
        f"found {agent.name}: {plural(agent.sessions, 'session file')} in {agent.home}"
        + (f"; its own memory can be imported (`memoryd import {agent.name}`)" if agent.has_memory else "")
        for agent in here.agents
    ]
    lines += [f"found a key: {name} is set" for name in here.keys]
    if here.programs:
        lines.append(f"found for the provider command: {', '.join(here.programs)}")
    for server in here.servers:
        models = f"with {plural(len(server.models), 'model')}" if server.models else "without a model"
        lines.append(f"found {server.name} at {server.base_url}, {models}")
    return lines


def _has_memory(name: str, home: Path) -> bool:
    if name == "codex":
        return any((home / folder / "memory_summary.md").is_file() for folder in FOLDERS)
    return name == "claude" and next(find_project_memories(home, READERS[name]), None) is not None
