"""A new ledger beside a memory that is older than it: what the folder says takes the place of what was lost.

Without this the first consolidation would find no evidence for anything, and empty the memory. Nothing is sent for it,
and nothing in the folder changes: the outputs of stage 1 are read back from raw_memories.md and the rollout summaries.
"""

from collections.abc import Sequence
from sqlite3 import Connection

from memoryd import logs
from memoryd.ledger import meta, outputs, sessions
from memoryd.ledger.outputs import NewOutput, Snapshot
from memoryd.ledger.sessions import Covered, Sighting
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.edits import remember_folder
from memoryd.workspace.folder import Folder
from memoryd.workspace.rereading import ReadBack, reread

log = logs.get()

NOTHING_READ = 0
"""Size, time and bytes of a session's file that nobody has looked at: the next scan does."""


async def adopt_folder(context: Context) -> int:
    """Take the folder's evidence into a ledger that has not begun yet; return how many sessions it was."""
    if await context.ledger.read(meta.get, meta.FIRST_START) is not None or await context.ledger.read(outputs.is_any):
        return 0  # what was imported before the first start has its rows
    found = reread(await in_thread(Folder.read, context.home.memories))
    if not found:
        return 0
    await context.ledger.write(_adopt, found, now=context.clock.now())
    await remember_folder(context)
    log.warning("memory.adopted", count=len(found))
    return len(found)


def _adopt(conn: Connection, found: Sequence[ReadBack], *, now: float) -> None:
    for each in found:
        sessions.upsert(conn, _sighting(each), now)
        sessions.fix_stem(conn, each.thread_id, each.stem)
        sessions.record_covered(conn, each.thread_id, Covered(each.updated_at, NOTHING_READ))
        output = NewOutput(each.thread_id, each.updated_at, each.raw_memory, each.rollout_summary, each.slug, each.stem)
        outputs.store(conn, output, now=now)
    outputs.mark_consumed(conn, [Snapshot(each.thread_id, each.updated_at) for each in found])


def _sighting(each: ReadBack) -> Sighting:
    return Sighting(
        thread_id=each.thread_id,
        agent=each.agent or "unknown",
        path=each.rollout_path or f"unknown/{each.thread_id}",
        cwd=each.cwd,
        git_branch=each.git_branch,
        parent_id=None,
        kind="interactive",
        originator=None,
        started_at=None,
        size=NOTHING_READ,
        mtime_ns=NOTHING_READ,
        updated_at=each.updated_at,
        record_bytes=NOTHING_READ,
    )
