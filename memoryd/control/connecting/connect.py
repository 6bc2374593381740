"""Puts memoryd into an agent's settings and takes it out again; what is not ours stays as it is, to the byte.

    look -> refuse or plan (pure) -> backup -> record -> the file

A crash between these steps leaves the file as it was before or as it is after, and the next connect or disconnect
tells which by its digest.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from memoryd.control.connecting import files, record
from memoryd.control.connecting.edits import Unusable
from memoryd.control.connecting.files import Found, backup_of, look
from memoryd.control.connecting.json_edit import Seam
from memoryd.control.connecting.record import Record, digest
from memoryd.control.connecting.target import MCP, SKILL, Target, Way, skill_way
from memoryd.control.connecting.targets import TARGETS
from memoryd.errors import UsageError
from memoryd.recall.runner import install_runner
from memoryd.workspace.layout import Home


class Done(StrEnum):
    """How it ended."""

    CONNECTED = "connected"
    ALREADY = "already connected"
    RESTORED = "restored"
    TAKEN_OUT = "taken out"
    GONE = "was gone"
    NOT_CONNECTED = "not connected"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to one file, or would be: its content before and after (None: no file)."""

    done: Done
    agent: str
    via: str = ""
    path: Path | None = None
    before: bytes | None = None
    after: bytes | None = None
    backup: Path | None = None
    advice: list[str] = field(default_factory=list)
    part: str = ""
    """"" is the memory itself; else what is given beside it."""
    why: str = ""
    """Why it was left out."""

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        if self.path is None or self.before == self.after:
            return ""
        names = ["/dev/null" if data is None else str(self.path) for data in (self.before, self.after)]
        old, new = [(data or b"").decode("utf-8").splitlines(keepends=True) for data in (self.before, self.after)]
        lines = difflib.unified_diff(old, new, names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What connecting would write, and from what content it starts (None: the file is ours alone)."""

    way: Way
    found: Found
    base: bytes | None
    after: bytes
    seam: Seam


def target_of(agent: str) -> Target:
    """Return the agent of that name. Raises UsageError."""
    if agent not in TARGETS:
        raise UsageError(f"there is no agent {agent!r} to connect", remedy=f"choose one of: {', '.join(TARGETS)}")
    return TARGETS[agent]


def way_of(agent: str, via: str | None, home: Home, environ: Mapping[str, str]) -> Way:
    """Return the way that was asked for, else the usual one. Raises UsageError, also when the agent is not here."""
    target = target_of(agent)
    chosen = via or target.VIAS[0]
    if chosen not in target.VIAS:
        raise UsageError(
            f"{target.TITLE} cannot be connected by {chosen}", remedy=f"it can by: {', '.join(target.VIAS)}"
        )
    if not str(home.path).isprintable():
        raise UsageError("the path of memoryd's folder holds control characters", remedy="choose another with --home")
    folder = target.folder(environ)
    if not folder.is_dir():
        raise UsageError(
            f"{target.TITLE} has no folder {folder}",
            remedy=f"install it and start it once, or set the variable that moves its settings; then `memoryd connect"
            f" {agent}`",
        )
    return target.ways(chosen, folder, home)[0]


def way_taken(kept: Record, home: Home) -> Way:
    """Return the way that was taken, wherever the agent's settings lie now. Raises UsageError for an unknown one."""
    target = target_of(kept.agent)
    for folder in kept.path.parents[:3]:
        for way in _ways_of(target, kept.via, folder, home):
            if way.file == kept.path:
                return way
    raise UsageError(
        f"this version does not know how {kept.agent} was connected by {kept.via} in {kept.path}",
        remedy=f"take it out by hand; the file as it was before is {kept.backup}",
    )


def connect(
    agent: str, via: str | None, home: Home, environ: Mapping[str, str], seen: dict[Path, Found], *, dry_run: bool
) -> Change:
    """Connect one agent to the memory; `seen` as for put_in. Raises UsageError for what is refused, StorageError."""
    way = way_of(agent, via, home, environ)
    change = put_in(agent, "", way, home, seen, dry_run=dry_run)
    advice = target_of(agent).advice(way.via, target_of(agent).folder(environ))
    return replace(change, advice=advice)


def put_in(agent: str, part: str, way: Way, home: Home, seen: dict[Path, Found], *, dry_run: bool) -> Change:
    """Put one part into its file. Raises UsageError for what is refused, StorageError for what cannot be written.

    `seen`: what files would hold by now in a dry run; it is added to.
    """
    kept = record.recorded(home, agent, part)
    if kept and (kept.path != way.file or kept.via != way.via):
        raise UsageError(
            f"{agent} is connected by {kept.via} in {kept.path}", remedy=f"first run `memoryd disconnect {agent}`"
        )
    found = seen.get(way.file) or look(way.file)
    plan = _plan(way, kept, found, part)
    already = kept is not None and (plan.after == found.data or _stands(way, found))
    backup = None if plan.base is None else backup_of(way.file, part)
    if not dry_run:
        install_runner(home)
        if not already:
            _write(agent, part, plan, home, kept)
    if kept is not None and already:
        there = kept.backup if kept.before is not None else None
        return Change(Done.ALREADY, agent, way.via, way.file, found.data, found.data, there, part=part)
    if dry_run:
        seen[way.file] = replace(found, data=plan.after)
    return Change(Done.CONNECTED, agent, way.via, way.file, found.data, plan.after, backup, part=part)


def take_out(
    agent: str, part: str, home: Home, environ: Mapping[str, str], seen: dict[Path, Found], *, dry_run: bool
) -> Change:
    """Take one part out of its file; `seen` as for put_in. Raises UsageError, StorageError."""
    kept = record.recorded(home, agent, part)
    if kept is None:
        return _take_out_unrecorded(agent, part, home, environ, seen, dry_run=dry_run)
    way = way_taken(kept, home)
    found = seen.get(kept.path) or look(kept.path)
    done, after = _undone(kept, way, found)
    if not dry_run:
        _settle(found, after)
        files.delete(kept.backup)
        files.delete_empty(kept.folders)
        record.forget(home, kept)
    if dry_run:
        seen[kept.path] = replace(found, data=after)
    return Change(done, agent, kept.via, kept.path, found.data, after, part=part)


def _ways_of(target: Target, via: str, folder: Path, home: Home) -> tuple[Way, ...]:
    if via == SKILL:
        return (skill_way(folder, home),)
    if via == MCP:
        return target.servers(folder, home)
    return target.ways(via, folder, home) if via in target.VIAS else ()


def _plan(way: Way, kept: Record | None, found: Found, part: str) -> _Plan:
    files.refuse_unwritable(found)
    try:
        if other := way.edit.others(found.text):
            raise UsageError(
                f"{way.file} is connected to another home of memoryd: {other}",
                remedy="disconnect it there first: `memoryd disconnect AGENT --home DIR`",
            )
        base = _base(way, found, kept, part)
        text, seam = way.edit.insert((base or b"").decode("utf-8"))
    except Unusable as error:
        raise files.refused(way.file, str(error)) from None
    return _Plan(way, found, base, text.encode("utf-8"), seam)


def _base(way: Way, found: Found, kept: Record | None, part: str) -> bytes | None:
    """Return the file's content without us."""
    if way.edit.mine(found.text) is None:
        return found.data
    if kept and digest(found.data) == kept.after:
        return _original(kept)
    seam = kept.seam if kept else Seam()
    text = way.edit.remove(found.text, seam)
    was_none = part == SKILL or (kept is not None and kept.before is None)
    return None if was_none and way.edit.is_bare(text) else text.encode("utf-8")


def _stands(way: Way, found: Found) -> bool:
    """Say whether ours is in place as it should be, whatever else changed in the file since."""
    try:
        return way.edit.stands(found.text)
    except Unusable:
        return False


def _original(kept: Record) -> bytes | None:
    """Return what the file held before us. Raises UsageError when its backup is not what it was."""
    backup = look(kept.backup).data
    if kept.before is None or digest(backup) == kept.before:
        return backup if kept.before else None
    raise files.refused(
        kept.backup, "it is gone, or no longer what it was", f"run `memoryd disconnect {kept.agent}` first"
    )


def _write(agent: str, part: str, plan: _Plan, home: Home, kept: Record | None) -> None:
    """Write backup, record and file, in this order: each says enough about what a crash after it has left."""
    path = plan.way.file
    folders = files.make_folders(path.parent)
    if plan.base is not None:
        backup = backup_of(path, part)
        files.replace(Found(backup, backup, look(backup).data, plan.found.mode & 0o700 | 0o600), plan.base)
    folders = [*(kept.folders if kept else []), *folders]
    record.keep(
        home,
        Record(agent, plan.way.via, path, digest(plan.base), str(digest(plan.after)), plan.seam, folders, part),
    )
    files.replace(plan.found, plan.after)


def _undone(kept: Record, way: Way, found: Found) -> tuple[Done, bytes | None]:
    """Say what the file becomes: what it was, if nobody has changed it since, else what it is without us."""
    state = digest(found.data)
    if found.data is None or state == kept.before:
        return Done.GONE, found.data
    files.refuse_unwritable(found)
    if state == kept.after:
        backup = look(kept.backup).data
        if digest(backup) == kept.before or kept.before is None:
            return Done.RESTORED, None if kept.before is None else backup
    try:
        if way.edit.mine(found.text) is None:
            return Done.GONE, found.data
        text = way.edit.remove(found.text, kept.seam)
    except Unusable as error:
        raise files.refused(
            kept.path, str(error), "correct it and try again, or take our entry out by hand; nothing was changed"
        ) from None
    return Done.TAKEN_OUT, None if kept.before is None and way.edit.is_bare(text) else text.encode("utf-8")


def _settle(found: Found, after: bytes | None) -> None:
    if after == found.data:
        return
    if after is None:
        files.delete(found.real)
    else:
        files.replace(found, after)


def _take_out_unrecorded(
    agent: str, part: str, home: Home, environ: Mapping[str, str], seen: dict[Path, Found], *, dry_run: bool
) -> Change:
    """Without a record (a home that was made anew, a crash): take out what is ours wherever it may stand."""
    target = target_of(agent)
    folder = target.folder(environ)
    vias = (part,) if part else target.VIAS
    ways = [way for via in vias if folder.is_dir() for way in _ways_of(target, via, folder, home)]
    for way in ways:
        found, backup = seen.get(way.file) or look(way.file), look(backup_of(way.file, part))
        after = _without_us(way, found, backup, home)
        if after != found.data:
            files.refuse_unwritable(found)
        if not dry_run:
            _settle(found, after)
            if backup.data is not None and backup.data == after:
                files.delete(backup.path)  # a crash left it, or what it was for is done now
        if after != found.data:
            if dry_run:
                seen[way.file] = replace(found, data=after)
            return Change(Done.TAKEN_OUT, agent, way.via, way.file, found.data, after, part=part)
    return Change(Done.NOT_CONNECTED, agent, part=part)


def _without_us(way: Way, found: Found, backup: Found, home: Home) -> bytes | None:
    """Return what the file is without us; one that is broken is left as it is, if nothing of ours stands in it."""
    try:
        return _guessed(way, found, backup)
    except (Unusable, UsageError) as error:
        if not _may_name(home, found):
            return found.data
        if isinstance(error, UsageError):
            raise
        raise files.refused(way.file, str(error)) from None


def _may_name(home: Home, found: Found) -> bool:
    """Say whether a file, readable or not, has the path of memoryd's folder in it, as all that is ours has."""
    spelled = str(home.path), json.dumps(str(home.path))[1:-1]
    return any(path.encode() in (found.data or b"") for path in spelled)


def _guessed(way: Way, found: Found, backup: Found) -> bytes | None:
    """Return what the file is without us: what it was, where it is exactly what connecting makes of that."""
    if way.edit.mine(found.text) is None:
        return found.data
    for before, text in ((None, ""), (backup.data, backup.text)):
        try:
            if way.edit.insert(text)[0] == found.text:
                return before
        except Unusable:
            continue  # the backup is of something else
    return way.edit.remove(found.text, Seam()).encode("utf-8")
