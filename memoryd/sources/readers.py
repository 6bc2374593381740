"""The table of readers: one entry per agent whose sessions can be read."""

from memoryd.sources.codex import CodexReader
from memoryd.sources.gemini import GeminiReader
from memoryd.sources.reader import SessionReader

READERS: dict[str, SessionReader] = {
    "codex": CodexReader(),
    "gemini": GeminiReader(),
}
