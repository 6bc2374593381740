"""A memory folder with its index, for tests of search: files are written, the index follows when it is told to."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoryd.ledger import queries
from memoryd.ledger import search as index
from memoryd.recall.entries import MADE_AS
from memoryd.recall.search import Hit, Question, search
from memoryd.recall.search_refresh import make_change, outdated, states_of
from memoryd.workspace.layout import Home, prepare

NOW = 1_796_000_000.0
DAY = 86_400
THREAD = "0194f5a6-89ab-7cde-8123-456789abcdef"


@dataclass
class SearchFolder:
    """What is written into `home.memories` is found once `refresh` was called."""

    home: Home
    conn: sqlite3.Connection
    clean: Callable[[str], str] = str
    made_as: str = MADE_AS

    def write(self, path: str, text: str) -> None:
        file = self.home.memories / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def refresh(self) -> int | None:
        """Return how many entries changed, None: no file had to be looked at."""
        known = index.known_files(self.conn, made_as=self.made_as)
        wanted = outdated(states_of(self.home), known, index.indexed_paths(self.conn))
        if not wanted.paths:
            return None
        change = make_change(self.home, wanted, index.valid_from(self.conn), self.clean)
        return index.replace_entries(self.conn, change, made_as=self.made_as)

    def find(self, words: str, **asked: Any) -> tuple[Hit, ...]:
        return search(self.conn, self.home, Question(words, **asked), now=NOW)

    def texts(self, words: str, **asked: Any) -> list[str]:
        return [hit.text for hit in self.find(words, **asked)]


@contextmanager
def a_search_folder(folder: Path) -> Iterator[SearchFolder]:
    home = Home(folder / "home")
    prepare(home)
    conn = sqlite3.connect(":memory:", isolation_level=None)
    try:
        conn.executescript(queries.read("schema.sql"))
        yield SearchFolder(home, conn)
    finally:
        conn.close()


def a_group(
    *bullets: str, cwd: str = "/src/shop", title: str = "shop", keywords: str = "deploy", files: str = ""
) -> str:
    """A task group with one task; bullets get its reference and a mark unless they have one."""
    rows = "\n".join(f"- {bullet}" if bullet.endswith("]") else f"- {bullet} [Task 1] [stated]" for bullet in bullets)
    return (
        f"# Task Group: {title}\nscope: work on {title}\napplies_to: cwd={cwd}; reuse_rule=there\n\n"
        f"## Task 1: look after the {title}, success\n\n### rollout_summary_files\n\n"
        f"- rollout_summaries/{files or 'a.md'} (cwd={cwd})\n\n### keywords\n\n- {keywords}\n\n"
        f"## User preferences\n\n{rows}\n"
    )


def a_summary(body: str, *, cwd: str = "/src/shop", thread: str = THREAD, updated_at: str = "2026-11-20") -> str:
    return (
        f"thread_id: {thread}\nagent: codex\nupdated_at: {updated_at}T10:00:00+00:00\nrollout_path: /x.jsonl\n"
        f"cwd: {cwd}\n\n{body}\n"
    )
