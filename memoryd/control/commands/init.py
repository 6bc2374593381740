"""`memoryd init`: finds agents and providers, says what will leave the machine, and writes config.toml."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd import config
from memoryd.config import AGENT_HOMES, Provider, ProviderKind, Settings
from memoryd.control.console import plural
from memoryd.control.history import bound, history_in_folders, sentence
from memoryd.errors import ConfigError, UsageError
from memoryd.llm.command.programs import OWN_DEFAULT
from memoryd.llm.command.shell import found
from memoryd.pipeline.context import Agent
from memoryd.pipeline.extract import BYTES_PER_TOKEN
from memoryd.sources.readers import READERS
from memoryd.workspace.layout import Home, prepare

KEY_VARIABLES: Final = {"openai": "OPENAI_API_KEY", "openai-chat": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
ADDRESSES: Final = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
OLLAMA: Final = "http://127.0.0.1:11434/v1"
CALLS: Final = {
    "claude": ("claude", "-p"),
    "codex": ("codex", "exec"),
    "gemini": ("gemini",),
    "opencode": ("opencode", "run"),
}
"""How the programs of agents are called to answer one question; the options that they need are added at each run."""
KINDS: Final = ("openai", "openai-chat", "anthropic", "command", "offline")
OFFLINE: Final = "offline"
SERVER_OPTIONS: Final = ("base_url", "api_key_env", "api_key_file")


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """An agent whose sessions lie on this machine."""

    name: str
    home: Path
    sessions: int


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the choices, so that a script need not be asked."""
    parser.add_argument("--yes", action="store_true", help="ask nothing; this is no consent to sending history")
    parser.add_argument(
        "--provider",
        choices=KINDS,
        help="how models are asked (default: offline, no model)",
    )
    parser.add_argument(
        "--base-url",
        help="the provider's address, as its SDK takes it (default "
        + ", ".join(f"{kind}: {address}" for kind, address in ADDRESSES.items())
        + ")",
    )
    parser.add_argument("--model", help=f"the model for both stages (command: {OWN_DEFAULT}, as the program is set)")
    parser.add_argument(
        "--command",
        metavar="PROGRAM",
        help=f"command: {', '.join(CALLS)}, or any other with its arguments in quotes (default: the one that is here)",
    )
    parser.add_argument(
        "--api-key-env",
        help="the variable that holds the key (default OPENAI_API_KEY or ANTHROPIC_API_KEY, or none with --base-url)",
    )
    parser.add_argument("--api-key-file", help="a file (mode 0600) that holds the key")
    parser.add_argument(
        "--backfill",
        choices=["ask", "recent", "all"],
        help="sessions recorded before now: ask first, send recent ones, or all",
    )


def run(args: argparse.Namespace) -> int:
    """Write the settings; an existing file is never overwritten."""
    environ = config.environ()
    settings = config.load(args.home, environ=environ)
    home = Home(settings.home)
    if home.config_file.exists():
        raise UsageError(f"{home.config_file} exists already", remedy="edit it, or move it away first")
    agents = find_agents(settings, environ)
    for agent in agents:
        print(f"found {agent.name}: {plural(agent.sessions, 'session file')} in {agent.home}")
    if not agents:
        print(f"found no agent: looked for {', '.join(AGENT_HOMES)}; memoryd will watch for Codex", file=sys.stderr)
    provider = _choose_provider(args, environ)
    if provider != OFFLINE:
        _say_history(settings, agents)
    history = args.backfill or _ask_history(args, provider)
    text = render(args, provider, [agent.name for agent in agents] or ["codex"], history)
    prepare(home)
    _write_new(home.config_file, text)
    try:
        config.load(args.home, environ=environ)
    except ConfigError:
        home.config_file.unlink()
        raise
    print("\n".join(_farewell(home, provider, history)))
    return 0


def find_agents(settings: Settings, environ: Mapping[str, str]) -> list[FoundAgent]:
    """Look for the agents whose sessions this version reads."""
    found = []
    for name, reader in READERS.items():
        for home in config.agent_home(name, settings, environ) if name in AGENT_HOMES else []:
            if not reader.missing_roots([home]):  # a home alone may belong to another program of the same maker
                count = sum(1 for _ in reader.find([home]))
                found += [FoundAgent(name, home, count)]
    return found


def render(args: argparse.Namespace, provider: str, agents: list[str], backfill: str) -> str:
    """Write the settings as TOML; what is not said keeps its default (config.example.toml lists them all)."""
    quote = json.dumps
    lines = [
        "# Written by `memoryd init`. Every other setting keeps its default: see config.example.toml.",
        "",
        "[sources]",
        f"agents = {quote(agents)}",
        "",
        f"[providers.{provider}]",
        f"kind = {quote(provider)}",
    ]
    if provider == "command":
        lines.append(f"command = {quote(_command(args))}")
    elif provider != OFFLINE:
        lines.append(f"base_url = {quote(args.base_url or ADDRESSES[provider])}")
        if args.api_key_file:
            lines.append(f"api_key_file = {quote(str(Path(args.api_key_file).expanduser().absolute()))}")
        elif args.api_key_env or not args.base_url:
            lines.append(f"api_key_env = {quote(args.api_key_env or KEY_VARIABLES[provider])}")
    for stage in ("extract", "consolidate"):
        lines += ["", f"[{stage}]", f"provider = {quote(provider)}"]
        if provider != OFFLINE:
            lines.append(f"model = {quote(args.model)}")
    return "\n".join([*lines, "", "[limits]", f"backfill = {quote(backfill)}", ""])


def _choose_provider(args: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """Take what was said, else ask on a terminal, else the offline writer: memoryd guesses nobody's model."""
    programs = [name for name in CALLS if found(name, environ)]
    if args.provider is None and _may_ask(args):
        args.provider = _ask_one_of(f"Provider{_hint(environ, programs)}", KINDS, OFFLINE)
    provider = str(args.provider or OFFLINE)
    _refuse_what_is_not_meant(args, provider)
    if provider == "command":
        _choose_command(args, programs)
    elif provider != OFFLINE:
        _choose_server(args, provider)
    return provider


def _hint(environ: Mapping[str, str], programs: Sequence[str]) -> str:
    """Say what there is on this machine to choose by."""
    there = [f"{name} is set" for name in sorted(set(KEY_VARIABLES.values())) if environ.get(name)]
    if programs:
        there.append(f"command: {', '.join(programs)} found")
    return f" ({'; '.join(there)})" if there else ""


def _refuse_what_is_not_meant(args: argparse.Namespace, provider: str) -> None:
    """An option that says nothing of this kind of provider was meant for another one."""
    wrong = [name for name in SERVER_OPTIONS if getattr(args, name) and provider in {OFFLINE, "command"}]
    wrong += ["model"] if args.model and provider == OFFLINE else []
    wrong += ["command"] if args.command and provider != "command" else []
    if wrong:
        raise UsageError(
            f"--{wrong[0].replace('_', '-')} says nothing of the provider {provider}",
            remedy=f"choose with --provider: {', '.join(KINDS)}",
        )


def _choose_command(args: argparse.Namespace, programs: Sequence[str]) -> None:
    if not args.command and _may_ask(args):
        args.command = _ask("Program", programs[0] if programs else "")
        args.model = args.model or _ask("Model", OWN_DEFAULT)
    if not args.command:
        if len(programs) != 1:
            there = " and ".join(programs) if programs else f"none of {', '.join(CALLS)}"
            raise UsageError(
                f"the provider command needs a program, and {there} is on PATH", remedy="give --command PROGRAM"
            )
        args.command = programs[0]
    args.model = args.model or OWN_DEFAULT


def _choose_server(args: argparse.Namespace, provider: str) -> None:
    if _may_ask(args):
        args.base_url = args.base_url or _ask("Address", ADDRESSES.get(provider, OLLAMA))
        args.model = args.model or _ask("Model", "")
        if not (args.api_key_env or args.api_key_file):
            args.api_key_env = _ask("Variable that holds the key (- for none)", KEY_VARIABLES[provider])
            args.api_key_env = args.api_key_env.removeprefix("-")
    if not args.model:
        raise UsageError(f"the provider {provider} needs a model", remedy="give --model NAME")
    if provider == "openai-chat" and not args.base_url:
        raise UsageError("a compatible server needs its address", remedy=f"give --base-url, such as {OLLAMA}")


def _command(args: argparse.Namespace) -> list[str]:
    try:
        return list(CALLS.get(args.command, ())) or shlex.split(args.command)
    except ValueError as error:
        raise UsageError(f"cannot read the command {args.command!r}: {error}", remedy="close its quotes") from error


def _ask_history(args: argparse.Namespace, provider: str) -> str:
    if provider == OFFLINE or not _may_ask(args):
        return "ask"
    answer = _ask_one_of("Send sessions recorded before now", ("no", "recent", "all"), "no")
    return "ask" if answer == "no" else answer


def _say_history(settings: Settings, found: Sequence[FoundAgent]) -> None:
    """Say what sending the sessions that lie here would take, before anybody is asked for it."""
    homes: dict[str, list[Path]] = {}
    for agent in found:
        homes.setdefault(agent.name, []).append(agent.home)
    there = history_in_folders(settings, {name: Agent(READERS[name], tuple(each)) for name, each in homes.items()})
    provider = Provider(kind=ProviderKind.OFFLINE)
    for backfill, sizes in there.items():
        print(f"history, {backfill}: {sentence(bound(settings, provider, provider, sizes, BYTES_PER_TOKEN))}")
    limits = settings.limits
    print(f"limits: {limits.requests_per_day:,} requests and {limits.tokens_per_day:,} tokens a day; see [limits]")


def _may_ask(args: argparse.Namespace) -> bool:
    return not args.yes and sys.stdin.isatty()


def _ask(question: str, default: str) -> str:
    print(f"{question} [{default}]: ", end="", flush=True)
    return sys.stdin.readline().strip() or default


def _ask_one_of(question: str, answers: Sequence[str], default: str) -> str:
    """Ask until the answer is one of those offered; the end of the input means the default."""
    while True:
        print(f"{question}: {', '.join(answers)} [{default}]: ", end="", flush=True)
        line = sys.stdin.readline()
        answer = line.strip().lower() or default
        if answer in answers:
            return answer
        print(f"please write one of: {', '.join(answers)}")


def _write_new(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _farewell(home: Home, provider: str, history: str) -> list[str]:
    leaves = (
        "Nothing leaves this machine: the offline writer asks nobody."
        if provider == OFFLINE
        else "Idle sessions are sent to this provider, with secrets taken out and within the caps of [limits]."
    )
    waits = "Sessions recorded before now wait for your consent: `memoryd sync --backfill recent`, or limits.backfill."
    return [
        f"wrote {home.config_file}",
        leaves,
        *([waits] if provider != OFFLINE and history == "ask" else []),
        "Next: `memoryd sync` for one pass now, or `memoryd run` for the daemon.",
    ]
