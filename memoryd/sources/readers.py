"""The table of readers: one entry per agent whose sessions can be read."""

from memoryd.sources.codex import CodexReader
from memoryd.sources.reader import SessionReader

READERS: dict[str, SessionReader] = {"codex": CodexReader()}
