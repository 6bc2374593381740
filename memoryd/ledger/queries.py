"""SQL as files: one file a subject, statements by name.

A statement begins with `-- name: verb_noun`, then a comment that says why it is as it is, then exactly one statement
with named parameters.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (?P<name>[a-z0-9_]+)$", re.MULTILINE)


@cache
def load(subject: str) -> Mapping[str, str]:
    """Return the statements of sql/<subject>.sql by name.

    Raises ValueError when a name occurs twice or the file holds none: a mistake of ours, never of a user.
    """
    text = read(f"{subject}.sql")
    parts = _NAME.split(text)[1:]
    names, bodies = parts[::2], parts[1::2]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"sql/{subject}.sql: every statement needs a name of its own")
    return MappingProxyType({name: body.strip() for name, body in zip(names, bodies, strict=True)})


def read(relative: str) -> str:
    """Return the text of one file under sql/, such as `schema.sql` or `migrations/0001_initial.sql`."""
    return files("memoryd.ledger").joinpath("sql", *relative.split("/")).read_text(encoding="utf-8")
