"""Writes recall/: one ready-made text for each known project, one for everywhere, and the index that finds them.

`refresh` is called last by whatever publishes or starts. It compares the commit (and the settings) that the index was
made from with those of now: when they agree nothing is read or written.
"""

import fnmatch
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memoryd.errors import StorageError
from memoryd.recall.hook import EVERYWHERE, INDEX, MAX_INDEX_BYTES, normal, read_bounded
from memoryd.recall.projects import Place, Project, general_scopes, projects_of
from memoryd.recall.summary import Selection, Usage, injected, unused
from memoryd.sections import Recall
from memoryd.workspace.files import fsync_folder, temporary_beside, translated, write_durably
from memoryd.workspace.handbook import Handbook, TaskGroup, parse_handbook
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE, Home
from memoryd.workspace.mending import is_empty_summary
from memoryd.workspace.summary import Topic, parse_summary

FORMAT: Final = 1
"""Of the index: what other formats say is not read."""
TEXTS: Final = 4
"""Grows when the same memory makes other texts, so that an upgrade rewrites them."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides, beside the memory itself, what agents are given.

    `homes`: the user's home folders. `without_recall`: ids of sessions that are given nothing. `used`: how often and
    when last the sessions of the memory were used, by the stems of their summary files; it only ranks what is cut.
    """

    recall: Recall
    homes: tuple[str, ...] = ()
    without_recall: tuple[str, ...] = ()
    used: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def stamp(self, commit: str) -> str:
        """Digest what the files of a commit depend on; use does not count, since it would rewrite them all the time."""
        versions, settings = [FORMAT, TEXTS], self.recall.model_dump(mode="json")
        parts = [versions, commit, settings, sorted(self.homes), sorted(self.without_recall)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Ready:
    """The index, and the texts by the names of their files."""

    index: dict[str, Any]
    texts: dict[str, str]


def refresh(home: Home, commit: str, circumstances: Circumstances) -> bool:
    """Rewrite recall/ unless it was made from this; tell whether it was. Blocking; raises StorageError.

    New texts come first and the index after them; what it names no more goes last. Each file is whole at any time.
    """
    if is_current(home, commit, circumstances):
        return False
    before = read_index(home)
    ready = make_ready(home, commit, circumstances, before)
    for name, text in ready.texts.items():
        _replace(home.recall / name, text)
    _replace(home.recall / INDEX, json.dumps(ready.index, ensure_ascii=False) + "\n")
    _remove_others(home, {*ready.texts, INDEX})
    return True


def is_current(home: Home, commit: str, circumstances: Circumstances) -> bool:
    """Tell whether recall/ was made from this, and all of it is there."""
    index = read_index(home)
    return index.get("stamp") == circumstances.stamp(commit) and _is_complete(home, index)


def make_ready(home: Home, commit: str, circumstances: Circumstances, before: Mapping[str, Any]) -> Ready:
    """Make all of it in memory from the memory folder as it stands. Raises StorageError."""
    recall = circumstances.recall
    texts = {EVERYWHERE: ""}
    index = _bare_index(commit, circumstances)
    text = _text_of(home, SUMMARY_FILE)
    if recall.scope == "off" or not text.strip() or is_empty_summary(text):
        return Ready(index, texts)
    handbook = parse_handbook(_text_of(home, MEMORY_FILE))
    usage = usage_of(handbook, circumstances.used)
    if recall.scope == "all":
        texts[EVERYWHERE] = injected(text, home.memories, max_tokens=recall.max_tokens, usage=usage)
        return Ready(index, texts)
    summary = parse_summary(text)
    general = general_scopes(summary, handbook)
    projects = projects_of(summary, handbook, homes=circumstances.homes, known=known_places(before))
    for file, scopes in ((EVERYWHERE, set[str]()), *_enter(index, projects, circumstances.homes)):
        selection = Selection(own=scopes, general=general)
        texts[file] = injected(text, home.memories, max_tokens=recall.max_tokens, selection=selection, usage=usage)
    return Ready(index, texts)


def excluded_patterns(recall: Recall) -> list[str]:
    """Return what matches the folders in which agents are given nothing, as regular expressions."""
    return [fnmatch.translate(glob.rstrip("/") or "/") for glob in recall.exclude_cwd]


def read_index(home: Home) -> dict[str, Any]:
    """Return the index as it stands on disk, empty when there is none or none of ours."""
    try:
        index = json.loads(read_bounded(str(home.recall / INDEX), MAX_INDEX_BYTES))
    except (OSError, ValueError):
        return {}
    return index if isinstance(index, dict) and index.get("format") == FORMAT else {}


def known_places(index: Mapping[str, Any]) -> dict[str, Place]:
    """Return the places that an earlier index knew, by the directory's name."""
    return {name: Place(name, *map(str, place)) for name, place in index.get("places", {}).items()}


def usage_of(handbook: Handbook, used: Mapping[str, tuple[int, int]]) -> Usage:
    """Return how to look up the use of a topic: that of the sessions behind the task group that it names."""
    if not used:
        return unused
    by_title: dict[str, tuple[int, int]] = {}
    for group in handbook.groups:
        title = group.title.casefold()
        count, last = _used(group, used)
        so_far = by_title.get(title, (0, 0))
        by_title[title] = (so_far[0] + count, max(so_far[1], last))

    def look_up(_scope: str, topic: Topic) -> tuple[int, int]:
        return by_title.get(topic.title.casefold(), (0, 0))

    return look_up


def _used(group: TaskGroup, used: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    stems = {Path(row.path).stem for task in group.tasks for row in task.summary_files}
    found = [used[stem] for stem in stems if stem in used]
    return sum(count for count, _ in found), max((last for _, last in found), default=0)


def _bare_index(commit: str, circumstances: Circumstances) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "commit": commit,
        "stamp": circumstances.stamp(commit),
        "scope": circumstances.recall.scope,
        "excluded": excluded_patterns(circumstances.recall),
        "without_recall": sorted(thread.lower() for thread in circumstances.without_recall),
        "homes": sorted({"/", *map(normal, circumstances.homes)}),
        "alone": {},
        "directories": {},
        "repositories": {},
        "places": {},
    }


def _enter(
    index: dict[str, Any], projects: Sequence[Project], homes: Collection[str]
) -> list[tuple[str, Collection[str]]]:
    """Enter the projects' places in the index; return the files to make, with the scopes that each tells in full."""
    wanted: list[tuple[str, Collection[str]]] = []
    roofs = {normal(home) for home in homes}
    of_repository: dict[str, Project] = {}
    for project in projects:
        wanted.append((project.file, project.scopes))
        for place in project.places:
            index["places"][place.named] = [place.real, place.common, place.inside]
            for name in {place.named, place.real}:
                # what was learned in the home folder itself is not that of every project below it
                index["alone" if name in roofs else "directories"][name] = project.file
            if place.common:
                index["repositories"].setdefault(place.common, {})[place.inside] = project.file
                whole = of_repository.setdefault(place.common, Project((place.common, "")))
                whole.scopes |= project.scopes
    for common, whole in of_repository.items():
        if "" not in index["repositories"][common]:
            # only folders of the repository are known: who works at its root works on all of them
            index["repositories"][common][""] = whole.file
            wanted.append((whole.file, whole.scopes))
    return wanted


def _is_complete(home: Home, index: Mapping[str, Any]) -> bool:
    names = {EVERYWHERE, *index["alone"].values(), *index["directories"].values()}
    names.update(name for inside in index["repositories"].values() for name in inside.values())
    return all((home.recall / name).is_file() for name in names)


def _text_of(home: Home, name: str) -> str:
    path = home.memories / name
    try:
        with translated("read", path):
            return path.read_text(encoding="utf-8", errors="replace")
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ""
        raise


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    _check_real(path.parent)
    with translated("write", path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = temporary_beside(path)
        try:
            write_durably(temporary, text.encode("utf-8", "replace"))
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _check_real(folder: Path) -> None:
    if folder.is_symlink():
        raise StorageError(f"{folder} is a symlink, and what it leads to is not ours to empty", remedy="remove it")


def _remove_others(home: Home, kept: Collection[str]) -> None:
    _check_real(home.recall)
    with translated("clean", home.recall):
        for path in home.recall.iterdir():
            if path.name not in kept and not path.is_dir():
                path.unlink(missing_ok=True)
    fsync_folder(home.recall)
