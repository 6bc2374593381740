"""One look at a session's file: what its beginning and its end say, as it may be kept."""

from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from memoryd.errors import SessionUnreadable
from memoryd.ledger.sessions import Sighting
from memoryd.pipeline.context import Agent
from memoryd.redact import Redactor
from memoryd.sources.items import SessionFile, SessionHead
from memoryd.text import on_one_line

NAMES_KEPT: Final = 1_024


def look_at(agent: Agent, file: SessionFile, redactor: Redactor) -> Sighting:
    """Read a session's head and tail. Raises SessionVanished or another SourceError."""
    head, tail = presentable(agent.reader.head(file), redactor), agent.reader.tail(file)
    return Sighting(
        thread_id=head.thread_id,
        agent=head.agent,
        path=file.name,
        cwd=head.cwd,
        git_branch=head.git_branch,
        parent_id=head.parent_id,
        kind=head.kind.value,
        originator=head.originator,
        started_at=head.started_at,
        size=file.size,
        mtime_ns=file.mtime_ns,
        updated_at=tail.last_record_at,
        record_bytes=tail.record_bytes,
        memory_mode=(tail.memory_mode or head.memory_mode).value,
        timed=tail.timed,
        ephemeral=head.ephemeral,
        lineage=None if head.lineage is None or redactor.contains_secret(head.lineage) else head.lineage,
    )


def presentable(head: SessionHead, redactor: Redactor) -> SessionHead:
    """Return the head as it may stand in the ledger, a request or a file: its names on one line and without secrets.

    Raises SessionUnreadable when its id holds a secret: everything is filed under the id.
    """
    if redactor.contains_secret(head.thread_id):
        raise SessionUnreadable("cannot keep this session: its id holds what looks like a secret")

    cwd = _name(redactor, head.cwd)
    if cwd and not (PurePosixPath(cwd).is_absolute() or PureWindowsPath(cwd).is_absolute()):
        cwd = None  # no directory that anybody could be in
    parent = None if redactor.contains_secret(head.parent_id or "") else head.parent_id
    return replace(
        head,
        parent_id=parent,
        cwd=cwd,
        git_branch=_name(redactor, head.git_branch),
        originator=_name(redactor, head.originator),
    )


@lru_cache(maxsize=NAMES_KEPT)
def _name(redactor: Redactor, text: str | None) -> str | None:
    """Return a name on one line and without secrets; thousands of sessions share a few directories and branches."""
    return redactor.clean(on_one_line(text)) or None if text else None
