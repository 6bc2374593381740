"""Which provider is to answer, and what to do besides: taken from the options, else asked for on a terminal."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from typing import Final

from memoryd.control.setting_up.found import CALLS, KEY_VARIABLES, Here
from memoryd.errors import UsageError
from memoryd.llm.command.programs import OWN_DEFAULT

ADDRESSES: Final = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
OLLAMA: Final = "http://127.0.0.1:11434/v1"
KINDS: Final = ("openai", "openai-chat", "anthropic", "command", "offline")
OFFLINE: Final = "offline"
SERVER_OPTIONS: Final = ("base_url", "api_key_env", "api_key_file", "price_input", "price_cached", "price_output")
MAX_MODELS_SHOWN: Final = 12


def may_ask(args: argparse.Namespace) -> bool:
    """Say whether somebody is there to answer."""
    return not args.yes and not args.json and sys.stdin.isatty()


def choose_provider(args: argparse.Namespace, here: Here) -> str:
    """Take what was said, else ask on a terminal, else the offline writer: memoryd guesses nobody's model."""
    if args.provider is None and may_ask(args):
        print("\n".join(_proposals(here)))
        args.provider = ask_one_of("Provider", KINDS, _proposed(here))
    provider = str(args.provider or OFFLINE)
    _refuse_what_is_not_meant(args, provider)
    if provider == "command":
        _choose_command(args, here.programs)
    elif provider != OFFLINE:
        _choose_server(args, provider, here)
    return provider


def command_of(args: argparse.Namespace) -> list[str]:
    """Return the program and its arguments. Raises UsageError for quotes that are open."""
    try:
        return list(CALLS.get(args.command, ())) or shlex.split(args.command)
    except ValueError as error:
        raise UsageError(f"cannot read the command {args.command!r}: {error}", remedy="close its quotes") from error


def prices_of(args: argparse.Namespace) -> dict[str, float]:
    """Return the prices that were given, in US dollars per million tokens."""
    given = {"input": args.price_input, "cached": args.price_cached, "output": args.price_output}
    return {name: price for name, price in given.items() if price is not None}


def ask(question: str, default: str) -> str:
    """Ask; an empty line means the default, and is asked again where there is none; so does the end of the input."""
    while True:
        print(f"{question} [{default}]: " if default else f"{question}: ", end="", flush=True)
        line = sys.stdin.readline()
        if line.strip() or default or not line:
            return line.strip() or default
        print("there is no default: please write it")


def ask_one_of(question: str, answers: Sequence[str], default: str) -> str:
    """Ask until the answer is one of those offered, or begins only one; the end of the input means the default."""
    while True:
        print(f"{question}: {', '.join(answers)} [{default}]: ", end="", flush=True)
        said = sys.stdin.readline().strip().lower() or default
        if said in answers:
            return said
        begun = [each for each in answers if each.startswith(said)]
        if len(begun) == 1:
            return begun[0]
        print(f"please write one of: {', '.join(answers)}")


def ask_yes(question: str) -> bool:
    """Ask for a yes; anything less is a no."""
    return ask_one_of(question, ("yes", "no"), "no") == "yes"


def _proposed(here: Here) -> str:
    """Return what Enter takes: a model on this machine, else the offline writer; nothing leaves by a mere Enter."""
    return "openai-chat" if any(server.models for server in here.servers) else OFFLINE


def _proposals(here: Here) -> list[str]:
    lines = ["Where should models answer?"]
    if "OPENAI_API_KEY" in here.keys:
        lines.append("  openai: OPENAI_API_KEY is set")
    if "ANTHROPIC_API_KEY" in here.keys:
        lines.append("  anthropic: ANTHROPIC_API_KEY is set")
    lines += [f"  openai-chat: {server.name} on this machine; nothing leaves it" for server in here.servers]
    if here.programs:
        lines.append(f"  command: {', '.join(here.programs)} found; answers on your subscription")
    return [*lines, "  offline: no model; quotes of your own words, and nothing leaves this machine"]


def _refuse_what_is_not_meant(args: argparse.Namespace, provider: str) -> None:
    """An option that says nothing of this kind of provider was meant for another one."""
    given = [name for name in SERVER_OPTIONS if getattr(args, name) is not None]
    wrong = given if provider in {OFFLINE, "command"} else []
    wrong += ["model"] if args.model and provider == OFFLINE else []
    wrong += ["command"] if args.command and provider != "command" else []
    if wrong:
        raise UsageError(
            f"--{wrong[0].replace('_', '-')} says nothing of the provider {provider}",
            remedy=f"choose with --provider: {', '.join(KINDS)}",
        )


def _choose_command(args: argparse.Namespace, programs: Sequence[str]) -> None:
    if not args.command and may_ask(args):
        args.command = ask("Program", programs[0] if programs else "")
        args.model = args.model or ask("Model", OWN_DEFAULT)
    if not args.command:
        if len(programs) != 1:
            there = " and ".join(programs) if programs else f"none of {', '.join(CALLS)}"
            raise UsageError(
                f"the provider command needs a program, and {there} is on PATH", remedy="give --command PROGRAM"
            )
        args.command = programs[0]
    args.model = args.model or OWN_DEFAULT


def _choose_server(args: argparse.Namespace, provider: str, here: Here) -> None:
    servers = here.servers if provider == "openai-chat" else ()
    if may_ask(args):
        _ask_server(args, provider, servers[0].base_url if servers else ADDRESSES.get(provider, OLLAMA), here)
    if provider == "openai-chat" and not args.base_url and args.model:
        args.base_url = next((server.base_url for server in servers if args.model in server.models), None)
    if not args.model:
        raise UsageError(f"the provider {provider} needs a model", remedy=_remedy(here, args.base_url))
    if provider == "openai-chat" and not args.base_url:
        raise UsageError("a compatible server needs its address", remedy=f"give --base-url, such as {OLLAMA}")


def _ask_server(args: argparse.Namespace, provider: str, address: str, here: Here) -> None:
    args.base_url = args.base_url or ask("Address", address)
    if not args.model:
        models = _models_at(here, args.base_url)
        if models:
            print(f"  there: {', '.join(models[:MAX_MODELS_SHOWN])}")
        args.model = ask("Model", models[0] if models else "")
    if not (args.api_key_env or args.api_key_file):
        is_local = any(server.base_url == args.base_url for server in here.servers)
        args.api_key_env = ask("Variable that holds the key (- for none)", "-" if is_local else KEY_VARIABLES[provider])
        args.api_key_env = args.api_key_env.removeprefix("-")


def _models_at(here: Here, base_url: str | None) -> Sequence[str]:
    return next((server.models for server in here.servers if server.base_url == base_url), ())


def _remedy(here: Here, base_url: str | None) -> str:
    models = _models_at(here, base_url)
    return f"give --model NAME; there: {', '.join(models[:MAX_MODELS_SHOWN])}" if models else "give --model NAME"
