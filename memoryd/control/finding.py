"""Finds the session that a person means: by its path, its thread id or the beginning of one, synced or not.

Readers are asked what lies in the folders (`find`) and what a path names (`locate`); files are opened only where their
names do not tell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoryd.errors import SessionVanished, SourceError, UsageError
from memoryd.pipeline.context import Agent
from memoryd.sources.items import SessionFile, SessionHead
from memoryd.sources.readers import READERS

MOST_PARENTS = 8
"""How far above a session's file its agent's home is looked for."""
MOST_HEADS = 20_000
MOST_NAMED = 5
"""How many sessions are opened to find an id that stands in no file name."""
ANY_FOLDER = frozenset({"generic"})
"""Readers that would find a session in any folder: they are asked only about the homes that they are given."""
COMPRESSED = ".zst"
ARCHIVE = "archived_sessions"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session's file with the agent that it belongs to; `problem` says why it cannot be read, then it has no head."""

    agent: Agent
    file: SessionFile
    head: SessionHead | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The session that was meant, and the other files that bear the same thread id."""

    session: Candidate
    same_id: tuple[Candidate, ...] = ()


def find_session(agents: Mapping[str, Agent], wanted: str, known_path: str | None) -> Found:
    """Find a session; `known_path` is where the ledger saw it. Raises UsageError when none, or several, are meant."""
    path = Path(known_path or wanted).absolute()
    session = _by_path(agents, path)
    if session is None and known_path is None:
        session = _by_thread(agents, wanted)
    if session is None:
        raise UsageError(
            f"there is no session {wanted!r} in the folders of {', '.join(agents) or 'any agent: none is configured'}"
            + (f"; the file {known_path}, in which it was seen, is gone" if known_path else ""),
            remedy="`memoryd explain` lists the newest sessions; `memoryd init` configures agents",
        )
    return Found(session, tuple(_same_id(agents, session)))


def look(agent: Agent, file: SessionFile) -> Candidate:
    """Read the beginning of a session, or say why it cannot be read."""
    try:
        return Candidate(agent, file, agent.reader.head(file))
    except SourceError as error:
        return Candidate(agent, file, None, str(error))


def neighbours(agent: Agent, file: SessionFile) -> Iterator[SessionFile]:
    """Yield the sessions that lie beside one: in the same folder, or in the same store."""
    place = _place(file.path)
    for other in agent.reader.find(agent.homes or tuple(file.path.parents)[:MOST_PARENTS]):
        if other.path != file.path and _place(other.path) == place:
            yield other


def _place(path: Path) -> Path:
    store, mark, _ = str(path).partition("#")
    return Path(store) if mark else path.parent


def _by_path(agents: Mapping[str, Agent], path: Path) -> Candidate | None:
    """Find the reader that a path belongs to: the one in whose folders it lies, else the first that can read it."""
    everyone = [*agents.values(), *(Agent(reader, ()) for name, reader in READERS.items() if name not in agents)]
    for agent in everyone:
        if file := _claimed(agent, path):
            return look(agent, file)
    if not path.exists() or path.is_dir():
        return None
    tries = [look(agent, agent.reader.locate(path)) for agent in everyone if agent.reader.name in agents or not agents]
    return next((one for one in tries if one.head), tries[0])


def _claimed(agent: Agent, path: Path) -> SessionFile | None:
    """Ask a reader whether it would find this very path, in its homes or in the folders above the path."""
    above = () if agent.reader.name in ANY_FOLDER else tuple(path.parents)[:MOST_PARENTS]
    for folder in (*(home for home in agent.homes if path.is_relative_to(home)), *above):
        for file in agent.reader.find([folder]):
            if file.path == path:
                return file
    return None


def _by_thread(agents: Mapping[str, Agent], wanted: str) -> Candidate | None:
    """Find a session by its id: those whose names hold it are opened first, others only if none of them fits."""
    given, mark, rest = wanted.partition(":")
    needle = (rest if mark and given in READERS else wanted).lower()
    if not needle:
        return None
    files = [(agent, file) for agent in agents.values() for file in agent.reader.find(agent.homes)]
    named = [look(agent, file) for agent, file in files if needle in _name(file.path)]
    found = [one for one in named if one.head and _is_meant(one.head, needle)] or [one for one in named if one.problem]
    if not found:
        files.sort(key=lambda pair: pair[1].mtime_ns, reverse=True)
        others = (look(agent, file) for agent, file in files[:MOST_HEADS] if needle not in _name(file.path))
        found = [one for one in others if one.head and _is_meant(one.head, needle)]
    names = {one.head.thread_id if one.head else str(one.file.path) for one in found}
    if len(names) > 1:
        several = ", ".join(sorted(names)[:MOST_NAMED])
        several += f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        raise UsageError(f"{wanted} fits several sessions: {several}", remedy="give more of the id")
    return found[0] if found else None


def _name(path: Path) -> str:
    """Return the part of a path in which an id may stand."""
    return "/".join(path.parts[-2:]).lower()


def _is_meant(head: SessionHead, needle: str) -> bool:
    return head.thread_id.rpartition(":")[2].lower().startswith(needle)


def _same_id(agents: Mapping[str, Agent], session: Candidate) -> Iterator[Candidate]:
    """Yield what else bears a session's id: compressed and archived twins, copies, another agent's session."""
    if session.head is None:
        return
    bare = session.head.thread_id.rpartition(":")[2]
    seen = {session.file.path}
    for agent in agents.values():
        named = [file for file in agent.reader.find(agent.homes) if bare.lower() in _name(file.path)]
        for file in (*named, *(_twins(session) if agent.reader.name == session.agent.reader.name else ())):
            one = look(agent, file) if file.path not in seen else None
            seen.add(file.path)
            if one and one.head and one.head.thread_id == session.head.thread_id:
                yield one


def _twins(session: Candidate) -> Sequence[SessionFile]:
    """List the files of the same name, plain or compressed, beside a session and in the archive of its home."""
    path, found = session.file.path, []
    plain = path.name.removesuffix(COMPRESSED)
    homes = session.agent.homes or tuple(path.parents)[:MOST_PARENTS]
    folders = [path.parent, *(home / ARCHIVE for home in homes)]
    days = [day for home in homes if path.parent.name == ARCHIVE for day in home.glob("sessions/*/*/*")]
    for folder in (*folders, *days):
        for name in (plain, plain + COMPRESSED):
            try:
                found.append(session.agent.reader.locate(folder / name))
            except SessionVanished:
                continue
    return found
