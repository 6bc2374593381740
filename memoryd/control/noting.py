"""How a note is left: written as a file of its own, and looked at by whoever holds the lock.

It waits for nobody: where the ledger is locked by another program, the next scan sees the file.
"""

import asyncio
from pathlib import Path
from typing import Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.errors import LedgerBusy, StorageError
from memoryd.pipeline.edits import notice_edits
from memoryd.redact import Redactor
from memoryd.workspace.layout import Home, prepare
from memoryd.workspace.notes import write_note

PATIENCE_SECONDS: Final = 10.0
"""A daemon that hangs, or is stopped, must not keep an agent: the note is a file already."""


def leave_note(settings: Settings, text: str) -> Path:
    """Write a note, without what is a secret in it, and let whoever holds the lock look at it."""
    path = write(settings, text)
    asyncio.run(let_know(settings))
    return path


def write(settings: Settings, text: str) -> Path:
    """Write a note, without what is a secret in it. Raises UsageError for a blank one, StorageError."""
    home = Home(settings.home)
    prepare(home)
    return write_note(home, Redactor(settings.privacy.patterns).clean(text), now=SystemClock().now())


async def let_know(settings: Settings, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Have the notes looked at: by the daemon, or here. Raises MemorydError, also when the daemon does not answer.

    Neither a command that holds the lock now nor a program that keeps the ledger locked is waited for: the next scan
    sees the note.
    """
    home, clock, environ = Home(settings.home), SystemClock(), config.environ()
    try:
        async with open_house(settings, clock=clock, environ=environ, role="note", patience_seconds=0) as context:
            await notice_edits(context)
    except LedgerBusy:
        if daemon_holds(home):
            await _ask(home, patience_seconds)


async def _ask(home: Home, patience_seconds: float) -> None:
    try:
        async with asyncio.timeout(patience_seconds):
            await control_socket.ask(home.socket, {"do": "note"}, lambda _step: None)
    except TimeoutError:
        raise StorageError(
            f"the daemon has not answered within {patience_seconds:g} s; the note is kept, and seen by its next scan",
            remedy="`memoryd status` says what it does",
        ) from None
