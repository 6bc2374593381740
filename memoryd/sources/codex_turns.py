"""Which stretches of a Codex session do not count: turns rolled back, and rows that a fork copied from its parent."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec import Raw

from memoryd.sources.codex_messages import parse_message, speaks_human
from memoryd.sources.codex_records import RESPONSE_ITEM, Record, SessionMeta, decode_record
from memoryd.sources.identity import uuid_time
from memoryd.sources.jsonl import Line
from memoryd.sources.rawjson import as_fields, as_int, as_text

ROLLED_BACK = "thread_rolled_back"
TURN_STARTS = frozenset({"turn_context", "event_msg"})
BURST_GAP_SECONDS = 1.0  # a fork writes its copies in one go; nobody types that fast


class Withdrawn:
    """The line ranges that rollbacks took out of a session; ordered, apart, asked for by line index."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        turns: list[int] = []
        ranges: list[tuple[int, int]] = []
        for index, num_turns in _turn_marks(lines):
            if num_turns is None:
                turns.append(index)
            elif turns and num_turns > 0:
                start = turns[max(0, len(turns) - num_turns)]
                del turns[-num_turns:]
                while ranges and ranges[-1][0] >= start:
                    ranges.pop()
                ranges.append((start, index))
        self._starts = [start for start, _ in ranges]
        self._ends = [end for _, end in ranges]
        self.has_any = bool(ranges)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self._starts, index) - 1
        return position >= 0 and index < self._ends[position]


@dataclass(slots=True)
class CopiedRows:
    """Follows a session and says which of its rows were copied from another one.

    Old forks and sub-agents repeat the parent's session_meta and rows after their own. Turn ids carry the time at
    which the turn began: the first that is not older than the thread's own id begins the fork's own part. Where turns
    have no ids, the first pause in the writing does.
    """

    own: SessionMeta
    own_id_time: float | None
    active: bool = False
    _saw_turn_ids: bool = False
    _last_at: float | None = None

    @classmethod
    def of(cls, own: SessionMeta) -> "CopiedRows":
        """Start with a thread's own session_meta."""
        return cls(own, uuid_time(own.thread_id))

    def see_meta(self, meta: SessionMeta) -> None:
        """Take in a later session_meta; another thread's begins a copied stretch."""
        if meta.thread_id != self.own.thread_id and not self.own.has_history_base:
            self.active = True

    @property
    def may_cover(self) -> bool:
        """Whether any row from here on to the next session_meta may be a copy."""
        return self.active or self.own.history_starts_at is not None

    def pass_by(self, at: float | None) -> None:
        """Take note of when the last row was written that was no copy and was not asked about."""
        self._last_at = at

    def covers(self, record: Record) -> bool:
        """Say whether this record is a copy; call it once for each, in order."""
        starts_at = self.own.history_starts_at
        if starts_at is not None and record.ordinal < starts_at:
            return True
        if self.active and self._begins_own_part(record):
            self.active = False
        self._last_at = record.at
        return self.active

    def _begins_own_part(self, record: Record) -> bool:
        turn_time = uuid_time(_turn_id(record)) if record.type in TURN_STARTS else None
        if turn_time is not None and self.own_id_time is not None:
            self._saw_turn_ids = True
            return turn_time >= self.own_id_time
        if self._saw_turn_ids or record.at is None or self._last_at is None:
            return False
        is_after_fork = self.own.started_at is None or record.at >= self.own.started_at
        return is_after_fork and record.at - self._last_at > BURST_GAP_SECONDS


def turn_event(payload: dict[str, Raw]) -> str:
    """Return the type of an event."""
    return as_text(payload.get("type")) or ""


def _turn_marks(lines: Iterable[Line]) -> Iterator[tuple[int, int | None]]:
    """Yield the line of each human turn with None, and of each rollback with its number of turns."""
    for line in lines:
        record = decode_record(line)
        if record is None:
            continue
        if record.type == RESPONSE_ITEM:
            fields = as_fields(record.payload)
            if as_text(fields.get("type")) == "message" and speaks_human(parse_message(fields)):
                yield line.index, None
        elif record.type == "event_msg":
            fields = as_fields(record.payload)
            if turn_event(fields) == ROLLED_BACK:
                num_turns = as_int(fields.get("num_turns"))
                yield line.index, 1 if num_turns is None else num_turns


def _turn_id(record: Record) -> str | None:
    fields = as_fields(record.payload)
    is_start = record.type != "event_msg" or turn_event(fields) in ("task_started", "turn_started")
    return as_text(fields.get("turn_id")) if is_start else None
