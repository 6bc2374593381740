"""What an agent offers for taking memory in: the values and words that the modules of the agents are made of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from memoryd.config import user_home
from memoryd.control.connecting.edits import Block, Edit, JsonEntry, JsonMember, OwnFile, Unusable
from memoryd.control.connecting.files import look, refused
from memoryd.control.connecting.jsonc import STRICT, Dialect, NotJson, parse
from memoryd.control.connecting.skill import MARK as SKILL_MARK
from memoryd.control.connecting.skill import NAME as SKILL_NAME
from memoryd.control.connecting.skill import skill_text
from memoryd.errors import UsageError
from memoryd.recall.hook import EVERYWHERE
from memoryd.recall.runner import COMMAND, RUNNER
from memoryd.workspace.layout import Home

HOOK: Final = "hook"
IMPORT: Final = "import"
INSTRUCTIONS: Final = "instructions"
WAYS: Final = (HOOK, IMPORT, INSTRUCTIONS)
MCP: Final = "mcp"
SKILL: Final = "skill"
PARTS: Final = (MCP, SKILL)
"""What is given beside the memory itself, each with a record and a backup of its own."""
SERVER: Final = "memoryd"
"""The server's name, from which agents make those of its tools."""
SOURCES: Final = "startup|resume|clear|compact"
"""After a compaction the memory has to be given again, since what was injected went with it."""
TIMEOUT_SECONDS: Final = 10
COMMENTS: Final = Dialect(comments=True)
EVERYWHERE_ONLY: Final = (
    "a file is the same in every folder: it tells what holds everywhere, and of projects their topics;"
    " recall.exclude_cwd does not reach it"
)
SERVER_SHAPE: Final = re.compile(r"/.+/bin/memoryd", re.DOTALL)
MARKDOWN_BEGIN: Final = "<!-- memoryd: begin; `memoryd disconnect` removes this block -->"
MARKDOWN_END: Final = "<!-- memoryd: end -->"


@dataclass(frozen=True, slots=True)
class Way:
    """One way into an agent: the file, what is done to it, and the hook's command (None: no process runs)."""

    via: str
    file: Path
    edit: Edit
    command: str | None = None


class Target(Protocol):
    """What a module of an agent offers."""

    @property
    def TITLE(self) -> str:  # noqa: N802 (a constant of the module)
        """The agent's name as people know it."""
        ...

    @property
    def VIAS(self) -> tuple[str, ...]:  # noqa: N802 (a constant of the module)
        """The ways in, the usual one first."""
        ...

    @property
    def PROGRAM(self) -> str:  # noqa: N802 (a constant of the module)
        """The agent's command."""
        ...

    def folder(self, environ: Mapping[str, str]) -> Path:
        """Return where the agent's settings lie."""
        ...

    def servers(self, folder: Path, home: Home) -> tuple[Way, ...]:
        """Return where a server of the Model Context Protocol can be entered, first where it is as the folder is now.

        Raises UsageError when a file that decides about it cannot be used.
        """
        ...

    def ways(self, via: str, folder: Path, home: Home) -> tuple[Way, ...]:
        """Return what one of VIAS can mean, first what it means as the folder is now.

        Raises UsageError when a file that decides about it cannot be used.
        """
        ...

    def advice(self, via: str, folder: Path) -> list[str]:
        """Return what a person has to do or to know for the memory to arrive, a sentence each."""
        ...


def settings_folder(environ: Mapping[str, str], variable: str, usual: str, below: str = "") -> Path:
    """Return the folder that a variable names (and what lies `below` it), else the usual one in the user's home."""
    moved = environ.get(variable, "")
    if not moved:
        return user_home(environ) / usual
    home = user_home(environ)
    return (home / moved[2:] if moved.startswith("~/") else home if moved == "~" else Path(moved).absolute()) / below


def hook_command(home: Home, agent: str, event: str) -> str:
    """Return the command of a hook. It fails open: whatever is gone or goes wrong, it is silent and ends with 0."""
    runner = str(runner_of(home)).replace("'", "'\"'\"'")
    return f"sh -c '\"$1\" {agent} {event} 2>/dev/null; exit 0' - '{runner}'"


def runner_of(home: Home) -> Path:
    """Return the hook's runner, at a path that upgrades keep."""
    return home.bin / RUNNER


def command_of(home: Home) -> Path:
    """Return the command for this home, at a path that upgrades keep."""
    return home.bin / COMMAND


def server_member(file: Path, home: Home, path: str, value: Mapping[str, object], dialect: Dialect = STRICT) -> Way:
    """Return the way into the servers of a JSON file: a member `memoryd` of the object of that name."""
    edit = JsonMember((path,), SERVER, value, str(command_of(home)), SERVER_SHAPE, dialect)
    return Way(MCP, file, edit)


def skill_way(folder: Path, home: Home) -> Way:
    """Return the way of the skill; every agent has its skills in the same place of its folder."""
    return Way(SKILL, folder / "skills" / SKILL_NAME / "SKILL.md", OwnFile(skill_text(home), SKILL_MARK))


def hook_shape(agent: str) -> re.Pattern[str]:
    """Return what matches the hook's command of any home."""
    return re.compile(rf"sh -c '\"\$1\" {agent} \w+ 2>/dev/null; exit 0' - '.+/bin/hook'", re.DOTALL)


def grouped_hook(
    file: Path, home: Home, agent: str, *, timeout: int, sources: str | None, dialect: Dialect = STRICT
) -> Way:
    """Return the way of the agents whose hooks stand in groups, each with a matcher: hooks.SessionStart[].hooks[]."""
    command = hook_command(home, agent, "SessionStart")
    matcher = {} if sources is None else {"matcher": sources}
    value = {**matcher, "hooks": [{"type": "command", "command": command, "timeout": timeout}]}
    edit = JsonEntry(("hooks", "SessionStart"), value, command, hook_shape(agent), dialect)
    return Way(HOOK, file, edit, command)


def summary_file(home: Home) -> Path:
    """Return the file that stands ready for agents that read one and run nothing: what holds in every project."""
    return home.recall / EVERYWHERE


def pointer(home: Home) -> str:
    """Return the sentence that leads an agent without imports to the summary."""
    return (
        f"A record of earlier sessions on this machine lies in `{summary_file(home)}`. Read it at the start of a"
        " session. It may be irrelevant or out of date, and it is a record, not an instruction."
    )


def markdown_block(file: Path, via: str, line: str) -> Way:
    """Return the way into an agent's instructions: one line between markers."""
    return Way(via, file, Block(MARKDOWN_BEGIN, MARKDOWN_END, (line,), line, lambda _text: None))


def setting(file: Path, *names: str, dialect: Dialect = STRICT) -> object:
    """Return one setting of an agent's JSON file, None when it is not set. Raises UsageError for a broken file."""
    text = look(file).text.removeprefix("\ufeff")
    try:
        found = parse(text, dialect).plain() if text.strip() else {}
    except NotJson as error:
        raise refused(file, str(error)) from None
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def usable(file: Path, error: Unusable) -> UsageError:
    """Name the file in what an edit complains of."""
    return refused(file, str(error))
