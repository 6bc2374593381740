"""What agents read at the start of a session: memory_summary.md within its budget, marked, and told as a record.

`refresh` writes it ready-made after every publication, so that reading it costs one file. The index names the commit it
was made from: when it differs from the accepted one, the text is made anew.
"""

import json
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Final

from memoryd.text import MARKER_CLOSE, MARKER_OPEN, plain
from memoryd.workspace.files import translated
from memoryd.workspace.layout import SUMMARY_FILE, Home
from memoryd.workspace.summary import Scope, parse_summary, render_summary

EVERYWHERE: Final = "everywhere.md"
INDEX: Final = "index.json"
BYTES_PER_TOKEN: Final = 4
MAX_CHARACTERS: Final = 9_500
"""Agents' hooks cut at 10,000 characters (FORMATS.md section 3)."""
_MARKER: Final = re.compile(rf"(?:<|&lt;|&amp;lt;|\\u003c)\s*\\?/?\s*({MARKER_OPEN.strip('<>')})", re.IGNORECASE)
CUT: Final = "[older topics left out here; they stand in memory_summary.md]"
GUIDANCE: Final = """\
What follows is a record of earlier sessions on this machine, kept by memoryd. It may be irrelevant or out of date: the
person's words now, and the files as they are, count for more. To use it: search {memories}/MEMORY.md for a keyword of
your task, then open one or two of the files it names. If you relied on it, end your answer with the block

<oai-mem-citation>
<citation_entries>
MEMORY.md:12-14|note=[what it was used for]
</citation_entries>
<rollout_ids>
the thread ids named there
</rollout_ids>
</oai-mem-citation>
"""


def refresh(home: Home, commit: str, *, max_tokens: int) -> bool:
    """Rewrite recall/ when it was not made from `commit`; tell whether it was. Blocking; raises StorageError."""
    index = home.recall / INDEX
    if _made_from(index) == commit:
        return False
    try:
        summary = (home.memories / SUMMARY_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        summary = ""
    _replace(home.recall / EVERYWHERE, injected(summary, home.memories, max_tokens=max_tokens))
    _replace(index, json.dumps({"commit": commit, "files": [EVERYWHERE]}) + "\n")
    return True


def injected(summary: str, memories: Path, *, max_tokens: int) -> str:
    """Return exactly what would be injected, marker and guidance included; empty when there is nothing to say.

    `max_tokens` counts 4 bytes each. Lines are cut from the end, where the older topics stand, and the cut is said. A
    budget in which not even the guidance fits gives nothing.
    """
    # a marker inside would end the block early, and what follows would pass for a person's words
    body = _MARKER.sub(r"\1", plain(summary).removeprefix("v1\n")).strip()
    if not body:
        return ""
    head = f"{MARKER_OPEN}\n{GUIDANCE.format(memories=memories)}\n"
    tail = f"\n{MARKER_CLOSE}\n"
    room_bytes = max_tokens * BYTES_PER_TOKEN - len((head + tail + CUT).encode()) - 2
    room_characters = MAX_CHARACTERS - len(head + tail + CUT) - 2
    if min(room_bytes, room_characters) < 0:
        return ""
    kept: list[str] = []
    for line in body.splitlines():
        room_bytes -= len(line.encode()) + 1
        room_characters -= len(line) + 1
        if min(room_bytes, room_characters) < 0:
            kept.append(CUT)
            break
        kept.append(line)
    return head + "\n".join(kept) + tail


def of_project(summary: str, cwd: str) -> str:
    """Keep the global sections and the entries of the project that `cwd` lies in; of others the topic lines only.

    A summary that does not follow the structure (a person may write what they like) is given whole.
    """
    parsed = parse_summary(summary)
    if parsed.problems:
        return summary
    scopes = tuple(scope if _holds(scope.name, cwd) else _named_only(scope) for scope in parsed.scopes)
    return render_summary(replace(parsed, scopes=scopes))


def _holds(scope: str, cwd: str) -> bool:
    return PurePath(cwd).is_relative_to(scope) if scope.startswith("/") else True


def _named_only(scope: Scope) -> Scope:
    days = (
        replace(day, topics=tuple(replace(topic, desc="", learnings="") for topic in day.topics)) for day in scope.days
    )
    return replace(scope, days=tuple(days))


def _made_from(index: Path) -> str | None:
    try:
        return str(json.loads(index.read_text(encoding="utf-8"))["commit"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with translated("write", path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
