"""`memoryd completion bash|zsh|fish`: a script that completes commands, options and agents in a shell."""

import argparse
from typing import Final

from memoryd.control.completing import SHELLS, words_of
from memoryd.control.connecting.targets import TARGETS

WHERE: Final = {
    "bash": "source <(memoryd completion bash)   in ~/.bashrc",
    "zsh": "source <(memoryd completion zsh)   in ~/.zshrc, after compinit",
    "fish": "memoryd completion fish > ~/.config/fish/completions/memoryd.fish",
}

AGENTS: Final = frozenset({"connect", "disconnect"})
"""Commands whose word is the name of an agent, which they check themselves."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the shell."""
    parser.add_argument("shell", choices=list(SHELLS), help="the shell that reads it")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(f"{shell}: {how}" for shell, how in WHERE.items())


def run(args: argparse.Namespace) -> int:
    """Print the script, made from what the commands of this version understand."""
    from memoryd.control.main import COMMANDS, load, parser_of

    commands = {
        name: words_of(parser_of(name, load(name)), meaning, known=tuple(TARGETS) if name in AGENTS else ())
        for name, meaning in COMMANDS.items()
    }
    print(SHELLS[args.shell](commands), end="")
    return 0
