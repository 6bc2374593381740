"""What an agent's hook runs: it reads what the agent says, looks up one ready-made text, and prints it.

The agent waits for this, so it imports the standard library only, reads bounded amounts for a bounded time, and fails
open: whatever is wrong, nothing is printed and the exit code is 0. runner.py copies this very file to MEMORYD_HOME/bin.
"""

import os
import select
import stat
import sys
import time

IS_CPYTHON = sys.implementation.name == "cpython"
if IS_CPYTHON:
    # What json and signal are made of: importing these two takes longer than all else here, for what is not needed.
    import _json
    import _signal  # type: ignore[import-not-found]  # it has no stub

MARKER = "<memoryd_memory>"
MAX_STDIN_BYTES = 1 << 20
STDIN_SECONDS = 1.0
LIFE_SECONDS = 5
"""After so long it is gone, whatever holds it up: a disk that hangs is not the agent's concern."""
MAX_INDEX_BYTES = 4 << 20
MAX_TEXT_BYTES = 64 << 10
"""A ready-made text has at most 9,500 characters: what is larger is none of ours."""
MAX_LINK_BYTES = 4096
MAX_DEPTH = 200
EVERYWHERE = "everywhere.md"
INDEX = "index.json"
START = "sessionstart"
HOOK_SPECIFIC = '{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": TEXT}}'
SCHEMAS = {
    **dict.fromkeys(("claude", "codex", "gemini", "qwen"), HOOK_SPECIFIC),
    "copilot": '{"additionalContext": TEXT}',
    "cursor": '{"additional_context": TEXT, "continue": true}',
}
"""What each agent takes, and nothing else: TEXT is a JSON string."""


class Found:
    """The name of the file in recall/ that a session is given (None: nothing), and why: a word and its detail."""

    def __init__(self, file: "str | None", why: str, detail: str = "") -> None:
        """Take all three; a plain class, since dataclasses take longer to import than all of this to run."""
        self.file = file
        self.why = why
        self.detail = detail


def run(recall: str, agent: str, event: str) -> int:
    """Answer one hook: what the agent sent is on stdin, the answer goes to stdout. Always 0."""
    try:
        live_for(LIFE_SECONDS)
        answer = reply(recall, agent, event, read_stdin(0))
        if answer:
            os.write(1, answer.encode())
    except Exception:  # noqa: BLE001, S110 -- fails open: the agent's session is worth more than its memory
        pass
    finally:
        live_for(0)
    return 0


def reply(recall: str, agent: str, event: str, said: bytes) -> str:
    """Return what is printed: exactly what the agent's schema allows, or nothing."""
    if event.casefold() != START:
        return ""
    request = parsed(said)
    named = request.get("hook_event_name", event)
    if request.get("agent_id") or not isinstance(named, str) or named.casefold() != START:
        return ""  # a sub-agent is given nothing: its parent passes on what matters
    cwd = working_directory(request)
    session = request.get("session_id") or request.get("sessionId") or request.get("conversation_id") or ""
    text = given(recall, cwd, agent=agent, session=str(session))
    return in_schema(agent, text) if text else ""


def working_directory(request: "dict[str, object]") -> str:
    """Return the session's directory; Cursor names the folders of its window instead."""
    roots = request.get("workspace_roots")
    cwd = request.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    return cwd if isinstance(cwd, str) and os.path.isabs(cwd) else ""


def in_schema(agent: str, text: str) -> str:
    """Put the text where the agent takes it from; nothing for an agent whose schema is not known."""
    schema = SCHEMAS.get(agent, "")
    return f"{schema.replace('TEXT', quoted(text))}\n" if schema else ""


def given(recall: str, cwd: str, *, agent: str, session: str) -> str:
    """Return the ready-made text of a session, empty when there is none for it."""
    for _ in range(2):  # the files of an index may be gone when it was replaced meanwhile
        index = parsed(read_bounded(os.path.join(recall, INDEX), MAX_INDEX_BYTES))
        found = look_up(index, cwd, agent=agent, session=session)
        if found.file is None:
            return ""
        try:
            text = read_bounded(os.path.join(recall, os.path.basename(found.file)), MAX_TEXT_BYTES).decode()
        except FileNotFoundError:
            continue
        return text if text.startswith(MARKER) else ""
    return ""


def look_up(index: "dict[str, object]", cwd: str, *, agent: str = "", session: str = "") -> Found:
    """Decide what a session in `cwd` is given. The index is what ready.py wrote.

    The project is that of the nearest known directory above, also by way of a symlink or of the repository that a
    worktree belongs to.
    """
    if index["scope"] == "off":
        return Found(None, "off")
    if not cwd:
        return Found(None, "no_cwd")
    without = index["without_recall"]
    if session and isinstance(without, list) and {session.lower(), f"{agent}:{session}".lower()} & set(without):
        return Found(None, "no_recall", session)
    places = [normal(cwd)]
    real = normal(os.path.realpath(cwd))
    places += [real] if real != places[0] else []
    if is_excluded(index["excluded"], places):
        return Found(None, "excluded_cwd")
    if index["scope"] == "all":
        return Found(EVERYWHERE, "all")
    for place in places:
        found = nearest(index, place)
        if found is not None:
            return found
    return Found(EVERYWHERE, "everywhere")


def is_excluded(patterns: object, places: "list[str]") -> bool:
    """Say whether a place, or a directory above it, matches one of the regular expressions."""
    if not isinstance(patterns, list) or not patterns:
        return False
    import re

    return any(re.match(pattern, way) for pattern in patterns for place in places for way in above(place))


def nearest(index: "dict[str, object]", place: str) -> "Found | None":
    """Return the file of the nearest known directory at or above a place, or None."""
    directories, repositories = index["directories"], index["repositories"]
    if not isinstance(directories, dict) or not isinstance(repositories, dict):
        return None
    homes, alone = index["homes"], index["alone"]
    ways = above(place)
    if isinstance(alone, dict) and place in alone:
        return Found(alone[place], "project", place)
    root, common = worktree(ways) if repositories else ("", "")
    if isinstance(homes, list) and root in homes:
        common = ""  # who keeps a home folder in git has not made one project of all that lies in it
    of_repository = repositories.get(common) if common else None
    for way in ways:
        if way in directories:
            return Found(directories[way], "project", way)
        if of_repository is not None and (way == root or way.startswith(root.rstrip("/") + "/")):
            inside = "" if way == root else os.path.relpath(way, root)
            if inside in of_repository:
                return Found(of_repository[inside], "repository", os.path.join(common, inside) if inside else common)
    return None


def normal(path: str) -> str:
    """Return a path in its one spelling: no `..`, no doubled or last slash, composed characters."""
    path = os.path.normpath(path)
    path = path[1:] if path.startswith("//") else path
    if path.isascii():
        return path
    import unicodedata

    return unicodedata.normalize("NFC", path)


def above(place: str) -> "list[str]":
    """Return a directory and all above it, the nearest first."""
    ways = [place]
    while len(ways) < MAX_DEPTH and os.path.dirname(ways[-1]) != ways[-1]:
        ways.append(os.path.dirname(ways[-1]))
    return ways


def worktree(ways: "list[str]") -> "tuple[str, str]":
    """Return the root of the work tree that the first of `ways` lies in, and its git common directory; else empty.

    Worktrees of one repository have one common directory.
    """
    for way in ways:
        git = os.path.join(way, ".git")
        try:
            mode = os.stat(git).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode):
            if os.path.exists(os.path.join(git, "HEAD")):
                return way, normal(os.path.realpath(git))
        elif stat.S_ISREG(mode):
            common = linked(way, git)
            if common:
                return way, common
    return "", ""


def linked(root: str, git: str) -> str:
    """Return the common directory that a worktree's `.git` file leads to, empty when it leads nowhere."""
    try:
        words = os.fsdecode(read_bounded(git, MAX_LINK_BYTES)).strip()
        if not words.startswith("gitdir:"):
            return ""
        folder = os.path.join(root, words[len("gitdir:") :].strip())
        try:
            shared = os.fsdecode(read_bounded(os.path.join(folder, "commondir"), MAX_LINK_BYTES)).strip()
        except OSError:
            shared = ""  # a submodule, or a repository whose folder lies elsewhere: it is its own
        return normal(os.path.realpath(os.path.join(folder, shared)))
    except (OSError, ValueError):
        return ""


def read_bounded(path: str, limit: int) -> bytes:
    """Read a regular file that has at most `limit` bytes; a pipe in its place is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise ValueError(path)
        read = b""
        while len(read) <= limit and (more := os.read(descriptor, limit + 1 - len(read))):
            read += more
        if len(read) > limit:
            raise ValueError(path)
        return read
    finally:
        os.close(descriptor)


def read_stdin(descriptor: int) -> bytes:
    """Read one JSON document: to its end, or, when nobody closes the pipe, until it is whole or the time is up."""
    read, ends_at = b"", time.monotonic() + STDIN_SECONDS
    while len(read) <= MAX_STDIN_BYTES and (left := ends_at - time.monotonic()) > 0:
        ready, _, _ = select.select([descriptor], [], [], left)
        more = os.read(descriptor, 1 << 16) if ready else b""
        read += more
        if not more or is_whole(read):
            break
    return read


def is_whole(read: bytes) -> bool:
    """Say whether what was read so far is a document already."""
    if not read.rstrip().endswith(b"}"):
        return False
    try:
        parsed(read)
    except ValueError:
        return False
    return True


class Reading:
    """How JSON is read: as the json module does by default."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parsed(document: bytes) -> "dict[str, object]":
    """Read a JSON object. Raises ValueError."""
    text = document.decode().strip()
    if not IS_CPYTHON:
        import json

        value, end = json.loads(text), len(text)
    else:
        try:
            value, end = _json.make_scanner(Reading)(text, 0)  # type: ignore[arg-type]  # it looks for these attributes
        except StopIteration:
            raise ValueError("no JSON") from None
    if end != len(text) or not isinstance(value, dict):
        raise ValueError("no object")
    return value


def quoted(text: str) -> str:
    """Render a text as a JSON string."""
    if not IS_CPYTHON:
        import json

        return json.dumps(text, ensure_ascii=False)
    return str(_json.encode_basestring(text))


def live_for(seconds: float) -> None:
    """Have this process end after so long; 0: never mind."""
    if IS_CPYTHON:
        _signal.setitimer(_signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    words = [*sys.argv[1:3], "", ""]
    os._exit(run(os.path.join(home, "recall"), words[0], words[1]))  # nothing is left to flush
