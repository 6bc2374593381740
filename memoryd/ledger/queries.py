"""SQL as files: one file a subject, statements by name.

A statement begins with `-- name: verb_noun`, then a comment that says why it is as it is, then exactly one statement
with named parameters.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (?P<name>[a-z0-9_]+)$", re.MULTILINE)

_FOLDER: ContextVar[Path | None] = ContextVar("folder_of_sql", default=None)
"""Another folder than the package's own; None for the program itself."""


class Statements(Mapping[str, str]):
    """The statements of one subject by name, as they stand in the folder that is read from now."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._own = _parse(subject, None)

    def __getitem__(self, name: str) -> str:
        folder = _FOLDER.get()
        return self._own[name] if folder is None else _parse(self._subject, folder)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def load(subject: str) -> Statements:
    """Return the statements of sql/<subject>.sql by name.

    Raises ValueError when a name occurs twice or the file holds none: a mistake of ours, never of a user.
    """
    return Statements(subject)


@contextmanager
def reading_from(folder: Path) -> Iterator[None]:
    """Take all SQL from a copy of the package's sql/ folder, in this context only (thread or task).

    For a trial of changed statements, such as the proof that each of their guards is needed. The files must not change
    while they are in use. A Ledger runs on a thread of its own and does not see it.
    """
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def read(relative: str) -> str:
    """Return the text of one file under sql/, such as `schema.sql` or `migrations/0001_initial.sql`."""
    return _read(relative, _FOLDER.get())


@cache
def _parse(subject: str, folder: Path | None) -> Mapping[str, str]:
    parts = _NAME.split(_read(f"{subject}.sql", folder))[1:]
    names, bodies = parts[::2], parts[1::2]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"sql/{subject}.sql: every statement needs a name of its own")
    return MappingProxyType({name: body.strip() for name, body in zip(names, bodies, strict=True)})


def _read(relative: str, folder: Path | None) -> str:
    root = files("memoryd.ledger").joinpath("sql") if folder is None else folder
    return root.joinpath(*relative.split("/")).read_text(encoding="utf-8")
