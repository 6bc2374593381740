"""Reads back from the memory folder what it was made of: the inverse of materialise.py, for a ledger that is lost."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memoryd.workspace.folder import Folder
from memoryd.workspace.headers import UNKNOWN, Header, parse_header
from memoryd.workspace.layout import RAW_MEMORIES, ROLLOUT_SUMMARIES

_ENTRY: Final = re.compile(
    r"^## Thread `(?P<thread_id>[^`\n]+)`\nupdated_at: [^\n]*\ncwd: [^\n]*\nrollout_path: [^\n]*\n"
    r"rollout_summary_file: (?P<stem>[^\n/]+)\.md\n\n",
    re.MULTILINE,
)
_STEM: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-[0-9a-zA-Z]{4}(?:-(?P<slug>[a-z0-9_]+))?")


@dataclass(frozen=True, slots=True)
class ReadBack:
    """One session's evidence as it lies in the folder; None where the header says unknown. `updated_at` is epoch s."""

    thread_id: str
    updated_at: int
    raw_memory: str
    rollout_summary: str
    slug: str | None
    stem: str
    agent: str | None
    cwd: str | None
    git_branch: str | None
    rollout_path: str | None


def reread(folder: Folder) -> list[ReadBack]:
    """Return what raw_memories.md and the rollout summaries say, in the order of the former.

    A session whose parts do not fit together is left out.
    """
    text = folder.text(RAW_MEMORIES)
    entries = list(_ENTRY.finditer(text))
    starts = [entry.start() for entry in entries]
    found = [
        _read_back(folder, entry, text[entry.end() : end].strip())
        for entry, end in zip(entries, [*starts[1:], len(text)], strict=False)
    ]
    return list({each.thread_id: each for each in found if each is not None}.values())


def _read_back(folder: Folder, entry: re.Match[str], raw_memory: str) -> ReadBack | None:
    stem = entry["stem"]
    summary, named = folder.text(f"{ROLLOUT_SUMMARIES}/{stem}.md"), _STEM.fullmatch(stem)
    header = parse_header(summary)
    updated_at = _instant(header)
    if named is None or updated_at is None or header.thread_id != entry["thread_id"]:
        return None
    return ReadBack(
        thread_id=header.thread_id,
        updated_at=updated_at,
        raw_memory=raw_memory,
        rollout_summary=summary.partition("\n\n")[2].rstrip("\n"),
        slug=named["slug"],
        stem=stem,
        agent=_known(header.agent),
        cwd=_known(header.cwd),
        git_branch=_known(header.git_branch),
        rollout_path=_known(header.rollout_path),
    )


def _instant(header: Header) -> int | None:
    try:
        return int(datetime.fromisoformat(header.updated_at).timestamp())
    except ValueError:
        return None


def _known(value: str) -> str | None:
    return None if value in {"", UNKNOWN} else value
