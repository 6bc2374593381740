"""The command line: one table of commands, one boundary at which every error becomes one line and an exit code.

Only the module of the command that was asked for is imported, so that none pays for the others.
"""

import argparse
import difflib
import importlib
import importlib.metadata
import keyword
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, cast

from memoryd.control.manual import GROUPS, PAGES, description
from memoryd.control.terminal import guarded_stdout
from memoryd.errors import ConfigError, DiskFull, LedgerTooNew, MemorydError, UsageError
from memoryd.text import spelled_out

EXIT_CONFIGURATION: Final = 78
"""EX_CONFIG of sysexits: `run` ends with it on wrong settings, and the service manager does not start it again."""
EXIT_LEFT_UNDONE: Final = 3
"""`sync` has work and cannot do it now: as where a job was put off for want of room."""
EXIT_INTERRUPTED: Final = 130
UNUSED: Final = ("rich", "click", "pygments")
"""Logging and HTTP packages load them where they find them, for what is not used here: 6 MB of an idle daemon."""
HOOK: Final = "hook"
"""Whatever happens in it, it ends with 0: the agent's session goes on."""

COMMANDS: Final[dict[str, str]] = {
    "init": "find agents and providers, and write config.toml",
    "demo": "run the whole pipeline in a throw-away home, without a key or a network",
    "run": "run the daemon in the foreground",
    "service": "install memoryd as a service of your session; its status, restart, log, uninstall",
    "import": "bring in what Codex or Claude Code have learned by themselves; nothing is sent",
    "export": "write out what was learned, as files and JSON lines",
    "sync": "make one full pass: discover, extract what is due, consolidate if dirty",
    "status": "say what it is doing, what waits and until when, spend and health",
    "usage": "say what models were asked for, by day, job or model, and what it took",
    "doctor": "test configuration, provider and ground, each with its remedy",
    "explain": "say of one session whether it is eligible, and what was taken from it",
    "jobs": "list jobs, show the history of one, try one again",
    "sessions": "list sessions, and say which are remembered",
    "why": "say of a statement of the memory since when it stands, and from which sessions it comes",
    "history": "list what changed in the memory, by whom and at what cost; show one change",
    "undo": "take the last changes of the memory back",
    "review": "look at results that wait for your word, accept or reject them",
    "note": "write down what the memory should say, for the next consolidation to take in",
    "forget": "forget sessions and what only they support, or ask by a note that a text be forgotten",
    "reset": "forget everything, and learn only from what comes after",
    "recall": "print exactly what an agent is given at the start of a session",
    "hook": "answer an agent's hook; what connected agents call",
    "search": "find what the memory holds on a question, or the lines in which texts stand",
    "read": "show numbered lines of a file of the memory",
    "list": "list what a folder of the memory holds",
    "mcp": "give agents the memory over the Model Context Protocol; what connected agents start",
    "memories": "list what is remembered: what is used, what never was, and what will become of it",
    "connect": "give one agent its memory: codex, claude, opencode, gemini, qwen or copilot",
    "disconnect": "take one agent's connection out of its settings again",
    "config": "show or check the settings",
    "completion": "print the script that completes commands and options in bash, zsh or fish",
}


class Command(Protocol):
    """What a module in memoryd.control.commands offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the entry point of the `memoryd` script."""
    words = list(sys.argv[1:] if argv is None else argv)
    if HOOK in words[:1] or HOOK in words[2:3]:
        return _hook(words)
    name = next((word for word in words if word in COMMANDS), "")
    try:
        with guarded_stdout():
            code = _dispatch(words)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("memoryd: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`memoryd jobs | head`): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemorydError as error:
        print(f"memoryd: {spelled_out(error.told())}", file=sys.stderr)
        return _exit_code(name, error)
    except Exception as error:  # noqa: BLE001 -- the command line's boundary: a fault of ours is one line as well
        if isinstance(error, UnicodeEncodeError) and (odd := [word for word in words if not _is_text(word)]):
            print(f"memoryd: {odd[0]!r} holds bytes that are no text: nothing is called so", file=sys.stderr)
            return UsageError.exit_code
        place = _place(error)
        said = spelled_out(f"{type(error).__name__}: {error}")
        print(f"memoryd: a fault in memoryd itself: {said} (at {place})", file=sys.stderr)
        return 1
    return code


def _is_text(word: str) -> bool:
    """Say whether a word holds no byte that the system's encoding does not know (PEP 383)."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)


def _hook(words: list[str]) -> int:
    try:
        _dispatch(words)
    except SystemExit as ended:
        if not ended.code:
            raise  # it was asked for help
    except Exception:  # noqa: BLE001, S110 -- it fails open
        pass
    return 0


def _dispatch(words: list[str]) -> int:
    leading, rest = _split_leading(words)
    if not rest or rest[0] in {"-h", "--help", "help"}:
        print(_overview())
        return 0 if rest else UsageError.exit_code
    if rest[0] in {"-V", "--version"}:
        print(f"memoryd {importlib.metadata.version('memoryd')}")
        return 0
    name = rest[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean `memoryd {near[0]}`?" if near else "`memoryd --help` lists the commands"
        raise UsageError(f"there is no command {name!r}", remedy=hint)
    return run_command(name, [*leading, *rest[1:]])


def run_command(name: str, words: Sequence[str]) -> int:
    """Run the command `name` with the words that follow it, and return its exit code.

    Raises SystemExit as argparse does (words that are not understood, `--help`), and what the command raises.
    """
    command = load(name)
    return command.run(parsed(parser_of(name, command), words))


def parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Read the words of a command; raises SystemExit as argparse does."""
    return parser.parse_args(words) if _is_in_order(parser, words) else parser.parse_intermixed_args(words)


def _is_in_order(parser: argparse.ArgumentParser, words: Sequence[str]) -> bool:
    """Tell whether the place of a word counts: behind `--`, behind an action with options of its own, in a rest.

    Elsewhere options may stand between the words: left to itself, argparse gives `jobs show --json KEY` no key.
    """
    of_place = {argparse.PARSER, argparse.REMAINDER}
    return "--" in words or any(each.nargs in of_place for each in parser._actions)  # noqa: SLF001 - as in completing


def load(name: str) -> Command:
    """Import the module of a command; one that is called like a word of Python's ends in an underscore."""
    module = f"{name}_" if keyword.iskeyword(name) else name
    with _kept_out(*UNUSED):
        return cast("Command", importlib.import_module(f"memoryd.control.commands.{module}"))


def parser_of(name: str, command: Command) -> argparse.ArgumentParser:
    """Return what reads the words of a command."""
    page = PAGES[name]
    parser = argparse.ArgumentParser(
        prog=f"memoryd {name}",
        description=description(COMMANDS[name], page),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _take_home(parser, default=None)
    command.configure(parser)
    for action in parser._actions:  # noqa: SLF001 - as in completing
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for below in action.choices.values():
                _take_home(below, default=argparse.SUPPRESS)  # else it would undo what stands before the action
    parser.epilog = "\n\n".join(part for part in (parser.epilog, page.epilog()) if part)
    return parser


def _take_home(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    meaning = "memoryd's folder (else MEMORYD_HOME, else ~/.memoryd)"
    parser.add_argument("--home", metavar="DIR", type=Path, default=default, help=meaning)


@contextmanager
def _kept_out(*packages: str) -> Iterator[None]:
    """Let these packages look as if they were not installed while others are imported; later they can be had again."""
    modules = cast("dict[str, object]", sys.modules)
    out = [package for package in packages if package not in modules]
    modules.update(dict.fromkeys(out))
    try:
        yield
    finally:
        for package in out:
            modules.pop(package, None)


def _split_leading(words: list[str]) -> tuple[list[str], list[str]]:
    """`memoryd --home DIR status` is `memoryd status --home DIR`."""
    if words[:1] == ["--home"] and len(words) > 1:
        return words[:2], words[2:]
    if words and words[0].startswith("--home="):
        return words[:1], words[1:]
    return [], words


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = ["memoryd gives coding agents a memory.", "", "usage: memoryd COMMAND [--home DIR] ..."]
    for title, names in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}  {COMMANDS[name]}" for name in names)]
    return "\n".join([*lines, "", "`memoryd COMMAND --help` says more, with examples. First look: `memoryd demo`"])


def _exit_code(command: str, error: MemorydError) -> int:
    if command == "run" and isinstance(error, ConfigError | LedgerTooNew):
        return EXIT_CONFIGURATION
    if command == "sync" and isinstance(error, DiskFull):
        return EXIT_LEFT_UNDONE
    return error.exit_code


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}" if trace else "unknown place"


if __name__ == "__main__":
    sys.exit(main())
