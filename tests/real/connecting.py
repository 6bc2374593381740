"""The agents' real programs with memoryd in their settings: what their hook is asked, and what their model is told.

    npm install --prefix /tmp/agents @openai/codex @anthropic-ai/claude-code opencode-ai
    PATH=/tmp/agents/node_modules/.bin:$PATH pytest tests/real/test_connect.py
    PATH=/tmp/agents/node_modules/.bin:$PATH python -m tests.real.connecting   # records tests/fixtures/connected anew

No login and no network are needed: each program is pointed at the scripted model server on this machine.
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

from tests.support.model_asked import Recorded
from tests.support.model_replies import Reply
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import install_recorded

FIXTURES = Path(__file__).parent.parent / "fixtures" / "connected"
MARKER = "<memoryd_memory>"
MARKER_CLOSE = "</memoryd_memory>"
AROUND = 60
"""Characters of a program's own words that are kept on each side of the memory."""
QUESTION = "Say whether you are there."
# Between the agent and the runner, when a run is recorded: what goes in and what comes out is kept.
LISTENER = """\
#!/bin/sh
tee -a '{folder}/asked' | '{runner}.real' "$@" | tee -a '{folder}/answered'
"""


@dataclass(frozen=True)
class Program:
    """One program that starts a session. `files` lie below the user's home before: settings of a person's."""

    name: str
    package: str
    words: Callable[[ModelServer], list[str]]
    files: Mapping[str, str]
    environ: Callable[[ModelServer], dict[str, str]] = field(default=lambda _server: {})
    connected: str = ""
    """The file, below the user's home, that connect writes."""
    via: str = ""
    """The way in, empty for the usual one."""

    @property
    def by_file(self) -> bool:
        """Whether it reads a file of ours and runs nothing."""
        return self.via == "import" or self.name == "opencode"

    @property
    def path(self) -> str | None:
        return shutil.which(self.name)

    @property
    def version(self) -> str:
        said = subprocess.run([self.name, "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"\d+\.\d+\.\d+", said)
        assert found is not None, said
        return found[0]


def _codex(server: ModelServer) -> list[str]:
    provider = f'{{name="scripted", base_url="{server.base_url}", wire_api="responses", requires_openai_auth=true}}'
    chosen = ["-c", 'model_provider="scripted"', "-c", f"model_providers.scripted={provider}"]
    # A person trusts the hook once with /hooks; a program cannot, and says so.
    return ["codex", "exec", *chosen, "--skip-git-repo-check", "--dangerously-bypass-hook-trust", QUESTION]


def _claude_environ(server: ModelServer) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "sk-scripted-0000", "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1")}


def _opencode_settings(server: ModelServer) -> dict[str, str]:
    options = {"baseURL": server.base_url, "apiKey": "sk-scripted-0000"}
    scripted = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"scripted-1": {}}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"scripted": scripted}})}


PROGRAMS = (
    Program(
        name="codex",
        package="@openai/codex",
        words=_codex,
        files={
            ".codex/auth.json": '{"OPENAI_API_KEY": "sk-scripted-0000"}',
            ".codex/config.toml": '# mine\nmodel = "scripted-1"\n',
            ".codex/hooks.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}',
        },
        connected=".codex/hooks.json",
    ),
    Program(
        name="claude",
        package="@anthropic-ai/claude-code",
        words=lambda _server: ["claude", "-p", QUESTION],
        files={".claude/settings.json": '{\n    "model": "scripted-1", "env": {"EDITOR": "vi"}\n}'},
        environ=_claude_environ,
        connected=".claude/settings.json",
    ),
    Program(
        name="claude",
        package="@anthropic-ai/claude-code",
        words=lambda _server: ["claude", "-p", QUESTION],
        files={".claude/CLAUDE.md": "# mine\n\nNo emoji.", ".claude/settings.json": '{"model": "scripted-1"}'},
        environ=_claude_environ,
        connected=".claude/CLAUDE.md",
        via="import",
    ),
    Program(
        name="opencode",
        package="opencode-ai",
        words=lambda _server: ["opencode", "run", "-m", "scripted/scripted-1", QUESTION],
        files={
            ".config/opencode/opencode.jsonc": (
                '{\n  "$schema": "https://opencode.ai/config.json", // mine\n  "instructions": ["notes.md",],\n}\n'
            )
        },
        environ=_opencode_settings,
        connected=".config/opencode/opencode.jsonc",
    ),
)


@dataclass(frozen=True)
class Session:
    """What one start of a connected program gave, and what connect and disconnect did to its settings."""

    place: Place
    cwd: Path
    requests: list[Recorded]
    before: bytes
    between: bytes
    after: bytes
    recalled: str
    """What `memoryd recall` prints for the session's folder, or what stands in the file that is read in place of it."""

    @property
    def of_first_answer(self) -> list[dict[str, Any]]:
        """The parts, role and text, of the first request with the person's question in which the memory stands.

        Some programs ask for a title of the session besides.
        """
        for asked in self.requests:
            parts = _texts(asked.body)
            if any(QUESTION in each["text"] for each in parts) and asked.body.get("tools"):
                return [each for each in parts if MARKER in each["text"]]
        return []


def _texts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    system = body.get("system") or body.get("instructions") or ""
    messages = [{"role": "system", "content": system}, *body.get("input", body.get("messages", []))]
    found = []
    for message in messages:
        content = message.get("content") or ""
        parts = [{"text": content}] if isinstance(content, str) else content
        found += [{"role": message.get("role"), "text": str(part.get("text", ""))} for part in parts]
    return found


def start_connected(program: Program, folder: Path, *, listen: Path | None = None) -> Session:
    """Give a place a memory, connect the program, start one session, disconnect."""
    place = Place(folder, measured=False)
    place.configure()
    install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.171.0"])
    assert place.run("sync", "--now", "--backfill", "all").code == 0
    for name, text in program.files.items():
        (place.user_home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.user_home / name).write_text(text, encoding="utf-8")
    file = place.user_home / program.connected
    before = file.read_bytes()
    done = place.run("connect", program.name, *(["--via", program.via] if program.via else []))
    assert done.code == 0, done
    between = file.read_bytes()
    runner = place.home / "bin" / "hook"
    if listen is not None and runner.exists():
        runner.rename(f"{runner}.real")
        runner.write_text(LISTENER.format(folder=listen, runner=runner), encoding="utf-8")
        runner.chmod(0o700)
    cwd = folder / "work"
    cwd.mkdir()
    with ModelServer() as server:
        server.reply_with(lambda _asked: Reply(text="Yes."))
        environ = {**place.environ, **program.environ(server)}
        run = subprocess.run(
            program.words(server),
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert run.returncode == 0, run
        requests = server.requests
    by_file = program.by_file
    everywhere = place.home / "recall" / "everywhere.md"
    recalled = everywhere.read_text(encoding="utf-8") if by_file else place.run("recall", "--cwd", str(cwd)).stdout
    done = place.run("disconnect", program.name)
    assert done.code == 0, done
    return Session(place, cwd, requests, before, between, file.read_bytes(), recalled)


def around_memory(text: str) -> str:
    """Keep the memory and a little of what stands around it: the rest is the program's own."""
    before, marker, rest = text.partition(MARKER)
    memory, closing, after = rest.partition(MARKER_CLOSE)
    return f"{before[-AROUND:]}{marker}{memory}{closing}{after[:AROUND]}"


def main() -> None:
    """Record, of each program that is there, what its hook was asked and answered, and what its model was told."""
    for program in PROGRAMS:
        if program.path is None:
            print(f"{program.name} is not on PATH", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as listen:
            session = start_connected(program, Path(folder), listen=Path(listen))
            kept = {name: Path(listen, name) for name in ("asked", "answered")}
            hook = {name: path.read_text(encoding="utf-8") if path.exists() else None for name, path in kept.items()}
            told = [each | {"text": around_memory(each["text"])} for each in session.of_first_answer]
            text = json.dumps({"version": program.version, "hook": hook, "told": told})
            recorded = json.loads(text.replace(folder, "/folder"))
        file = FIXTURES / f"{program.name}-{recorded['version']}{'-' * bool(program.via)}{program.via}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
