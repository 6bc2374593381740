"""The table of readers: one entry per agent whose sessions can be read."""

from memoryd.sources.claude import ClaudeReader
from memoryd.sources.codex import CodexReader
from memoryd.sources.copilot import CopilotReader
from memoryd.sources.gemini import GeminiReader
from memoryd.sources.generic import GenericReader
from memoryd.sources.opencode import OpenCodeReader
from memoryd.sources.qwen import QwenReader
from memoryd.sources.reader import SessionReader

READERS: dict[str, SessionReader] = {
    "codex": CodexReader(),
    "claude": ClaudeReader(),
    "opencode": OpenCodeReader(),
    "gemini": GeminiReader(),
    "qwen": QwenReader(),
    "copilot": CopilotReader(),
    "generic": GenericReader(),
}
