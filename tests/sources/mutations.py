"""Damage that sessions are met with: torn, fused, reordered and duplicated lines, fields of other types, raw noise.

A mutation is plain data that hypothesis can shrink: a name, two numbers that pick places (taken modulo what there is),
and a value. Each of them turns bytes into bytes; `mutate_store` does the like to the rows of an SQLite store.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

DEEP = 3_000
ODD_VALUES: Sequence[bytes] = (
    b"null",
    b"true",
    b"0",
    b"-1",
    b"1e400",
    b"-1.5",
    b"NaN",
    b"1" * 400,
    b'""',
    b'"x"',
    b'"\\ud800"',
    b'"\\u0000\\u0007\\u202e"',
    b'"' + b"y" * 5_000 + b'"',
    b'"2026-99-99T99:99:99Z"',
    b'"9999-12-31T23:59:59.999999+23:59"',
    b"[]",
    b"{}",
    b"[null]",
    b"[[[[[]]]]]",
    b'[{"type":"text"},{"text":7},"z"]',
    b'{"type":"text","text":{"a":1}}',
    b"[" * DEEP + b"]" * DEEP,
    b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    b'{"a":1,"a":2}',
)
NOISE: Sequence[bytes] = (
    b"\x00" * 600,
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r",
    b"\n\n\r\n",
    b"\\",
    b'"',
    b"{",
    b"}{",
    b"\xc3",
)


@dataclass(frozen=True)
class Mutation:
    """One piece of damage."""

    kind: str
    first: int
    second: int
    value: bytes


def mutations(kinds: Sequence[str]) -> st.SearchStrategy[Mutation]:
    """Draw one mutation of these kinds."""
    place = st.integers(0, 2**20)
    values = st.one_of(st.sampled_from(ODD_VALUES), st.sampled_from(NOISE), st.binary(max_size=40))
    return st.builds(Mutation, st.sampled_from(list(kinds)), place, place, values)


def damaged(content: bytes, damage: Sequence[Mutation]) -> bytes:
    """Apply mutations one after the other."""
    for mutation in damage:
        content = BYTES[mutation.kind](content, mutation)
    return content


def _cut(content: bytes, mutation: Mutation) -> bytes:
    return content[: mutation.first % (len(content) + 1)]


def _noise(content: bytes, mutation: Mutation) -> bytes:
    at = mutation.first % (len(content) + 1)
    return content[:at] + mutation.value + content[at + mutation.second % 50 :]


def _by_line(change: Callable[[list[bytes], int, int, bytes], None]) -> Callable[[bytes, Mutation], bytes]:
    def changed(content: bytes, mutation: Mutation) -> bytes:
        lines = content.split(b"\n")
        change(lines, mutation.first % len(lines), mutation.second % len(lines), mutation.value)
        return b"\n".join(lines)

    return changed


def _tear(lines: list[bytes], first: int, second: int, value: bytes) -> None:
    """Tear a line in half and let another follow in the same line, as after a crash."""
    lines[first] = lines[first][: len(lines[first]) // 2] + lines[second]


def _duplicate(lines: list[bytes], first: int, second: int, value: bytes) -> None:
    lines.insert(second, lines[first])


def _swap(lines: list[bytes], first: int, second: int, value: bytes) -> None:
    lines[first], lines[second] = lines[second], lines[first]


def _drop(lines: list[bytes], first: int, second: int, value: bytes) -> None:
    del lines[first]


def _insert(lines: list[bytes], first: int, second: int, value: bytes) -> None:
    lines.insert(first, value)


def _field(content: bytes, mutation: Mutation) -> bytes:
    """Put a value of another type in the place of some value of some JSON document in the content."""
    lines = content.split(b"\n")
    at = mutation.first % len(lines)
    with suppress(ValueError, RecursionError):
        if len(lines) > 1 and lines[0].strip() in (b"{", b"["):  # one document over many lines
            return with_odd_field(content, mutation)
        lines[at] = with_odd_field(lines[at], mutation)
    return b"\n".join(lines)


def with_odd_field(document: bytes, mutation: Mutation) -> bytes:
    """Replace one value of a JSON document. Raises ValueError when it is none."""
    tree = json.loads(document)
    spots: list[tuple[Any, Any]] = []
    _collect(tree, spots)
    if not spots:
        return mutation.value
    holder, key = spots[mutation.second % len(spots)]
    holder[key] = "@@odd@@"
    return json.dumps(tree).encode().replace(b'"@@odd@@"', mutation.value)


def _collect(node: Any, spots: list[tuple[Any, Any]]) -> None:
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            spots.append((node, key))
            _collect(node[key], spots)


BYTES: dict[str, Callable[[bytes, Mutation], bytes]] = {
    "cut": _cut,
    "noise": _noise,
    "tear": _by_line(_tear),
    "duplicate": _by_line(_duplicate),
    "swap": _by_line(_swap),
    "drop": _by_line(_drop),
    "insert": _by_line(_insert),
    "field": _field,
    "same": lambda content, mutation: content,
}
ROWS = ("document", "column", "delete", "copy")


def mutate_store(store: Path, damage: Sequence[Mutation]) -> None:
    """Damage rows of an SQLite store; what the store itself refuses stays as it was."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for mutation in damage:
            with suppress(sqlite3.Error, ValueError, RecursionError, AttributeError, OverflowError):
                _mutate_row(connection, names[mutation.first % len(names)], mutation)
        connection.commit()


def _mutate_row(connection: sqlite3.Connection, table: str, mutation: Mutation) -> None:
    rows = connection.execute(f'SELECT rowid, * FROM "{table}"').fetchall()
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    if not rows:
        return
    rowid, *values = rows[mutation.second % len(rows)]
    column = columns[mutation.first // 7 % len(columns)]
    if mutation.kind == "delete":
        connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', [rowid])
    elif mutation.kind == "copy":
        values[columns.index(column)] = mutation.value
        connection.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', values)
    elif mutation.kind == "document" and "data" in columns:
        document = with_odd_field(values[columns.index("data")].encode(), mutation)
        text = document.decode("utf-8", "replace")
        connection.execute(f'UPDATE "{table}" SET data = ? WHERE rowid = ?', [text, rowid])
    else:
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', [_odd(mutation), rowid])


def _odd(mutation: Mutation) -> object:
    odd: Sequence[object] = (None, mutation.value, mutation.value.decode("utf-8", "replace"), -1, 2**62, 1.5, "", "{")
    return odd[mutation.second // 3 % len(odd)]
