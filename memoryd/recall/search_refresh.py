"""What of the search index is out of date, and what takes its place: only files that were touched are made anew."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.ledger.search import Change, State
from memoryd.recall.entries import Source, ValidFrom, entries_of, is_indexed
from memoryd.recall.places_now import read_text
from memoryd.recall.reading import Clean, cleaned_lines
from memoryd.workspace.files import translated
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import MEMORY_FILE, ROLLOUT_SUMMARIES, SKILLS, Home

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Outdated:
    """The files of the memory folder as they are now, and those whose entries are not made of that."""

    states: Mapping[str, State]
    paths: tuple[str, ...]


def states_of(home: Home) -> dict[str, State]:
    """Return size and time of each file that has entries; reads none of them. Blocking; raises StorageError."""
    places = (MEMORY_FILE, ROLLOUT_SUMMARIES, SKILLS)
    return {path: state for place in places for path, state in _walk(home.memories / place, place) if is_indexed(path)}


def outdated(states: Mapping[str, State], known: Mapping[str, State], indexed: frozenset[str]) -> Outdated:
    """Compare files with the index. The handbook's entries say when its sessions were, so it goes with any summary."""
    paths = {path for path, state in states.items() if known.get(path) != state} | (indexed - states.keys())
    if any(path.startswith(f"{ROLLOUT_SUMMARIES}/") for path in paths) and MEMORY_FILE in states:
        paths.add(MEMORY_FILE)
    return Outdated(states, tuple(sorted(paths)))


def make_change(home: Home, wanted: Outdated, valid_from: ValidFrom, clean: Clean) -> Change:
    """Read what is needed, and make the entries (blocking). A secret that a person wrote into a file is in none.

    A file that is written meanwhile has another time than the one that is kept: the next refresh makes it anew.
    """
    needed = {path for path in wanted.paths if path in wanted.states}
    if MEMORY_FILE in needed:
        needed.update(path for path in wanted.states if path.startswith(f"{ROLLOUT_SUMMARIES}/"))
    rows = {path: read_text(home.memories / path, path).split("\n") for path in sorted(needed)}
    folder = Folder({path: "\n".join(cleaned_lines(lines, clean)) for path, lines in rows.items()})
    touched_at = {path: mtime_ns // SECOND_NS for path, (_, mtime_ns) in wanted.states.items()}
    entries = entries_of(
        Source(folder, rows, touched_at, valid_from), [path for path in wanted.paths if path in needed]
    )
    return Change({path: wanted.states.get(path) for path in wanted.paths}, entries)


def _walk(place: Path, path: str) -> Iterator[tuple[str, State]]:
    """Walk without following a link; hidden names are no part of the memory."""
    try:
        facts = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISREG(facts.st_mode):
        yield path, (facts.st_size, facts.st_mtime_ns)
    elif stat.S_ISDIR(facts.st_mode):
        with translated("list", place):
            names = sorted(os.listdir(place))  # noqa: PTH208 (names alone, which is what is walked over)
        for name in names:
            if not name.startswith("."):
                yield from _walk(place / name, f"{path}/{name}")
