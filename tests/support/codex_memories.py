"""A home of Codex with a memory that the real program made (codex-cli 0.171.0), of one generation or both."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "fixtures" / "codex_memories"
FIRST, SECOND = "memories", "memories_v2"
THREADS = (
    "01a2282e-276f-7180-93f5-4996bcf466fb",
    "01a2282e-4b06-7450-8931-b1901add4349",
    "01a2283a-3e53-7823-8b9b-1e42038a5d1a",
)
RECORDED_AT = 1_796_000_600.0
"""A minute after the last of it was written."""


def a_codex_memory(home: Path, generations: Sequence[str] = (FIRST, SECOND)) -> Path:
    """Lay out a home: the folders as they are, the databases of what their dumps say."""
    home.mkdir(parents=True, exist_ok=True)
    for name in generations:
        shutil.copytree(RECORDED / name, home / name)
        restore(home / f"{name}_1.sqlite", (RECORDED / f"{name}_1.sql").read_text())
    restore(home / "state_5.sqlite", (RECORDED / "state_5.sql").read_text())
    return home


def restore(path: Path, dump: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump)


def execute(path: Path, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, parameters)


def rows_of(path: Path, columns: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(f"SELECT {columns} FROM stage1_outputs ORDER BY thread_id").fetchall()


def everything_below(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of every file: equal answers mean that nothing was written."""
    found = (path for path in sorted(root.rglob("*")) if not path.is_symlink())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}
