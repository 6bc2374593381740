"""Keeps what agents read in step with the memory and the settings: recall/, the search index, the hook's runner."""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any, Final, TypeVar

from memoryd import logs
from memoryd.config import Settings
from memoryd.errors import LeaseLost, LedgerCorrupt, MemorydError
from memoryd.ledger import outputs, search, sessions
from memoryd.ledger.database import Ledger
from memoryd.pipeline.context import Context, in_thread
from memoryd.recall.entries import MADE_AS
from memoryd.recall.ready import Circumstances, refresh
from memoryd.recall.runner import install_runner
from memoryd.recall.search_refresh import make_change, outdated, states_of
from memoryd.redact import Redactor
from memoryd.workspace.layout import Home

log = logs.get()
T = TypeVar("T")

READ_SECONDS: Final = 30.0
"""A ledger that does not answer for so long is being closed."""
WRITE_SECONDS: Final = 120.0
"""Longer than the ledger tries to get the write lock from another program."""


@dataclass(frozen=True, slots=True)
class RecallRefresher:
    """What stages call with the accepted commit, on a thread of its own; what the ledger knows is asked on its loop."""

    settings: Settings
    home: Home
    ledger: Ledger
    loop: asyncio.AbstractEventLoop
    redactor: Redactor
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Two refreshes at once could leave what the earlier one saw."""

    def __call__(self, commit: str) -> bool:
        """Rewrite recall/, and what search finds, where they are out of date; tell whether recall/ was.

        Blocking, and never on the loop's own thread. Both name what they were made of, so that a crash between the
        publication and here, or between the two, is made up for by the next call.
        """
        with self.turn:
            reading = self.ledger.read(functools.partial(circumstances, settings=self.settings))
            rewritten = refresh(self.home, commit, self._asked(reading, READ_SECONDS))
            self._refresh_index()
        return rewritten

    def _refresh_index(self) -> None:
        states = {
            path: state for path, state in states_of(self.home).items() if not self.redactor.contains_secret(path)
        }
        made_as = f"{MADE_AS}/{self.redactor.fingerprint}"
        known, indexed = self._asked(self.ledger.read(_index_made_of, made_as), READ_SECONDS)
        wanted = outdated(states, known, indexed)
        if not wanted.paths:
            return
        valid_from = self._asked(self.ledger.read(search.valid_from), READ_SECONDS)
        change = make_change(self.home, wanted, valid_from, self.redactor.clean)
        writing = self.ledger.write(search.replace_entries, change, made_as=made_as)
        changed = self._asked(writing, WRITE_SECONDS)
        log.debug("search.refreshed", files=len(wanted.paths), count=changed)

    def _asked(self, asked: Coroutine[Any, Any, T], seconds: float) -> T:
        return asyncio.run_coroutine_threadsafe(asked, self.loop).result(seconds)


def refresher(settings: Settings, home: Home, ledger: Ledger) -> Callable[[str], object]:
    """Return what a Context takes as `refresh_recall`."""
    redactor = Redactor(settings.privacy.patterns)
    return RecallRefresher(settings, home, ledger, asyncio.get_running_loop(), redactor)


def circumstances(conn: Connection, *, settings: Settings) -> Circumstances:
    """Gather what decides what agents are given."""
    return Circumstances(
        settings.recall,
        tuple(map(str, settings.user_homes)),
        tuple(sessions.without_recall(conn)),
        outputs.usage_by_stem(conn),
    )


def _index_made_of(conn: Connection, made_as: str) -> tuple[dict[str, search.State], frozenset[str]]:
    return search.known_files(conn, made_as=made_as), search.indexed_paths(conn)


async def keep_recall_ready(context: Context) -> None:
    """Bring recall/ and the runner up to date: after a start, a change of the settings, or the person's word.

    What is in the way is logged: the next pass tries again, and agents read what stands meanwhile.
    """
    try:
        await in_thread(install_runner, context.home)
        accepted = await in_thread(context.repository.accepted) if context.home.git_dir.is_dir() else None
        if accepted is not None:
            await in_thread(context.refresh_recall, accepted)
    except (LeaseLost, LedgerCorrupt):
        raise
    except MemorydError as error:
        log.warning("recall.postponed", error=str(error))
