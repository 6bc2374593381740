"""What of the memory folder can be found: bullets and tasks of the handbook, parts of summaries and skills (pure)."""

import hashlib
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from memoryd.ledger.search import NewEntry
from memoryd.recall.passages import Passage, passages_of
from memoryd.recall.ranking import newest
from memoryd.recall.search_words import handles_of
from memoryd.workspace.claims import GLOBAL_SCOPE, claims_of_folder
from memoryd.workspace.comparison import Statement, statements
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import Task, TaskGroup, parse_handbook
from memoryd.workspace.headers import UNKNOWN, Header, headers_of
from memoryd.workspace.layout import MEMORY_FILE, ROLLOUT_SUMMARIES, SKILLS

MADE_AS: Final = "1"
"""Grows when the same files make other entries, so that an upgrade makes all of them anew."""
UNKNOWN_SCOPE: Final = "unknown"
"""Of a session whose directory nobody knows: it holds in no project, and not everywhere."""
TASK_SECTION: Final = "Tasks"

ValidFrom: TypeAlias = Mapping[tuple[str, str], Sequence[tuple[str, int]]]
"""Scope and beginning of the ledger's claims, by section and text."""


@dataclass(frozen=True, slots=True)
class Source:
    """What entries are made from: files by their paths, without secrets; `touched_at`: when each was written last.

    `rows` are the lines as they stand in the files, by which they are found there again; times are epoch seconds.
    """

    folder: Folder
    rows: Mapping[str, Sequence[str]]
    touched_at: Mapping[str, int]
    valid_from: ValidFrom


def is_indexed(path: str) -> bool:
    """Say whether a file of the memory folder has entries."""
    parts = path.split("/")
    if parts[0] == ROLLOUT_SUMMARIES:
        return len(parts) == 2 and path.endswith(".md")
    return path == MEMORY_FILE or (parts[0] == SKILLS and len(parts) > 2 and path.endswith(".md"))


def entries_of(source: Source, paths: Collection[str]) -> dict[str, list[NewEntry]]:
    """Return the entries of these files; those of the handbook need the headers of all summaries in the folder."""
    headers = headers_of(source.folder)
    made: dict[str, list[NewEntry]] = {}
    for path in paths:
        text = source.folder.text(path)
        if path == MEMORY_FILE:
            made[path] = list(_handbook(source, headers))
        elif path in headers:
            made[path] = list(_summary(text, source.rows[path], headers[path]))
        else:
            made[path] = list(_skill(path, text, source.rows[path], source.touched_at.get(path)))
    return made


def opening_of(row: str) -> int:
    """Return a checksum of a line, white space at its end aside: by it a line is found quickly in a changed file."""
    data = row.rstrip().encode("utf-8", "surrogatepass")
    return zlib.crc32(data) << 16 | len(data) & 0xFFFF


def rows_digest_of(rows: Sequence[str]) -> str:
    """Return a digest of lines, white space at their ends aside."""
    return _digest("\n".join(row.rstrip() for row in rows))


def _handbook(source: Source, headers: Mapping[str, Header]) -> Iterator[NewEntry]:
    text = source.folder.text(MEMORY_FILE)
    rows = source.rows[MEMORY_FILE]
    handbook = parse_handbook(text)
    times = {path: _instant(header) for path, header in headers.items()}
    for group in handbook.groups:
        for task in group.tasks:
            yield _task(rows, group, task, headers, times)
    found = [statement for statement in statements(handbook) if statement.bullet.text]
    for statement, claim in zip(found, claims_of_folder(source.folder), strict=True):
        scope, since = claim.scope, source.touched_at.get(MEMORY_FILE)
        known = source.valid_from.get((claim.section, claim.text), ())
        if known:
            scope, since = (known[0][0] if len(known) == 1 else scope), max(at for _, at in known)
        line = statement.bullet.line
        updated_at = newest(times.get(path) for path in statement.files) or since
        about = _About("bullet", scope, claim.section, claim.thread_ids, updated_at, claim.status)
        yield _entry(rows, (line, _end_of_bullet(rows, line)), about, claim.text, _context(statement))


def _task(
    rows: Sequence[str],
    group: TaskGroup,
    task: Task,
    headers: Mapping[str, Header],
    times: Mapping[str, int | None],
) -> NewEntry:
    named = [row.path for row in task.summary_files if row.path in headers]
    threads = tuple(sorted({headers[path].thread_id for path in named} - {""}))
    about = _About("task", group.cwd or GLOBAL_SCOPE, TASK_SECTION, threads, newest(times[path] for path in named))
    keywords = ", ".join(task.keywords)
    text = f"{task.title}: {keywords}" if keywords else task.title
    return _entry(rows, (task.line, task.line), about, text, _group_words(group))


def _context(statement: Statement) -> str:
    """Return the headings and keywords that a bullet stands under: what it is about, though it may not say so."""
    group, refs = statement.group, statement.bullet.task_refs
    tasks = [task for task in group.tasks if task.number in refs]
    words = [word for task in tasks for word in (task.title, ", ".join(task.keywords))]
    return "\n".join([_group_words(group), *words])


def _group_words(group: TaskGroup) -> str:
    return f"{group.title}\n{_project_words(group.cwd)}"


def _project_words(cwd: str | None) -> str:
    """Return the last part of a directory: what people call a project."""
    return PurePosixPath(cwd).name if cwd else ""


def _summary(text: str, rows: Sequence[str], header: Header) -> Iterator[NewEntry]:
    scope = header.cwd if header.cwd not in {"", UNKNOWN} else UNKNOWN_SCOPE
    threads = (header.thread_id,) if header.thread_id else ()
    about = _About("summary", scope, None, threads, _instant(header))
    for passage in passages_of(text.split("\n"), after_header=True):
        yield _passage(rows, passage, about, _project_words(header.cwd))


def _skill(path: str, text: str, rows: Sequence[str], touched_at: int | None) -> Iterator[NewEntry]:
    about = _About("skill", GLOBAL_SCOPE, None, (), touched_at)
    for passage in passages_of(text.split("\n")):
        yield _passage(rows, passage, about, path.split("/")[1])


def _passage(rows: Sequence[str], passage: Passage, about: "_About", words: str) -> NewEntry:
    context = "\n".join(word for word in (words, *passage.headings) if word)
    place = (passage.line, passage.end_line)
    return _entry(rows, place, replace(about, section=passage.section), passage.text, context)


@dataclass(frozen=True, slots=True)
class _About:
    """What is known of an entry beside its words and its place."""

    kind: str
    scope: str
    section: str | None
    threads: tuple[str, ...]
    updated_at: int | None
    mark: str | None = None


def _entry(rows: Sequence[str], place: tuple[int, int], about: _About, text: str, context: str) -> NewEntry:
    line, end_line = place
    rows_digest = rows_digest_of(rows[line - 1 : end_line])
    return NewEntry(
        line=line,
        end_line=end_line,
        kind=about.kind,
        scope=about.scope,
        mark=about.mark,
        section=about.section,
        threads=about.threads,
        updated_at=about.updated_at,
        opening=opening_of(rows[line - 1]),
        rows_digest=rows_digest,
        digest=_digest(repr((MADE_AS, about, text, context, rows_digest))),
        text=text,
        context=context,
        handles=handles_of(f"{text}\n{context}"),
    )


def _end_of_bullet(rows: Sequence[str], line: int) -> int:
    """Return the last line of a bullet: indented ones below it belong to it, unless they begin one of their own."""
    end = line
    for number in range(line + 1, len(rows) + 1):
        row = rows[number - 1].rstrip()
        if not row or row[0] not in " \t" or row.lstrip().startswith("- "):
            break
        end = number
    return end


def _instant(header: Header) -> int | None:
    try:
        return int(datetime.fromisoformat(header.updated_at).timestamp())
    except ValueError:
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
