"""What sets a value of the settings: a flag, a variable, the file, or nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX = "MEMORYD_"


@dataclass(frozen=True, slots=True)
class Reading:
    """What one loading of the settings reads, and so where each value came from."""

    environ: Mapping[str, str]  # MEMORYD_* alone, names in capitals, without empty ones and MEMORYD_HOME
    table: Mapping[str, Any]
    file: Path
    overrides: Mapping[str, Any]

    def origin(self, path: Sequence[str]) -> str:
        """Name what set `path` or something below it; "default" when nothing did."""
        if _holds(self.overrides, path):
            return "command line"
        for length in range(len(path), 0, -1):
            variable = variable_of(path[:length])
            if variable in self.environ and _holds(decoded(self.environ[variable]), path[length:]):
                return variable
        below = (name for name in self.environ if name.startswith(variable_of(path) + "__"))
        return next(below, str(self.file) if _holds(self.table, path) else "default")


def variable_of(path: Sequence[str]) -> str:
    """Return the variable that sets a key: ("extract", "model") is MEMORYD_EXTRACT__MODEL."""
    return PREFIX + "__".join(path).upper()


def decoded(text: str) -> object:
    """Return a variable's value: what it says as JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def nested(flat: Mapping[str, object]) -> dict[str, Any]:
    """Turn dotted keys into tables, as a file has them; None is left out: that flag was not given."""
    tables: dict[str, Any] = {}
    for dotted, value in flat.items():
        level = tables
        *above, last = dotted.split(".")
        for key in above:
            level = level.setdefault(key, {})
        if isinstance(value, Mapping):
            level[last] = level.get(last, {}) | nested(value)
        elif value is not None:
            level[last] = value
    return tables


def _holds(value: object, path: Sequence[str]) -> bool:
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True
