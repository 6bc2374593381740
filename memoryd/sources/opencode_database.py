"""What stands in OpenCode's database (from 1.2), in pages: each a statement of its own, so that no cursor is held."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, cast

from msgspec import Raw

from memoryd.errors import SessionVanished
from memoryd.sources.jsonl import MAX_LINE_BYTES
from memoryd.sources.opencode_records import Message, Part, SessionFacts, parse_message, session_facts
from memoryd.sources.stores import MAX_STEPS, Database, PrivateCopies, load_statements, number_of, text_of

BIG_ROW_BYTES = 96 * 1024  # such a row comes alone; no more than MAX_LINE_BYTES of it, as of a line
NAMES_PER_PAGE, MESSAGES_PER_PAGE, PARTS_PER_PAGE = 4096, 128, 256
MESSAGES_AHEAD = 64  # whose parts are fetched together
STATEMENTS: Final = load_statements("opencode")


def open_store(path: Path, copies: PrivateCopies, *, max_steps: int = MAX_STEPS) -> Database:
    """Return a store of OpenCode's; it is opened when it is first asked."""
    return Database(path, copies, statements=STATEMENTS, maker="OpenCode", max_steps=max_steps)


class DatabaseSession:
    """One session of a database; the database is closed by whoever opened it."""

    def __init__(self, database: Database, session_id: str) -> None:
        self._database = database
        self._session_id = session_id
        self._batch: list[str] = []
        self._ahead: dict[str, list[Part]] = {}  # by id of the message
        self._unfinished: str | None = None  # the message of which there may be more parts than those

    def facts(self) -> SessionFacts:
        """Return the session's row as it is now."""
        rows = self._database.rows("get_session", {"session_id": self._session_id})
        if not rows:
            raise SessionVanished(f"the session {self._session_id} is no longer in {self._database.path}")
        parent_id, directory, permission, revert, created, updated = rows[0]
        return session_facts(
            self._session_id,
            parent_id=text_of(parent_id),
            directory=text_of(directory),
            permission=_json(permission),
            revert=_json(revert),
            times=(created if isinstance(created, int) else None, updated if isinstance(updated, int) else None),
        )

    def row_count(self) -> int:
        """Count its messages and parts."""
        return number_of(self._database.rows("count_rows", {"session_id": self._session_id})[0][0])

    def messages(self) -> Iterator[Message | None]:
        """Yield its messages by time of creation and id, as the agent orders them."""
        after: tuple[object, object] = (-1, "")
        while True:
            page = self._database.rows(
                "list_messages",
                {
                    "session_id": self._session_id,
                    "after_time": after[0],
                    "after_id": after[1],
                    "page": NAMES_PER_PAGE,
                },
            )
            places: dict[str, int] = {}
            for place, name, _ in page:
                places.setdefault(text_of(name) or "", number_of(place))  # ids need not be unique in a bad store
            for start in range(0, len(places), MESSAGES_PER_PAGE):
                yield from self._messages(dict(islice(places.items(), start, start + MESSAGES_PER_PAGE)))
            before, after = after, (page[-1][2], text_of(page[-1][1]) or "") if page else after
            if len(page) < NAMES_PER_PAGE or after == before:  # a bad store may give the same page again and again
                return

    def _messages(self, places: dict[str, int]) -> Iterator[Message | None]:
        self._batch = list(places)
        wanted = {
            "session_id": self._session_id,
            "places": json.dumps(list(places.values())),
            "most_bytes": BIG_ROW_BYTES,
        }
        for message_id, created, data in self._database.rows("get_messages", wanted):
            name = text_of(message_id) or ""
            yield parse_message(name, _bytes(data) or self._big("get_message", name), created)

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield a message's parts in the order of their ids."""
        own, after = message.message_id, None
        if own not in self._ahead:
            self._look_ahead(own)
        while parts := self._ahead.pop(own, None):
            for part in parts:
                yield part if part[1] is not None else (part[0], self._big("get_part", text_of(part[0])))
            before, after = after, text_of(parts[-1][0]) or ""
            if own == self._unfinished and after != before:  # or a bad store gives the same page again and again
                self._look_ahead(own, after)

    def _look_ahead(self, own: str, after: str = "") -> None:
        """Fetch the next page from a message's part on; what was fetched before and nobody asked for goes."""
        at = self._batch.index(own) if own in self._batch else None
        names = [own] if at is None else self._batch[at : at + MESSAGES_AHEAD]
        page = self._database.rows(
            "list_parts",
            {"ids": json.dumps(names), "after_part": after, "most_bytes": BIG_ROW_BYTES, "page": PARTS_PER_PAGE},
        )
        found: list[list[Part]] = [[] for _ in names]
        for place, part_id, data in cast("list[tuple[int, bytes, bytes | None]]", page):  # so the statement has them
            found[place].append((part_id, data))
        is_full = len(page) == PARTS_PER_PAGE
        seen = number_of(page[-1][0]) + 1 if is_full else len(names)
        self._ahead = dict(zip(names[:seen], found, strict=False))
        self._unfinished = names[seen - 1] if is_full else None

    def _big(self, statement: str, row_id: object) -> bytes | None:
        rows = self._database.rows(statement, {"id": row_id, "most_bytes": MAX_LINE_BYTES})
        return _bytes(rows[0][0]) if rows else None


def _json(value: object) -> Raw | None:
    return Raw(value) if isinstance(value, bytes) and value else None


def _bytes(value: object) -> bytes | None:
    return value if isinstance(value, bytes) else None
