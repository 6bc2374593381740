"""The agents' real programs, with the scripted model server behind them: how they are set up, and what they ask.

    npm install --prefix /tmp/agents @openai/codex @anthropic-ai/claude-code @google/gemini-cli opencode-ai
    PATH=/tmp/agents/node_modules/.bin:$PATH pytest tests/real
    PATH=/tmp/agents/node_modules/.bin:$PATH python -m tests.real.agents     # records tests/fixtures/command anew

No login and no network are needed: each program is pointed at the server on this machine.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import agent_program
from tests.support.model_asked import Recorded
from tests.support.model_manners import handbook, parse_raw_memories, stage1_reply, summary
from tests.support.model_replies import Call, Reply, Scripted
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import install_recorded

FIXTURES = Path(__file__).parent.parent / "fixtures" / "command"
WORK_MARK = "it is a copy of the memory folder"
LONG_TEXT = 120
LINE_NUMBER = re.compile(r"^\s*\d+(?:→|\t|\| |: ?)")
PROGRAM = str(Path(agent_program.__file__))
HOOKS = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ~/HOOKED"}]}]}}'


@dataclass(frozen=True)
class RealAgent:
    """One program. `files` lie in its own home before: things of the user's that no request may hold."""

    name: str
    package: str
    command: Callable[[ModelServer], list[str]]
    home: str
    files: Mapping[str, str]
    environ: Callable[[ModelServer, Path], dict[str, str]] = lambda _server, _folder: {}
    model: str = "scripted-1"
    settings: Mapping[str, object] = field(default_factory=dict)
    sessions: tuple[str, ...] = ()

    @property
    def path(self) -> str | None:
        return shutil.which(self.name)

    @property
    def version(self) -> str:
        said = subprocess.run([self.name, "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"\d+\.\d+\.\d+", said)
        assert found is not None, said
        return found[0]

    def configure(self, place: Place, server: ModelServer) -> None:
        """Make this program the only provider of a place with sessions, and give the user things of their own."""
        install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.171.0"])
        home = place.user_home / self.home
        for name, text in self.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")
        place.extra |= self.environ(server, place.folder)
        place.configure(consolidate__model=self.model, consolidate__effort="")
        text = (place.home / "config.toml").read_text(encoding="utf-8")
        provider = {"kind": "command", "command": self.command(server), "timeout": "60s", **self.settings}
        lines = [f"{key} = {json.dumps(value)}" for key, value in provider.items()]
        extract = f'[extract]\nmodel = "{self.model}"\neffort = ""'
        place.write_config("\n".join([text, extract, "[providers.agent]", *lines, ""]))

    def recorded_sessions(self, place: Place) -> list[Path]:
        """The files below the user's home that look like a session of this program."""
        return [path for pattern in self.sessions for path in place.user_home.glob(pattern) if path.is_file()]


def _codex(server: ModelServer) -> list[str]:
    provider = f'{{name="scripted", base_url="{server.base_url}", wire_api="responses", requires_openai_auth=true}}'
    return ["codex", "exec", "-c", 'model_provider="scripted"', "-c", f"model_providers.scripted={provider}"]


def _opencode_environ(server: ModelServer, folder: Path) -> dict[str, str]:
    """Name the server in a settings file of the user's choice; without it the program knows no such provider."""
    options = {"baseURL": server.base_url, "apiKey": "sk-scripted-0000"}
    scripted = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"scripted-1": {}}}
    file = folder / "opencode.json"
    file.write_text(json.dumps({"provider": {"scripted": scripted}}), encoding="utf-8")
    return {"OPENCODE_CONFIG": str(file)}


AGENTS = (
    RealAgent(
        name="codex",
        package="@openai/codex",
        command=_codex,
        home=".codex",
        files={
            "auth.json": '{"OPENAI_API_KEY": "sk-scripted-0000"}',
            "AGENTS.md": "WORDS-OF-THE-USER",
            "config.toml": '[mcp_servers.users]\ncommand = "false"\n',
            "hooks.json": HOOKS,
        },
        sessions=(".codex/sessions/**/*", ".codex/archived_sessions/*"),
    ),
    RealAgent(
        name="claude",
        package="@anthropic-ai/claude-code",
        command=lambda _server: ["claude", "-p"],
        home=".claude",
        files={
            "CLAUDE.md": "WORDS-OF-THE-USER",
            "settings.json": HOOKS,
        },
        environ=lambda server, _folder: {
            "SCRIPTED_KEY": "sk-scripted-0000",
            "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1"),
        },
        settings={"api_key_env": "SCRIPTED_KEY"},
        sessions=(".claude/projects/**/*",),
    ),
    RealAgent(
        name="opencode",
        package="opencode-ai",
        command=lambda _server: ["opencode", "run"],
        home=".local/share/opencode",
        files={"auth.json": "{}"},
        environ=_opencode_environ,
        model="scripted/scripted-1",
        sessions=(".local/share/opencode/*.db", ".local/share/opencode/storage/**/*"),
    ),
)


def script(asked: Recorded) -> Scripted | None:
    """Answer a program as a good model would: a session by its memory, a folder by work with the program's tools."""
    text = "\n".join(asked.user_texts)
    if WORK_MARK not in text:
        return Reply(text=stage1_reply(text).text)
    return _work_with_shell(asked) if asked.is_responses else _work_with_files(asked)


def _work_with_shell(asked: Recorded) -> Reply:
    if asked.exchanges:
        return Reply(text="The memory folder is up to date.")
    line = f"{sys.executable} {PROGRAM} </dev/null"
    return Reply(calls=(Call("exec_command", {"cmd": line}),))


def _work_with_files(asked: Recorded) -> Reply:
    """Read the merged memories through the program's own tool, and write both files with another."""
    read, write, path = ("Read", "Write", "file_path") if asked.is_messages else ("read", "write", "filePath")
    outputs = [each.output for each in asked.exchanges]
    folder = _folder_named_in(asked)
    if not outputs:
        return Reply(calls=(Call(read, {path: f"{folder}/raw_memories.md"}),))
    if len(outputs) == 1:
        lines = (LINE_NUMBER.sub("", line) for line in outputs[0].splitlines())
        inputs = parse_raw_memories("\n".join(lines))
        texts = {"MEMORY.md": handbook(inputs), "memory_summary.md": summary(inputs)}
        return Reply(
            calls=tuple(Call(write, {path: f"{folder}/{name}", "content": text}) for name, text in texts.items())
        )
    return Reply(text="The memory folder is up to date.")


def _folder_named_in(asked: Recorded) -> str:
    found = re.search(r"(/[^\s\"\\]*/staging/[^\s\"\\]*/copy)", json.dumps(asked.body))
    assert found is not None, "the program names its working directory"
    return found[1]


def shortened(value: Any) -> Any:
    """Keep a request's shape: long texts are cut, what differs from run to run is left out."""
    if isinstance(value, dict):
        dropped = ("client_metadata", "metadata", "prompt_cache_key", "id", "call_id")
        return {key: shortened(inner) for key, inner in value.items() if key not in dropped}
    if isinstance(value, list):
        return [shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > LONG_TEXT:
        return f"{value[:LONG_TEXT]} [... {len(value)} characters]"
    return value


def sync(agent: RealAgent, folder: Path) -> tuple[Place, list[Recorded], Any]:
    """Run one whole pass with a program in a folder; return the place, what the server was asked, how it ended."""
    place = Place(folder, measured=False)
    with ModelServer() as server:
        server.reply_with(script)
        agent.configure(place, server)
        done = place.run("sync", "--now", "--backfill", "all", "--json")
        return place, server.requests, done


def main() -> None:
    """Record what each program that is there asks: the first request of stage 1, and those of a consolidation."""
    for agent in AGENTS:
        if agent.path is None:
            print(f"{agent.name} is not on PATH", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            _, requests, done = sync(agent, Path(folder))
            assert done.code == 0, done
            kept = [each for each in requests if each.user_texts]
            stage1 = next(each for each in kept if WORK_MARK not in "\n".join(each.user_texts))
            stage2 = [each for each in kept if WORK_MARK in "\n".join(each.user_texts)]
            text = json.dumps({"stage1": stage1.body, "stage2": [each.body for each in stage2]})
            for ours, shown in ((folder, "/folder"), (sys.executable, "python"), (PROGRAM, "agent_program.py")):
                text = text.replace(ours, shown)
            bodies = shortened(json.loads(text))
        file = FIXTURES / f"{agent.name}-{agent.version}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(bodies, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
