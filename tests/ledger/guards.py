"""Every guard of the ledger's statements, and copies of the .sql files in which one of them is missing.

A guard is one condition of a WHERE, wherever that stands in a statement; a condition that a CASE decides on; and an ON
CONFLICT DO NOTHING. Removed means: the WHERE condition holds always, the CASE condition never (and, as a second
mutant, always), the conflict is an error.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from memoryd.ledger import queries

DECIDING_READS = {
    ("jobs", "find_job"),
    ("jobs", "find_standing"),
    ("jobs", "find_held"),
    ("jobs", "list_leased"),
    ("jobs", "find_next_ready"),
    ("sessions", "find_session"),
    ("sessions", "find_queued"),
    ("sessions", "list_due"),
    ("sessions", "find_selection"),
    ("outputs", "select_for_consolidation"),
    ("outputs", "list_selected"),
    ("publications", "find_pending"),
    ("claims", "list_valid"),
    ("spend", "sum_since"),
    ("meta", "find_meta"),
    ("facts", "find_fact"),
    ("pruning", "list_old_runs"),
}
"""Reads on whose answer a write or a request depends; all others are for people's eyes."""

_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|[A-Za-z_:][\w.]*|\d+(?:\.\d+)?|[()]|[^\s\w()]+|\s+")
_ENDS = {"ORDER", "LIMIT", "GROUP", "RETURNING", "ON", ";"}


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition of one statement; `spans` are its places in the statement's text, all taken out together."""

    subject: str
    statement: str
    condition: str
    spans: tuple[tuple[int, int], ...]
    instead: str = "1"

    def __str__(self) -> str:
        how = {"1": "removed", "0": "never", "": "removed", "(1)": "always"}[self.instead]
        return f"{self.subject}.{self.statement}: {self.condition} ({how})"

    def removed_from(self, text: str) -> str:
        """Return the statement without it."""
        for start, end in sorted(self.spans, reverse=True):
            text = text[:start] + self.instead + text[end:]
        return text


def find_guards() -> list[Guard]:
    """Find the guards of everything that writes, and of the reads that writes depend on."""
    return [
        guard
        for subject in _subjects()
        for name, text in queries.load(subject).items()
        if _writes(text) or (subject, name) in DECIDING_READS
        for guard in _guards_of(subject, name, text)
    ]


def copy_without(guard: Guard, folder: Path) -> Path:
    """Copy all .sql files into `folder`, without this guard in one of them."""
    folder.mkdir()
    for name in (*(f"{subject}.sql" for subject in _subjects()), "schema.sql"):
        (folder / name).write_text(queries.read(name), encoding="utf-8")
    whole = queries.read(f"{guard.subject}.sql")
    statement = queries.load(guard.subject)[guard.statement]
    assert whole.count(statement) == 1
    changed = whole.replace(statement, guard.removed_from(statement))
    (folder / f"{guard.subject}.sql").write_text(changed, encoding="utf-8")
    return folder


def _subjects() -> list[str]:
    names = (entry.name for entry in files("memoryd.ledger").joinpath("sql").iterdir())
    return sorted(name.removesuffix(".sql") for name in names if name.endswith(".sql") and name != "schema.sql")


def _writes(text: str) -> bool:
    return re.search(r"^(INSERT|UPDATE|DELETE)\b", text, re.MULTILINE) is not None


def _guards_of(subject: str, name: str, text: str) -> Iterator[Guard]:
    tokens = list(_tokens(text))
    for start, end in _conditions(tokens):
        yield Guard(subject, name, _words(text[start:end]), ((start, end),))
    cases: dict[str, list[tuple[int, int]]] = {}
    for start, end in _case_conditions(tokens):
        cases.setdefault(_words(text[start:end]), []).append((start, end))
    for condition, spans in cases.items():
        for instead in ("0", "(1)"):
            yield Guard(subject, name, condition, tuple(spans), instead)
    for found in re.finditer(r"ON CONFLICT[^;]*DO NOTHING", text):
        yield Guard(subject, name, "ON CONFLICT DO NOTHING", (found.span(),), "")


def _words(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class _Token:
    word: str
    start: int
    end: int
    depth: int


def _tokens(text: str) -> Iterator[_Token]:
    """The words of a statement with their depth: brackets and CASE ... END nest."""
    depth = 0
    for found in _TOKEN.finditer(text):
        word = found.group()
        if word.isspace() or word.startswith("--"):
            continue
        depth -= word in {")", "END"}
        yield _Token(word, *found.span(), depth)
        depth += word in {"(", "CASE"}


def _conditions(tokens: list[_Token]) -> Iterator[tuple[int, int]]:
    """The parts of each WHERE that are joined by AND."""
    for index, token in enumerate(tokens):
        if token.word != "WHERE":
            continue
        part: list[_Token] = []
        for inner in tokens[index + 1 :]:
            over = inner.depth < token.depth or (inner.depth == token.depth and inner.word in _ENDS)
            if over or (inner.depth == token.depth and inner.word == "AND"):
                yield part[0].start, part[-1].end
                part = []
                if over:
                    break
            else:
                part.append(inner)


def _case_conditions(tokens: list[_Token]) -> Iterator[tuple[int, int]]:
    for index, token in enumerate(tokens):
        if token.word == "WHEN":
            end = next(i for i, inner in enumerate(tokens) if i > index and inner.word == "THEN")
            yield tokens[index + 1].start, tokens[end - 1].end
