"""What a golden file holds of one recorded session, and the few things that every extractor needs."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INTERACTIVE, NONINTERACTIVE, SUBAGENT, MEMORY_RUN = "interactive", "noninteractive", "subagent", "memory_run"
EMPTY = "empty"  # a file in which nobody says anything: no session at all

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass
class Golden:
    """One recorded session, as a person who looks at the file would describe it.

    `file` is the end of the path that names it: a file name, for Copilot with its folder, in a store the session's id.
    `human` is what the person said in this session and in no older one, word for word; `copied_human` is what it
    repeats of the older session `copied_from`. `tool_calls` counts those of the session's own part.
    """

    agent: str
    recording: str
    file: str
    id: str
    kind: str
    cwd: str | None = None
    branch: str | None = None
    parent: str | None = None
    human: list[str] = field(default_factory=list)
    tool_calls: int = 0
    copied_from: str | None = None
    copied_human: list[str] = field(default_factory=list)


def thread_id(agent: str, text: str) -> str:
    """Spell an id as memory does: a UUID bare, any other with the agent's name before it."""
    return text.lower() if _UUID.fullmatch(text) else f"{agent}:{text}"


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file; recorded files are whole, so a bad line is an error here."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
