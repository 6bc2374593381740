"""`memoryd init`: finds agents and providers, says what will leave the machine, and writes config.toml."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoryd import config
from memoryd.config import AGENT_HOMES, Provider, ProviderKind, Settings
from memoryd.control.console import plural
from memoryd.control.history import bound, history_in_folders, sentence
from memoryd.errors import ConfigError, UsageError
from memoryd.pipeline.context import Agent
from memoryd.pipeline.extract import BYTES_PER_TOKEN
from memoryd.sources.readers import READERS
from memoryd.workspace.layout import Home, prepare

KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
OLLAMA = "http://127.0.0.1:11434/v1"
KINDS = ("openai", "openai-chat", "offline")


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
    parser.add_argument("--base-url", help=f"the provider's address, as its SDK takes it (default {OPENAI})")
    parser.add_argument("--model", help="the model for both stages")
    parser.add_argument(
        "--api-key-env", help=f"the variable that holds the key (default {KEY_VARIABLE}, or none with --base-url)"
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
        print(f"found no agent: looked for {', '.join(READERS)}; memoryd will watch for Codex", file=sys.stderr)
    provider = _choose_provider(args, environ)
    if provider != "offline":
        _say_history(settings, agents)
    history = args.backfill or _ask_history(args, provider)
    prepare(home)
    text = render(args, provider, [agent.name for agent in agents] or ["codex"], history)
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
    if provider != "offline":
        lines.append(f"base_url = {quote(args.base_url or OPENAI)}")
        if args.api_key_file:
            lines.append(f"api_key_file = {quote(str(Path(args.api_key_file).expanduser().absolute()))}")
        elif args.api_key_env or (provider == "openai" and not args.base_url):
            lines.append(f"api_key_env = {quote(args.api_key_env or KEY_VARIABLE)}")
    for stage in ("extract", "consolidate"):
        lines += ["", f"[{stage}]", f"provider = {quote(provider)}"]
        if provider != "offline":
            lines.append(f"model = {quote(args.model)}")
    return "\n".join([*lines, "", "[limits]", f"backfill = {quote(backfill)}", ""])


def _choose_provider(args: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """Take what was said, else ask on a terminal, else the offline writer: memoryd guesses nobody's model."""
    if args.provider is None and _may_ask(args):
        hint = f" ({KEY_VARIABLE} is set)" if environ.get(KEY_VARIABLE) else ""
        args.provider = _ask_one_of(f"Provider{hint}", KINDS, "offline")
    provider = str(args.provider or "offline")
    if provider == "offline":
        return provider
    if _may_ask(args):
        args.base_url = args.base_url or _ask("Address", OPENAI if provider == "openai" else OLLAMA)
        args.model = args.model or _ask("Model", "")
        if not (args.api_key_env or args.api_key_file):
            args.api_key_env = _ask("Variable that holds the key (- for none)", KEY_VARIABLE).removeprefix("-")
    if not args.model:
        raise UsageError(f"the provider {provider} needs a model", remedy="give --model NAME")
    if provider == "openai-chat" and not args.base_url:
        raise UsageError("a compatible server needs its address", remedy=f"give --base-url, such as {OLLAMA}")
    return provider


def _ask_history(args: argparse.Namespace, provider: str) -> str:
    if provider == "offline" or not _may_ask(args):
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
        if provider == "offline"
        else "Idle sessions are sent to this provider, with secrets taken out and within the caps of [limits]."
    )
    waits = "Sessions recorded before now wait for your consent: `memoryd sync --backfill recent`, or limits.backfill."
    return [
        f"wrote {home.config_file}",
        leaves,
        *([waits] if provider != "offline" and history == "ask" else []),
        "Next: `memoryd sync` for one pass now, or `memoryd run` for the daemon.",
    ]
