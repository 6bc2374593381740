"""What Codex remembers by itself: the outputs of its stage 1, and where its memory folders lie.

Two generations exist (codex-rs/state and codex-rs/memories of 0.171): memories_1.sqlite with memories/, whose outputs
have a raw memory and whose folder has a MEMORY.md; and memories_v2_1.sqlite with memories_v2/, which have neither. The
tables are the same. Before 2026 they stood in state_N.sqlite, which still says where a thread was recorded.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from memoryd.errors import SourceError
from memoryd.sources.identity import canonical_thread_id, is_usable_id
from memoryd.sources.items import MemoryMode
from memoryd.sources.stores import Database, PrivateCopies, Row, load_statements, text_of

T = TypeVar("T")

AGENT: Final = "codex"
FOLDERS: Final = ("memories", "memories_v2")
"""Of both generations; the first has more to say."""
MAX_TEXT_CHARACTERS: Final = 1_000_000
MAX_OUTPUTS: Final = 20_000
PAGE: Final = 64
IDS_PER_QUESTION: Final = 500
MAX_INSTANT: Final = 253_402_300_799
"""The last second of the year 9999, in epoch seconds."""

_STORES: Final = (re.compile(r"memories_(\d+)\.sqlite"), re.compile(r"memories_v2_(\d+)\.sqlite"))
_STATE: Final = re.compile(r"state_(\d+)\.sqlite")
_STATEMENTS: Final = load_statements("codex_memories")


class Unfit(StrEnum):
    """Why a row of Codex's is not taken."""

    ID = "its thread id is none"
    TIME = "its times are none"
    SIZE = "its text is too large"
    EMPTY = "it remembers nothing"


@dataclass(frozen=True, slots=True)
class CodexOutput:
    """One row of stage1_outputs, as it stands there; times are epoch seconds."""

    thread_id: str
    source_updated_at: int
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    generated_at: int
    usage_count: int | None
    last_usage: int | None
    is_consolidated: bool
    """Codex's folder was made of the row as it is."""


@dataclass(frozen=True, slots=True)
class CodexThread:
    """Where a thread was recorded and what Codex says of it; None where it does not."""

    rollout_path: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    memory_mode: MemoryMode = MemoryMode.ENABLED


@dataclass(slots=True)
class CodexMemory:
    """Everything that the databases of one Codex home hold of its memory.

    `stores` are those that were read; `unreadable` has why one was not, `unfit` the rows that were not taken.
    """

    stores: list[Path] = field(default_factory=list)
    outputs: dict[str, CodexOutput] = field(default_factory=dict)
    threads: dict[str, CodexThread] = field(default_factory=dict)
    unreadable: dict[Path, str] = field(default_factory=dict)
    unfit: list[tuple[str, Unfit]] = field(default_factory=list)


def read_codex_memory(home: Path) -> CodexMemory:
    """Read the stores of a Codex home (what CODEX_HOME names); nothing is written beside them.

    Of a thread that both generations remember, the row with a raw memory is taken, else the later one. A store that
    cannot be read is named, and raises nothing.
    """
    memory, copies = CodexMemory(), PrivateCopies()
    states = _newest(home, _STATE)
    for path in [store for pattern in _STORES for store in _newest(home, pattern)] or states:
        for each in _asked(memory, copies, path, _outputs) or []:
            if isinstance(each, CodexOutput):
                known = memory.outputs.get(each.thread_id)
                if known is None or _rank(each) > _rank(known):
                    memory.outputs[each.thread_id] = each
            else:
                memory.unfit.append(each)
    for path in states:
        known_threads = _asked(memory, copies, path, lambda database: _threads(database, list(memory.outputs)))
        memory.threads |= known_threads or {}
    for path in memory.stores:
        memory.unreadable.pop(path, None)  # a state of today has no outputs, and is asked for its threads alone
    return memory


def _rank(output: CodexOutput) -> tuple[bool, int]:
    return bool(output.raw_memory.strip()), output.source_updated_at


def _newest(home: Path, pattern: re.Pattern[str]) -> list[Path]:
    """Return the file of the highest number whose name fits, as a list of one or none."""
    try:
        named = [(int(match[1]), path) for path in home.iterdir() if (match := pattern.fullmatch(path.name))]
    except OSError:
        return []
    return [max(named)[1]] if named else []


def _asked(memory: CodexMemory, copies: PrivateCopies, path: Path, ask: Callable[[Database], T]) -> T | None:
    """Ask one store; what is wrong with it is noted."""
    try:
        with closing(Database(path, copies, statements=_STATEMENTS, maker="Codex")) as database:
            answer = ask(database)
    except SourceError as error:
        memory.unreadable[path] = error.message
        return None
    memory.stores += [path] if path not in memory.stores else []
    return answer


def _outputs(database: Database) -> list[CodexOutput | tuple[str, Unfit]]:
    return [_output(row) for row in _rows(database)]


def _rows(database: Database) -> Iterator[Row]:
    after, seen = "", 0
    while seen < MAX_OUTPUTS:
        parameters = {"after": after, "page": PAGE, "most_characters": MAX_TEXT_CHARACTERS}
        page = database.rows("list_outputs", parameters)
        yield from page
        last = text_of(page[-1][0]) if page else None
        if len(page) < PAGE or last is None or last <= after:
            return
        after, seen = last, seen + len(page)


def _output(row: Row) -> CodexOutput | tuple[str, Unfit]:
    thread = text_of(row[0])
    if not is_usable_id(thread):
        return repr(thread)[:80], Unfit.ID
    thread_id = canonical_thread_id(AGENT, thread or "")
    updated_at, generated_at = _instant(row[1]), _instant(row[5])
    if updated_at is None or generated_at is None:
        return thread_id, Unfit.TIME
    raw_memory, summary = text_of(row[2]), text_of(row[3])
    if raw_memory is None or summary is None:
        return thread_id, Unfit.SIZE
    if not raw_memory.strip() and not summary.strip():
        return thread_id, Unfit.EMPTY
    return CodexOutput(
        thread_id=thread_id,
        source_updated_at=updated_at,
        raw_memory=raw_memory,
        rollout_summary=summary,
        rollout_slug=text_of(row[4]),
        generated_at=generated_at,
        usage_count=row[6] if isinstance(row[6], int) and 0 <= row[6] <= MAX_INSTANT else None,
        last_usage=_instant(row[7]),
        is_consolidated=row[8] == 1 and row[9] == updated_at,
    )


def _instant(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= MAX_INSTANT else None


def _threads(database: Database, ids: list[str]) -> dict[str, CodexThread]:
    found: dict[str, CodexThread] = {}
    for start in range(0, len(ids), IDS_PER_QUESTION):
        wanted = {"ids": json.dumps(ids[start : start + IDS_PER_QUESTION])}
        modes = _modes(database, wanted)
        for name, path, cwd, branch in database.rows("list_threads", wanted):
            thread_id = text_of(name) or ""
            mode = modes.get(thread_id, MemoryMode.ENABLED)
            found[thread_id] = CodexThread(text_of(path), text_of(cwd) or None, text_of(branch), mode)
    return found


def _modes(database: Database, wanted: Mapping[str, object]) -> dict[str, MemoryMode]:
    try:
        rows = database.rows("list_modes", wanted)
    except SourceError:
        return {}
    return {text_of(name) or "": _mode(text_of(mode)) for name, mode in rows}


def _mode(word: str | None) -> MemoryMode:
    """Read a mode; a word that nobody knows counts as disabled, since the doubt is about privacy."""
    try:
        return MemoryMode(word or "")
    except ValueError:
        return MemoryMode.DISABLED
