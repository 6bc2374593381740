"""Session files in directory listings: what lies there, without opening any of it, and without looking twice."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from operator import attrgetter
from pathlib import Path
from stat import S_ISREG
from typing import Final

from memoryd.errors import SessionVanished
from memoryd.sources.items import SessionFile

LATELY_SECONDS: Final = 3 * 86_400
"""A folder in which nothing changed for so long is not listed at every scan: few sessions are resumed so late."""


class Survey:
    """What scans keep of the files and folders they saw, so that the next one makes and stats less.

    `known` holds (size, mtime_ns) by path: a file that lies as it is known is passed over before anything is made of
    it. A quick scan does not list a folder again where nothing changed lately, neither the folder itself nor a file
    known in it: what is appended to such a file is seen through a hint, or at the next full scan.
    """

    def __init__(self, known: Mapping[str, tuple[int, int]]) -> None:
        self._known = dict(known)
        self._folders: dict[str, tuple[int, list[os.DirEntry[str]]]] = {}  # time of change, folders in it
        self._newest: dict[str, int] = {}  # time of change of the newest known file, by folder
        for path, (_size, mtime_ns) in known.items():
            self._date(path, mtime_ns)
        self._quick, self._lately_ns, self._hinted = False, 0, frozenset[str]()
        self.passed_over = 0
        """Files that lie as they are known, in this scan."""
        self.untellable: set[str] = set()
        """Names, escaped, that hold bytes which are no text, or characters that cannot be shown."""

    def begin(self, *, quick: bool, now: float, hinted: Collection[str] = ()) -> None:
        """Begin a scan at `now` (epoch seconds); the folders of the `hinted` paths are listed, quick or not."""
        self._quick, self._lately_ns = quick, int((now - LATELY_SECONDS) * 1e9)
        self._hinted = frozenset(os.path.dirname(path) for path in hinted)  # noqa: PTH120 - a hint is a text
        self.passed_over = 0

    def knows(self, path: str, size: int, mtime_ns: int) -> bool:
        """Tell whether a file was seen just so."""
        return self._known.get(path) == (size, mtime_ns)

    def changed(self, files: Iterable[SessionFile]) -> tuple[list[SessionFile], int]:
        """Return the files that were not seen just so, and how many there are in all."""
        every = list(files)
        known_as = self._known.get
        changed = (
            [file for file in every if known_as(file.name) != (file.size, file.mtime_ns)] if self._known else every
        )
        return changed, len(every)

    def remember(self, path: str, size: int, mtime_ns: int) -> None:
        """Keep how a file lies."""
        self._known[path] = (size, mtime_ns)
        self._date(path, mtime_ns)

    def forget(self, path: str) -> None:
        """Let a file be news at the next full scan, wherever it lies."""
        self._known.pop(path, None)

    def passes_over(self, files: Iterable[SessionFile]) -> list[SessionFile]:
        """Return the files that were not seen just so; the others are counted as passed over."""
        changed, count = self.changed(files)
        self.passed_over += count - len(changed)
        return changed

    def listing(self, folder: str, *, known_too: bool) -> list["os.DirEntry[str]"]:
        """List a folder, with the files that are known as they lie or without; a quick scan lists no quiet one."""
        try:
            changed_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116 - a quick scan is little else
        except OSError:
            self._folders.pop(folder, None)
            return []
        kept = self._folders.get(folder)
        if self._quick and kept is not None and kept[0] == changed_ns and self._is_quiet(folder, changed_ns):
            return kept[1]
        entries = listing(folder) if known_too else self._changed_in(folder)
        self._folders[folder] = (changed_ns, [entry for entry in entries if is_folder(entry)])
        return entries

    def _changed_in(self, folder: str) -> list["os.DirEntry[str]"]:
        """List a folder without the files that lie as they are known: a tight loop, since that is most of a scan."""
        if not self._known:
            return listing(folder)
        news, count, known_as = [], 0, self._known.get
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    known = known_as(entry.path)
                    if known is not None:
                        facts = entry.stat(follow_symlinks=False)
                        if known[1] == facts.st_mtime_ns and known[0] == facts.st_size:
                            count += 1
                            continue
                    news.append(entry)
        except OSError:
            pass  # gone under the scan: what was listed so far holds, the next scan sees the rest
        self.passed_over += count
        return sorted(news, key=_name)

    def _is_quiet(self, folder: str, changed_ns: int) -> bool:
        newest_ns = max(changed_ns, self._newest.get(folder, 0))
        return newest_ns < self._lately_ns and folder not in self._hinted

    def _date(self, path: str, mtime_ns: int) -> None:
        folder = path.rpartition("/")[0]
        if mtime_ns > self._newest.get(folder, 0):
            self._newest[folder] = mtime_ns


_name = attrgetter("name")

_SURVEY: ContextVar[Survey | None] = ContextVar("_SURVEY", default=None)
"""The survey of the scan that this thread makes; without one everything is listed and made."""


@contextmanager
def surveying(survey: Survey) -> Iterator[None]:
    """Let what is listed within leave out what the survey knows."""
    reset = _SURVEY.set(survey)
    try:
        yield
    finally:
        _SURVEY.reset(reset)


def listing(folder: str | Path) -> list["os.DirEntry[str]"]:
    """Return what a folder holds in order of names; what cannot be listed holds nothing."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_name)
    except OSError:
        return []


def news_in(folder: str | Path) -> list["os.DirEntry[str]"]:
    """Return what a folder of sessions holds; a quick scan leaves out the files of a quiet folder."""
    survey = _SURVEY.get()
    return listing(folder) if survey is None else survey.listing(os.fspath(folder), known_too=True)


def changed_in(folder: str | Path) -> list["os.DirEntry[str]"]:
    """Return what a folder of sessions holds; every scan leaves out the files that lie as it knows them."""
    survey = _SURVEY.get()
    return listing(folder) if survey is None else survey.listing(os.fspath(folder), known_too=False)


def files_below(folder: str | Path, levels: int) -> Iterator["os.DirEntry[str]"]:
    """Yield what a folder of sessions and its sub-folders, `levels` deep, hold; a sub-folder's content for its name.

    As `changed_in` does, without what a scan knows.
    """
    return chain.from_iterable(_lists_below(folder, levels))


def _lists_below(folder: str | Path, levels: int) -> Iterator[Sequence["os.DirEntry[str]"]]:
    """Yield the same in lists, a whole folder at a time where it can hold no more folders."""
    entries = changed_in(folder)
    if not levels:
        yield entries
        return
    for entry in entries:
        if is_folder(entry):
            if is_tellable(entry.name):
                yield from _lists_below(entry.path, levels - 1)
        else:
            yield (entry,)


def is_folder(entry: "os.DirEntry[str]") -> bool:
    """Tell whether an entry is a folder or leads to one; a link that leads in a circle, or is barred, is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_tellable(name: str) -> bool:
    """Tell whether a name can be kept in the ledger and shown on one line; others are nobody's session, but counted."""
    if name.isprintable():
        return True
    if (survey := _SURVEY.get()) is not None:
        survey.untellable.add(ascii(name)[1:-1])
    return False


def without_known(files: Iterable[SessionFile]) -> Iterable[SessionFile]:
    """Return those of the files, which `news_in` gave, that the scan that is made does not know as they lie."""
    survey = _SURVEY.get()
    return files if survey is None else survey.passes_over(files)


def leave_aside(file: SessionFile) -> None:
    """Let scans know a file that is a second one of its session: it is news again once it changes."""
    survey = _SURVEY.get()
    if survey is not None:
        survey.remember(file.name, file.size, file.mtime_ns)


def session_file(agent: str, entry: "os.DirEntry[str]") -> SessionFile | None:
    """Describe a regular file of a listing; None for anything else, and for what is gone since."""
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # the next scan sees what became of it
    return SessionFile(agent, entry.path, facts.st_size, facts.st_mtime_ns) if S_ISREG(facts.st_mode) else None


def locate_file(agent: str, path: Path) -> SessionFile:
    """Look at a session's file without opening it. Raises SessionVanished."""
    try:
        facts = path.stat()
    except OSError as error:
        raise SessionVanished(
            f"the session file {path} is no longer there", remedy="its memory, if it has one, stays"
        ) from error
    return SessionFile(agent, str(path), facts.st_size, facts.st_mtime_ns)
