"""Retention of history by age and size: the oldest changes become one, and the objects are packed."""

from sqlite3 import Connection

from memoryd import logs
from memoryd.ledger import jobs, proposals, publications
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.states import JobKind
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.plausibility import clock_standing
from memoryd.workspace import shortening
from memoryd.workspace.git import Repository
from memoryd.workspace.shortening import Room, Shortened

log = logs.get()


async def keep_history(context: Context) -> int:
    """Cut and pack the history where it is due; return how many changes became one.

    Put off while something is decided, proposed or running, and while the clock is in doubt: a next time comes. Raises
    GitError.
    """
    repo = context.repository
    if not repo.git_dir.is_dir() or (await clock_standing(context.ledger, context.clock)).doubt is not None:
        return 0
    async with context.forgetting, context.placing:
        if not await context.ledger.read(_is_quiet):
            return 0
        context.still_ours()
        room = await in_thread(_packed, repo, context.settings.consolidate.history_max_size)
        written = await in_thread(_shortened, context, room)
        if written is None:
            return 0
        context.reached("history_written")
        if not await context.ledger.write(_move, context, written):
            return 0
        context.reached("history_moved")
        await in_thread(context.refresh_recall, written.accepted)
        await in_thread(shortening.forget_moves, repo)
        await in_thread(shortening.collect, repo)
    log.info("history.shortened", count=written.removed, commit=written.accepted[:12])
    return written.removed


def _packed(repo: Repository, max_bytes: int) -> Room:
    """Pack the objects if there are many, or if they take too much; return what they take then (blocking)."""
    room = shortening.room(repo)
    if room.loose < shortening.MANY_LOOSE and (room.bytes <= max_bytes or not room.loose):
        return room
    shortening.collect(repo)
    return shortening.room(repo)


def _shortened(context: Context, room: Room) -> Shortened | None:
    settings = context.settings.consolidate
    commits = shortening.line_of(context.repository)
    now = context.clock.now()
    is_too_old = bool(commits) and commits[-1][1] < now - shortening.SLACK * settings.history_max_age
    keep = shortening.commits_to_keep(
        commits,
        oldest_at=now - settings.history_max_age if is_too_old else 0,
        is_too_large=room.bytes > shortening.SLACK * settings.history_max_size,
    )
    return None if keep is None else shortening.shorten(context.repository, commits, keep)


def _is_quiet(conn: Connection) -> bool:
    """Tell whether no commit is in use that a shorter history would not know."""
    return (
        publications.pending(conn) is None
        and proposals.waiting(conn) is None
        and not any(row.kind == JobKind.CONSOLIDATE for row in jobs.running(conn))
    )


def _move(conn: Connection, context: Context, written: Shortened) -> bool:
    """Move the refs while nobody can lease the consolidation or decide anything; whoever prepared an undo sees it."""
    if not _is_quiet(conn):
        return False
    now = context.clock.now()
    shortening.move_refs(context.repository, written)
    publication = NewPublication(written.accepted, written.was_accepted)
    publications.mark_published(conn, publications.decide(conn, publication, attempt_id=None, now=now), now=now)
    return True
