"""The clean-up that needs no model: a folder whose evidence went loses what only that evidence supported.

Where something is cited (MEMORY.md, skills) the citation decides. Where nothing is (memory_summary.md) words do: what
the evidence that went has and nothing that stays. With a purge, whatever cites a task that names such evidence goes,
any word of it is one too many, and the summary is written anew from what is left of the handbook.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from memoryd.workspace.cleaning_handbook import (
    CleanHandbook,
    Gone,
    clean_handbook,
    statements_of,
    without_words,
)
from memoryd.workspace.cleaning_summary import Lost, clean_summary, summary_of_handbook
from memoryd.workspace.folder import Folder
from memoryd.workspace.forgotten_words import ForgottenWords
from memoryd.workspace.handbook import AD_HOC, parse_handbook
from memoryd.workspace.headers import headers_of
from memoryd.workspace.layout import EXTENSIONS, MEMORY_FILE, RAW_MEMORIES, ROLLOUT_SUMMARIES, SKILLS, SUMMARY_FILE

_NAMED_SUMMARY: Final = re.compile(r"rollout_summaries/[^/\s()`\"']+\.md")


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What a clean-up changes: new texts by path (None: the file goes), and how many statements that took out.

    `orphans` are rollout summaries that stand, and of which the handbook may say less than they support now; `guessed`
    the statements that nothing but their words gave away; `lost` is what a summary may no longer speak of.
    """

    texts: Mapping[str, str | None] = field(default_factory=dict)
    removed: int = 0
    orphans: frozenset[str] = frozenset()
    guessed: tuple[str, ...] = ()
    lost: Lost = field(default_factory=Lost)


def clean_up(
    before: Folder,
    work: Folder,
    *,
    purge: bool = False,
    lines: Collection[int] = (),
    persons: Mapping[str, Collection[str]] | None = None,
    person_files: Collection[str] = (),
    max_summary_bytes: int,
) -> Cleaning:
    """Decide what goes from `work`, in which the evidence stands that is left; `before` is what it came from.

    `lines` are the numbers of statements of MEMORY.md that go in any case; `persons` the lines of each file that are a
    person's, `person_files` the files that a person wrote alone.
    """
    gone = Gone(_gone_files(before, work), frozenset(lines), purge, frozenset((persons or {}).get(MEMORY_FILE, ())))
    handbook = _clean_handbook(before, work, gone)
    texts: dict[str, str | None] = {}
    removed = len(handbook.removed)
    if handbook.text != work.text(MEMORY_FILE):
        texts[MEMORY_FILE] = handbook.text
    lost = _lost(before, work, handbook, gone, persons or {})
    summary, left = _clean_summary(work, handbook, lost, max_summary_bytes if gone.purge else None)
    removed += len(left)
    if summary != work.text(SUMMARY_FILE):
        texts[SUMMARY_FILE] = summary
    skills = _clean_skills(before, work, gone, person_files)
    guessed = tuple(dict.fromkeys([*handbook.guessed, *left]))
    return Cleaning({**texts, **skills}, removed + len(skills), frozenset(handbook.orphans), guessed, lost)


def _clean_handbook(before: Folder, work: Folder, gone: Gone) -> CleanHandbook:
    clean = clean_handbook(work.text(MEMORY_FILE), gone)
    stays = [*_evidence(work), *_person_rows(work, gone.persons)]
    words = ForgottenWords.of([*_gone_texts(before, work), *clean.removed], stays, strict=gone.purge)
    suspects = frozenset(clean.suspects)
    again = without_words(
        clean.text,
        words,
        gone,
        only=(lambda _line: True)
        if gone.purge
        else (lambda line: line.key in suspects or line.lines[-1].rstrip().endswith(AD_HOC)),
        rewords=gone.purge,
    )
    again.guessed = list(again.removed)
    again.removed += clean.removed
    again.titles |= clean.titles
    again.cwds |= clean.cwds
    again.orphans |= clean.orphans
    return again


def _clean_summary(work: Folder, handbook: CleanHandbook, lost: Lost, max_bytes: int | None) -> tuple[str, list[str]]:
    """Return the summary that is left, and which of its statements went; with `max_bytes` it is written anew."""
    text = work.text(SUMMARY_FILE)
    if not text.strip() or lost.is_nothing:
        return text, []
    if max_bytes is None:
        return clean_summary(text, lost)
    new = summary_of_handbook(handbook.text, max_bytes=max_bytes)
    return new, sorted(set(statements_of(text)) - set(statements_of(new)))


def _lost(
    before: Folder, work: Folder, handbook: CleanHandbook, gone: Gone, persons: Mapping[str, Collection[str]]
) -> Lost:
    gone_texts = _gone_texts(before, work)
    if not (handbook.removed or gone_texts):
        return Lost()
    standing = parse_handbook(handbook.text).groups
    own = frozenset(persons.get(SUMMARY_FILE, ()))
    stays = [*_evidence(work), *statements_of(handbook.text), *(group.title for group in standing), *own]
    return Lost(
        titles=frozenset(handbook.titles) - {group.title.casefold() for group in standing},
        cwds=frozenset(handbook.cwds) - {(group.cwd or "").casefold() for group in standing} - {""},
        words=ForgottenWords.of([*gone_texts, *handbook.removed], stays, strict=gone.purge),
        persons=own,
        is_nothing=False,
    )


def _clean_skills(before: Folder, work: Folder, gone: Gone, person_files: Collection[str]) -> dict[str, str | None]:
    """Take out lines that cite what is gone; a skill that cites nothing else, or is to be purged, goes whole."""
    files: dict[str, list[str]] = {}
    for path in work.files:
        if path.startswith(f"{SKILLS}/") and path not in person_files:
            files.setdefault("/".join(path.split("/")[:2]), []).append(path)
    threads = {header.thread_id for path, header in headers_of(before).items() if path in gone.files}
    names = gone.files | (threads - {""})
    words = ForgottenWords.of(_gone_texts(before, work), _evidence(work), strict=True)
    texts: dict[str, str | None] = {}
    for paths in files.values():
        whole = "\n".join(work.text(path) for path in paths)
        cites = any(name in whole for name in names)
        rests_on_others = any(path in work.files for path in _NAMED_SUMMARY.findall(whole))
        if (cites and (gone.purge or not rests_on_others)) or (gone.purge and words.are_in(whole)):
            texts |= dict.fromkeys(paths)
        elif cites:
            texts |= {path: without for path in paths if (without := _without(work.text(path), names)) is not None}
    return texts


def _without(text: str, names: Collection[str]) -> str | None:
    """Return a text without the lines that hold one of the names, None when there are none."""
    rows = text.split("\n")
    kept = [row for row in rows if not any(name in row for name in names)]
    return "\n".join(kept) if len(kept) < len(rows) else None


def _gone_files(before: Folder, work: Folder) -> frozenset[str]:
    return frozenset(headers_of(before)) - work.files.keys()


def _gone_texts(before: Folder, work: Folder) -> list[str]:
    """Return what stood in evidence that is not there any more, a raw memory that changed with it."""
    places = (f"{ROLLOUT_SUMMARIES}/", f"{EXTENSIONS}/")
    texts = [text for path, text in before.files.items() if path.startswith(places) and path not in work.files]
    return [*texts, before.text(RAW_MEMORIES)] if texts else []


def _evidence(work: Folder) -> list[str]:
    places = (RAW_MEMORIES, f"{ROLLOUT_SUMMARIES}/", f"{EXTENSIONS}/")
    return [text for path, text in work.files.items() if path.startswith(places)]


def _person_rows(work: Folder, persons: Collection[str]) -> list[str]:
    return [row for row in work.text(MEMORY_FILE).split("\n") if row in persons]
