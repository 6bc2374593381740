"""Rows of a Claude Code session that do not count: branches a person rewound, and rows that a fork copied.

A rewind writes nothing of its own: the next prompt names an earlier row as its parent, and what the file holds between
the two is an abandoned branch. Only prompts tell of rewinds. Results of parallel calls, hooks and notifications also
share parents, and are no branches.
"""

import hashlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.claude_records import LAST_PROMPT, SYSTEM, USER, Record, records
from memoryd.sources.items import SessionFile
from memoryd.sources.jsonl import Line, SessionBytes

MAX_REMEMBERED_ROWS = 200_000  # of a longer session the oldest rows are forgotten: a rewind to them goes unnoticed
FILTER_BYTES = 4 * 1024 * 1024  # of 400,000 rows one in a million is taken for a copy
_FILTER_PROBES, _PROBE_BITS = 5, 25
_ROW = b'{"parentUuid":'  # how the program begins every row that has an id
_ROW_BYTES = len(_ROW) + 60  # the parent's id in quotes, and the name of the next member
_ROOTS = (b'"logicalParentUuid"', b'"isSidechain":true')  # what follows where a compaction or a sub-agent has no parent
_HUMAN = frozenset({"", "human"})


class Abandoned:
    """The lines of a session that lie on branches a person rewound; asked for by line index."""

    def __init__(self, lines: Iterable[tuple[int, int]] = ()) -> None:
        ordered = sorted(lines)
        self._starts = [start for start, _ in ordered]
        self._ends = [end for _, end in ordered]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self._starts, index) - 1
        return position >= 0 and index < self._ends[position]


class CopiedRows:
    """The rows of older sessions, in a fixed amount of memory whatever their size (a Bloom filter over their ids)."""

    def __init__(self, relatives: Sequence[SessionFile] = ()) -> None:
        self._bits = bytearray(FILTER_BYTES) if relatives else bytearray()
        for file in relatives:
            try:
                self._add_all(file)
            except (SessionVanished, SessionUnreadable):
                continue  # whose rows they are cannot be told any more

    def __contains__(self, row_id: str | None) -> bool:
        if not self._bits or row_id is None:
            return False
        return all(self._bits[probe >> 3] & (1 << (probe & 7)) for probe in _probes(row_id))

    @property
    def size_bytes(self) -> int:
        """How much memory the ids take."""
        return len(self._bits)

    def _add_all(self, file: SessionFile) -> None:
        with SessionBytes(file.path) as source:
            for record in records(source.lines()):
                if record.uuid is not None:
                    for probe in _probes(record.uuid):
                        self._bits[probe >> 3] |= 1 << (probe & 7)


def find_abandoned(source: SessionBytes) -> Abandoned:
    """Find the abandoned branches of a session.

    A look at the bytes finds the rows that have siblings; only where two of them are prompts the tree is built.
    """
    shared = _shared_parents(source.beginnings(_ROW_BYTES))
    if shared is not None and not (shared and _are_prompts(source.lines(), shared)):
        return Abandoned()
    turns = _Turns()
    last = 0
    for record in records(source.lines()):
        turns.see(record)
        last = record.ordinal
    return Abandoned(turns.abandoned(last + 1))


def _shared_parents(beginnings: Iterable[bytes]) -> set[bytes] | None:
    """Return the values of parentUuid, as they are written, that more than one row has; nothing is decoded.

    None where no row begins with its parent, as all that the program writes do: then this look tells nothing.
    """
    seen: set[bytes] = set()
    shared: set[bytes] = set()
    is_told = False
    for beginning in beginnings:
        if beginning.startswith(_ROW):
            is_told = True
            parent, _, rest = beginning[len(_ROW) :].partition(b",")
            if not (parent == b"null" and rest.startswith(_ROOTS)):
                (shared if parent in seen else seen).add(parent)
                if len(seen) > MAX_REMEMBERED_ROWS:
                    seen.clear()
    return shared if is_told else None


def _are_prompts(lines: Iterable[Line], shared: set[bytes]) -> bool:
    """Say whether two rows that may begin a turn have one of these parents in common."""
    parents: set[str | None] = set()
    for record in records(_with_parent(lines, shared)):
        if not _leads_a_branch(record) or (record.parent is None and not _begins_turn(record)):
            continue
        if record.parent in parents:
            return True
        parents.add(record.parent)
    return False


def _with_parent(lines: Iterable[Line], shared: set[bytes]) -> Iterator[Line]:
    """Yield the lines that begin with one of these parents."""
    for line in lines:
        if line.data and line.data.startswith(_ROW) and line.data[len(_ROW) : _ROW_BYTES].partition(b",")[0] in shared:
            yield line


def _leads_a_branch(record: Record) -> bool:
    """Say whether the first row after a rewind may be of this sort: a prompt, or what a command writes before it."""
    if record.is_side_chain:
        return False
    return record.type == SYSTEM or (record.type == USER and record.speaker in _HUMAN and not _has_result(record))


def _begins_turn(record: Record) -> bool:
    is_prompt = record.type == USER and not record.is_meta and not record.is_compaction
    return is_prompt and _leads_a_branch(record)


def _has_result(record: Record) -> bool:
    return b'"tool_result"' in bytes(record.row.message)


class _Turns:
    """The tree of a session's turns; a turn is a prompt and what follows it in the file up to the next prompt."""

    def __init__(self) -> None:
        self._starts = [0]
        self._parents = [-1]
        self._roots: set[int] = set()  # turns that a prompt without a parent began, in the middle of a session
        self._turn_of: dict[str, int] = {}
        self._remembered: deque[str] = deque()  # the same rows by age: to look for a dict's first key takes ever longer
        self._marked: str | None = None

    def see(self, record: Record) -> None:
        """Take in the next row of the session."""
        if record.type == LAST_PROMPT and record.leaf:
            self._marked = record.leaf
        own, parent = record.uuid, record.parent
        if own is None or record.is_side_chain:
            return
        if own in self._turn_of:
            return  # written twice: it begins nothing
        current = len(self._starts) - 1
        if _leads_a_branch(record):
            current = self._turn_of.get(parent, current) if parent else current
            if _begins_turn(record):
                current = self._begin(record, current, has_parent=parent is not None)
        self._turn_of[own] = current
        self._remembered.append(own)
        if len(self._remembered) > MAX_REMEMBERED_ROWS:
            del self._turn_of[self._remembered.popleft()]

    def abandoned(self, end: int) -> Iterator[tuple[int, int]]:
        """Yield the first line, and the line after the last, of each turn that the last one does not build on."""
        turn = len(self._starts) - 1
        marked = self._turn_of.get(self._marked) if self._marked is not None else None
        active = {0}
        while turn > 0:
            active.add(turn)
            is_new_root = turn in self._roots and marked is not None and marked >= turn
            turn = 0 if is_new_root else self._parents[turn]
        for turn, start in enumerate(self._starts):
            if turn not in active:
                yield start, self._starts[turn + 1] if turn + 1 < len(self._starts) else end

    def _begin(self, record: Record, parent: int, *, has_parent: bool) -> int:
        turn = len(self._starts)
        self._starts.append(record.ordinal)
        self._parents.append(parent)
        # a rewind to before the first prompt; believed only when the program itself says that it goes on from there
        if not has_parent and turn > 1:
            self._roots.add(turn)
        return turn


def _probes(row_id: str) -> Iterator[int]:
    digest = int.from_bytes(hashlib.blake2b(row_id.encode("utf-8", "replace"), digest_size=16).digest(), "big")
    for _ in range(_FILTER_PROBES):
        yield digest & ((1 << _PROBE_BITS) - 1)
        digest >>= _PROBE_BITS
