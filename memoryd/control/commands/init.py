"""`memoryd init`: finds agents and providers, says what will leave the machine, and writes config.toml."""

import argparse
import os
import sys
from pathlib import Path

from memoryd import config
from memoryd.config import AGENT_HOMES
from memoryd.control.connecting.targets import TARGETS
from memoryd.control.console import print_json
from memoryd.control.example_config import written_toml
from memoryd.control.history import Bound
from memoryd.control.setting_up.choosing import (
    ADDRESSES,
    KINDS,
    OFFLINE,
    ask_one_of,
    choose_provider,
    command_of,
    may_ask,
    prices_of,
)
from memoryd.control.setting_up.found import CALLS, KEY_VARIABLES, lines_of, look_around
from memoryd.control.setting_up.steps import choose_steps, run_steps
from memoryd.control.setting_up.telling import bounds, estimate_lines, estimates_as_json, farewell, what_leaves
from memoryd.errors import ConfigError, UsageError
from memoryd.llm.command.programs import OWN_DEFAULT
from memoryd.workspace.layout import Home, prepare


def configure(parser: argparse.ArgumentParser) -> None:
    """Take every answer, so that a script need not be asked."""
    parser.add_argument("--yes", action="store_true", help="ask nothing; this is no consent to sending history")
    parser.add_argument("--provider", choices=KINDS, help="how models are asked (default: offline, no model)")
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
    parser.add_argument("--api-key-file", metavar="FILE", help="a file (mode 0600) that holds the key")
    for name in ("input", "cached", "output"):
        parser.add_argument(
            f"--price-{name}",
            type=float,
            metavar="USD",
            help=f"{name} tokens, US dollars a million: for estimates and cost caps",
        )
    parser.add_argument(
        "--backfill",
        choices=["ask", "recent", "all"],
        help="sessions recorded before now: ask first, send recent ones, or all",
    )
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        choices=["codex", "claude"],
        help="bring in what this agent has learned by itself (may be repeated)",
    )
    parser.add_argument(
        "--connect",
        action="append",
        choices=list(TARGETS),
        help="give this agent its memory; changes its settings (may be repeated)",
    )
    parser.add_argument(
        "--service", action=argparse.BooleanOptionalAction, help="start memoryd with your session, from now on"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, and ask nothing")


def run(args: argparse.Namespace) -> int:
    """Write the settings, never over a file that exists; then what was asked for besides. 1 if some of that failed."""
    environ = config.environ()
    settings = config.load(args.home, environ=environ)
    home = Home(settings.home)
    if home.config_file.exists():
        raise UsageError(f"{home.config_file} exists already", remedy="edit it, or move it away first")
    say = _silent if args.json else _say
    here = look_around(settings, environ)
    say(lines_of(here))
    if not here.agents:
        print(f"found no agent: looked for {', '.join(AGENT_HOMES)}; memoryd will watch for Codex", file=sys.stderr)
    provider = choose_provider(args, here)
    leaves = what_leaves(args, provider)
    there: dict[str, Bound] = {}
    if provider != OFFLINE:
        there = bounds(args, settings, here.agents)
        say([*leaves, *estimate_lines(there, settings)])
    history = args.backfill or _ask_history(args, provider)
    _write(home, _settings(args, provider, here.agent_names or ["codex"], history))
    try:
        config.load(args.home, environ=environ)
    except ConfigError:
        home.config_file.unlink()
        raise
    say(farewell(home, provider, history, leaves if provider == OFFLINE else ()))
    steps = choose_steps(args, here, list(TARGETS))
    done = run_steps(steps, home, quiet=args.json)
    if args.json:
        choice = {"provider": provider, "model": args.model, "backfill": history}
        print_json(
            {"wrote": str(home.config_file), **here.as_json(), "chosen": choice, "leaves": leaves}
            | {"history": estimates_as_json(there), "steps": done}
        )
    say(["Next: `memoryd sync` for one pass now, or `memoryd run` for the daemon."])
    return 1 if any(step["exit_code"] for step in done) else 0


def _say(lines: list[str]) -> None:
    if lines:
        print("\n".join(lines))


def _silent(_lines: list[str]) -> None:
    """Leave stdout to JSON."""


def _settings(args: argparse.Namespace, provider: str, agents: list[str], backfill: str) -> str:
    """Write the settings as TOML; what is not said stands there as a comment, with its default."""
    about: dict[str, object] = {"kind": provider}
    if provider == "command":
        about["command"] = command_of(args)
    elif provider != OFFLINE:
        about["base_url"] = args.base_url or ADDRESSES[provider]
        if args.api_key_file:
            about["api_key_file"] = str(Path(args.api_key_file).expanduser().absolute())
        elif args.api_key_env or not args.base_url:
            about["api_key_env"] = args.api_key_env or KEY_VARIABLES[provider]
        if prices := prices_of(args):
            about["prices"] = prices
    stage: dict[str, object] = {"provider": provider}
    if provider != OFFLINE:
        stage["model"] = args.model
    return written_toml(
        {
            "sources": {"agents": agents},
            f"providers.{provider}": about,
            "extract": stage,
            "consolidate": stage,
            "limits": {"backfill": backfill},
        }
    )


def _ask_history(args: argparse.Namespace, provider: str) -> str:
    if provider == OFFLINE or not may_ask(args):
        return "ask"
    answer = ask_one_of("Send sessions recorded before now", ("no", "recent", "all"), "no")
    return "ask" if answer == "no" else answer


def _write(home: Home, text: str) -> None:
    prepare(home)
    descriptor = os.open(home.config_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
