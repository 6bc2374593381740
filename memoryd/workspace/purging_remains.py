"""What still speaks of forgotten sessions once the memory has been cleaned, line by line, and why it stands."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from memoryd.workspace.folder import Folder
from memoryd.workspace.forgotten_words import ForgottenWords
from memoryd.workspace.handbook import parse_bullet, parse_handbook
from memoryd.workspace.headers import headers_of
from memoryd.workspace.layout import (
    AD_HOC_NOTES,
    ALWAYS_THERE,
    EXTENSIONS,
    MEMORY_FILE,
    SKILLS,
    is_evidence,
)
from memoryd.workspace.outline import read_outline, walk

WRITTEN: Final = "you wrote it"
NOTED: Final = "it is a note, and notes are yours"
FILED: Final = "it is in a file of your own"
BROUGHT: Final = "it is in a resource of an extension, which is a source of its own"
SHARED: Final = "sessions that are not forgotten support it as well"
MAX_WORDS: Final = 3
SHORTEST_NAME: Final = 8
"""A shorter id is any word."""
TELLING: Final = 5
"""After a purge one word of this length is enough to name a line; of shorter ones, which anybody says, it takes two."""
_INSTRUCTIONS: Final = "instructions.md"


@dataclass(frozen=True, slots=True)
class Remains:
    """A line of the memory folder; `how` says by what it speaks of the forgotten, `why` why it stands."""

    path: str
    line: int
    text: str
    how: str
    why: str


def remains_of(
    before: Folder, after: Folder, threads: Collection[str], *, persons: Mapping[str, Collection[str]], purge: bool
) -> Iterator[Remains]:
    """Yield the lines of a cleaned folder that name a forgotten session, rest on it, or have words of it alone.

    `before` is what the folder was made from, `persons` are the rows of each file that are a person's. Words count
    where no clean-up looks: in what a person wrote, and in other sources.
    """
    files = {path for path, header in headers_of(before).items() if header.thread_id in threads}
    ids = (name for thread_id in threads for name in (thread_id, thread_id.rpartition(":")[2]))
    stems = (path.rpartition("/")[2].removesuffix(".md") for path in files)
    names = {name for name in (*ids, *stems) if len(name) >= SHORTEST_NAME}
    words = ForgottenWords.of(_of_sessions(before), [*_of_sessions(after), *_heads(before)], strict=False)
    cited = _citing(before, files)
    for path in sorted(after.files):
        if path.startswith(f"{EXTENSIONS}/") and path.endswith(f"/{_INSTRUCTIONS}"):
            continue
        skipped = _length_of_front_matter(after.text(path)) if path.startswith(f"{EXTENSIONS}/") else 0
        citing = _rows_saying(after.text(path), cited) if path == MEMORY_FILE else frozenset()
        for number, row in enumerate(after.text(path).split("\n"), start=1):
            why = _why(path, row, persons.get(path, ()))
            if any(name in row for name in names):
                yield Remains(path, number, row, "it names the session", why)
            elif number in citing:
                yield Remains(path, number, row, "it rested on the session", why)
            elif why != SHARED and number > skipped and _speaks(row, words, purge=purge):
                shown = ", ".join(words.found_in(row)[:MAX_WORDS])
                yield Remains(path, number, row, f"it has words that only the session had: {shown}", why)


def _speaks(row: str, words: ForgottenWords, *, purge: bool) -> bool:
    return words.are_in(row) or (purge and any(len(word) >= TELLING for word in words.found_in(row)))


def _of_sessions(folder: Folder) -> list[str]:
    return [text for path, text in folder.files.items() if is_evidence(path)]


def _heads(folder: Folder) -> list[str]:
    """Return where sessions were recorded: words that are of a place, and of nobody's session."""
    return [folder.text(path).partition("\n\n")[0] for path in headers_of(folder)]


def _length_of_front_matter(text: str) -> int:
    rows = text.split("\n")
    return rows.index("---", 1) + 1 if rows[0] == "---" and "---" in rows[1:] else 0


def _citing(before: Folder, files: Collection[str]) -> frozenset[str]:
    """Return what the statements said that rested on a task which named one of these rollout summaries."""
    said = set()
    for group in parse_handbook(before.text(MEMORY_FILE)).groups:
        numbers = {task.number for task in group.tasks if any(row.path in files for row in task.summary_files)}
        bullets = [bullet for section in group.sections.values() for bullet in section]
        said |= {bullet.text for bullet in bullets if not numbers.isdisjoint(bullet.task_refs)}
    return frozenset(said)


def _rows_saying(text: str, said: Collection[str]) -> frozenset[int]:
    return frozenset(line.number for _, line in walk(read_outline(text)) if parse_bullet(line.key).text in said)


def _why(path: str, row: str, persons: Collection[str]) -> str:
    if row in persons:
        return WRITTEN
    if path.startswith(f"{AD_HOC_NOTES}/"):
        return NOTED
    if path.startswith(f"{EXTENSIONS}/"):
        return BROUGHT
    is_memorys = path in ALWAYS_THERE or path.startswith(f"{SKILLS}/") or is_evidence(path)
    return SHARED if is_memorys else FILED
