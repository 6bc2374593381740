"""Notices what a person changed in the memory folder: an edit, a note, an extension file. Each is an input."""

from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection

from memoryd import logs
from memoryd.ledger import jobs, meta, publications
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.pipeline.context import Context, in_thread
from memoryd.workspace import restoring
from memoryd.workspace.folder import folder_signature
from memoryd.workspace.layout import EXTENSIONS

log = logs.get()

EDIT_DEBOUNCE_SECONDS = 600.0
"""A person who edits is given time to finish."""
FOLDER_KEY = "folder_signature"
NOTES_KEY = "notes_signature"
EMPTY = sha256().hexdigest()
"""The signature of a folder without inputs, also of one that is not there."""


async def notice_edits(context: Context) -> bool:
    """Enqueue consolidation when the folder is not as memoryd left it; tell whether it did. Reads no file's content.

    A folder in which a publication is being put in place is changed by memoryd itself: it is looked at afterwards.
    """
    async with context.placing:
        if await context.ledger.read(publications.pending) is not None:
            return False
        if await restore_folder(context):
            return True
        return await _compare(context)


async def restore_folder(context: Context) -> bool:
    """Put back a folder that was deleted; tell whether consolidation has to rebuild it. The caller holds `placing`.

    Nobody forgets by removing everything: `reset` does. From the history the files come back at once; where that is
    gone, too, the outputs of stage 1 are consolidated anew. Each is said once.
    """
    if restored := await in_thread(restoring.restore, context.home, context.repository, still_ours=context.still_ours):
        await remember_folder(context)
        await _refresh_recall(context)
        log.warning("folder.restored", count=restored)
        return False
    was_there = await context.ledger.read(_known, FOLDER_KEY) != EMPTY
    if not was_there or context.home.git_dir.exists() or not await in_thread(restoring.is_lost, context.home):
        return False
    await _enqueue(context, context.settings.consolidate.debounce)
    await remember_folder(context)
    log.warning("folder.missing", folder=str(context.home.memories))
    return True


async def _enqueue(context: Context, debounce: float) -> None:
    settings = context.settings.consolidate
    await context.ledger.write(
        jobs.enqueue_consolidation,
        now=context.clock.now(),
        timing=ConsolidateTiming(debounce, settings.min_interval),
        max_attempts=context.settings.ledger.max_attempts,
        reason="folder",
    )


async def _compare(context: Context) -> bool:
    seen = await _signatures(context)
    known = {key: await context.ledger.read(_known, key) for key in seen}
    if seen == known:
        return False
    settings = context.settings.consolidate
    debounce = settings.debounce if seen[NOTES_KEY] != known[NOTES_KEY] else EDIT_DEBOUNCE_SECONDS
    await _enqueue(context, max(debounce, settings.debounce))
    await _remember(context, seen)
    await _refresh_recall(context)
    log.info("folder.edited", notes=seen[NOTES_KEY] != known[NOTES_KEY])
    return True


async def _refresh_recall(context: Context) -> None:
    """Have what agents search follow what a person wrote, before any consolidation has taken it in."""
    accepted = await in_thread(context.repository.accepted) if context.home.git_dir.is_dir() else None
    if accepted is not None:
        await in_thread(context.refresh_recall, accepted)


async def remember_folder(context: Context) -> None:
    """Take the folder as it is for what memoryd left; called after each publication."""
    await _remember(context, await _signatures(context))


async def _signatures(context: Context) -> dict[str, str]:
    folder = context.home.memories
    return {
        FOLDER_KEY: await in_thread(_signature, folder),
        NOTES_KEY: await in_thread(_signature, folder / EXTENSIONS),
    }


def _known(conn: Connection, key: str) -> str:
    return meta.get(conn, key) or EMPTY


def _signature(folder: Path) -> str:
    return folder_signature(folder) if folder.is_dir() else EMPTY


async def _remember(context: Context, signatures: dict[str, str]) -> None:
    for key, signature in signatures.items():
        await context.ledger.write(meta.put, key, signature)
