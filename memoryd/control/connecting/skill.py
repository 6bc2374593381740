"""The skill that teaches agents the commands: SKILL.md as `connect` writes it, for agents without the MCP server."""

from importlib.resources import files
from typing import Final

from memoryd.recall.runner import COMMAND
from memoryd.workspace.layout import Home

NAME: Final = "memoryd"
MARK: Final = "<!-- memoryd: this file is written by `memoryd connect` and removed by `memoryd disconnect` -->"
_TEXT: Final = "skill.md"


def skill_text(home: Home) -> str:
    """Return the whole file; it names the command for this home."""
    text = files("memoryd.control.connecting").joinpath(_TEXT).read_text(encoding="utf-8")
    return text.replace("{command}", str(home.bin / COMMAND))
