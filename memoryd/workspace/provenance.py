"""Where a task's evidence comes from, as the handbook's rows say it: file, directory, session, time."""

import re
from collections.abc import Mapping
from typing import Final

from memoryd.workspace.folder import Folder
from memoryd.workspace.headers import UNKNOWN, Header, headers_of

_ROW: Final = re.compile(r"([ \t]*- )(rollout_summaries/[^/\s()]+\.md)(?:[ \t]*\((.*)\))?[ \t]*(\r?)")
_OURS: Final = re.compile(r"cwd=.*, rollout_path=.*, updated_at=[^,]*, thread_id=[^,]*(?:, (.*))?")
_KNOWN: Final = ("cwd=", "rollout_path=", "updated_at=", "thread_id=")


def with_provenance(memory_text: str, folder: Folder) -> str:
    """Return MEMORY.md with the parentheses of each row as the named file's header has them; a note stays.

    Rows of files that are not there stay as they are. Doing it twice changes nothing more.
    """
    headers = headers_of(folder)
    return "\n".join(_rewritten(line, headers) for line in memory_text.split("\n"))


def provenance_note(header: Header, note: str = "") -> str:
    """Return what stands in parentheses behind a rollout summary."""
    facts = (
        f"cwd={header.cwd or UNKNOWN}, rollout_path={header.rollout_path or UNKNOWN}, "
        f"updated_at={header.updated_at or UNKNOWN}, thread_id={header.thread_id or UNKNOWN}"
    )
    return f"{facts}, {note}" if note else facts


def _rewritten(line: str, headers: Mapping[str, Header]) -> str:
    match = _ROW.fullmatch(line)
    header = headers.get(match[2]) if match else None
    if match is None or header is None:
        return line
    return f"{match[1]}{match[2]} ({provenance_note(header, _note(match[3] or ''))}){match[4]}"


def _note(inside: str) -> str:
    """Return what a row says beside the known facts."""
    if match := _OURS.fullmatch(inside):
        return (match[1] or "").strip()
    parts = (part.strip() for part in inside.split(", "))
    return ", ".join(part for part in parts if part and not part.startswith(_KNOWN))
