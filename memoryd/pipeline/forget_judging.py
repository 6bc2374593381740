"""What a writer leaves standing although its evidence is gone, or a note asks to forget it: told once, then removed.

A model hears of it with the other complaints, and may find better words; what still stands when it hands its work in
again goes by code, so that nobody's refusal keeps it.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from memoryd.workspace.cleaning import clean_up
from memoryd.workspace.cleaning_texts import MAX_NAMED, mentions, without_texts
from memoryd.workspace.comparison import compare, excerpt, statements
from memoryd.workspace.files import write_texts
from memoryd.workspace.folder import Folder
from memoryd.workspace.notes import asked_to_forget


def leftovers(
    work: Path,
    before: Folder,
    *,
    persons: Mapping[str, Collection[str]],
    max_summary_bytes: int,
) -> list[str]:
    """Return a complaint for each line that says what a note asks to forget, or that only gone evidence has words for.

    What cites gone evidence is a complaint of acceptance. Blocking.
    """
    folder = Folder.read(work)
    cleaning = clean_up(before, folder, persons=persons, max_summary_bytes=max_summary_bytes)
    guessed = [
        f"`{excerpt(statement)}` seems to rest on evidence that is gone; remove it, or say what the evidence says that "
        "is left"
        for statement in cleaning.guessed
    ]
    return [*mentions(folder, asked_to_forget(folder)), *guessed][:MAX_NAMED]


def take_out(
    work: Path,
    before: Folder,
    *,
    removed_threads: Collection[str],
    persons: Mapping[str, Collection[str]],
    max_summary_bytes: int,
) -> int:
    """Remove from a staged result what no session supports any more and what notes ask to forget (blocking).

    Returns how many statements that were.
    """
    after = Folder.read(work)
    lines = _outliving(before, after, removed_threads)
    cleaning = clean_up(before, after, lines=lines, persons=persons, max_summary_bytes=max_summary_bytes)
    write_texts(work, cleaning.texts)
    after = Folder.read(work)
    texts, removed = without_texts(after, asked_to_forget(after))
    write_texts(work, texts)
    return cleaning.removed + removed


def _outliving(before: Folder, after: Folder, removed_threads: Collection[str]) -> frozenset[int]:
    """Return the lines of statements all of whose sessions are gone, and of such that cite another old one instead."""
    compared = compare(before, after, removed_threads)
    old = list(statements(compared.old_handbook))
    alive = {each.words for each in old if any(map(compared.is_live, each.files))}
    dead = {each.words for each in old if each.files & before.files.keys()} - alive
    known = before.files.keys() | after.files.keys()
    lines = set()
    for each in statements(compared.handbook):
        files = each.files & known
        is_fresh = any(compared.is_fresh(path) for path in files)
        is_dead = not any(map(compared.is_live, files)) or (each.words in dead and not is_fresh)
        if files and is_dead and not each.bullet.ad_hoc:
            lines.add(each.bullet.line)
    return frozenset(lines)
