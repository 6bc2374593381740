"""The header lines of a rollout summary: written and read back in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memoryd.clock import rfc3339
from memoryd.ledger.outputs import SelectedOutput
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import ROLLOUT_SUMMARIES

UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Header:
    """What the first lines of a rollout summary say; empty where a line is missing."""

    thread_id: str = ""
    agent: str = ""
    updated_at: str = ""
    rollout_path: str = ""
    cwd: str = ""
    git_branch: str = ""


def header_of(output: SelectedOutput) -> Header:
    """Return the header of a selected session; every value is one line, what is not known is `unknown`."""
    return Header(
        thread_id=one_line(output.thread_id),
        agent=one_line(output.agent) or UNKNOWN,
        updated_at=rfc3339(output.source_updated_at),
        rollout_path=one_line(output.rollout_path) or UNKNOWN,
        cwd=one_line(output.cwd) or UNKNOWN,
        git_branch=one_line(output.git_branch),
    )


def render_header(header: Header) -> str:
    """Render the header lines with the blank one that ends them; the branch only when it is known."""
    rows = [
        f"thread_id: {header.thread_id}",
        f"agent: {header.agent}",
        f"updated_at: {header.updated_at}",
        f"rollout_path: {header.rollout_path}",
        f"cwd: {header.cwd}",
        *([f"git_branch: {header.git_branch}"] if header.git_branch else []),
    ]
    return "\n".join(rows) + "\n\n"


def parse_header(text: str) -> Header:
    """Read the header lines of a summary, whatever their order; never raises."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if not colon or name not in Header.__slots__:
            break
        found.setdefault(name, value.strip())
    return Header(**found)


def headers_of(folder: Folder) -> Mapping[str, Header]:
    """Return the header of each rollout summary of a folder, by its path."""
    prefix = f"{ROLLOUT_SUMMARIES}/"
    return {
        path: parse_header(text)
        for path, text in folder.files.items()
        if path.startswith(prefix) and path.endswith(".md") and "/" not in path[len(prefix) :]
    }


def one_line(value: str | None) -> str:
    """Return a value on one line: a line break inside it becomes a space."""
    return " ".join((value or "").splitlines()).strip()
