"""The agents that can be connected: one module each, in one table."""

from typing import Final

from memoryd.control.connecting import claude, codex, copilot, gemini, opencode, qwen
from memoryd.control.connecting.target import Target

TARGETS: Final[dict[str, Target]] = {
    "codex": codex,
    "claude": claude,
    "opencode": opencode,
    "gemini": gemini,
    "qwen": qwen,
    "copilot": copilot,
}
