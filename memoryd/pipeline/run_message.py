"""What the commit of a consolidation says of it: a subject, and trailers that a machine reads; no content of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from memoryd.ledger.jobs import Lease
from memoryd.llm.question import Usage
from memoryd.workspace.diff import WorkspaceDiff
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Status
from memoryd.workspace.headers import headers_of
from memoryd.workspace.history import Change, message, named

NOBODY = "none"
"""Stands where a run asked no model."""
SESSION_TRAILERS: Mapping[Status, str] = {
    Status.ADDED: "Sessions-Added",
    Status.MODIFIED: "Sessions-Changed",
    Status.DELETED: "Sessions-Removed",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked in a run, and what it took; `model` None: nobody, code wrote the memory."""

    provider: str
    model: str | None
    requests: int = 0
    usage: Usage | None = None
    cleaned: int = 0
    """Statements that code took out because the writer had left them."""
    strays: int = 0
    """Files that the writer left where none belong."""


def run_message(lease: Lease, number: int, diff: WorkspaceDiff, before: Folder, work: Folder, asked: Asked) -> str:
    """Render the message of a run over `number` sessions: job, model, what became of sessions, tokens.

    Ids are at most 20 a trailer; counts are whole.
    """
    threads = {path: header.thread_id for folder in (before, work) for path, header in headers_of(folder).items()}
    by_status: dict[Status, list[str]] = {status: [] for status in SESSION_TRAILERS}
    for change in diff.changes:
        if change.path in threads:
            by_status[change.status].append(threads[change.path])
    added, changed, removed = (len(by_status[status]) for status in SESSION_TRAILERS)
    usage = asked.usage or Usage()
    trailers = [
        ("Job", f"{lease.kind.value}/{lease.job_key} epoch {lease.epoch}"),
        ("Provider", asked.provider),
        ("Model", asked.model or NOBODY),
        *([("Cleaned", f"{asked.cleaned} statements")] if asked.cleaned else []),
        *([("Strays", f"{asked.strays} removed")] if asked.strays else []),
        ("Sessions", f"{number} ({added} added, {changed} changed, {removed} removed)"),
        *((SESSION_TRAILERS[status], named(ids)) for status, ids in by_status.items() if ids),
        ("Requests", str(asked.requests)),
        ("Tokens", str(usage.input + usage.output)),
        ("Tokens-In", str(usage.input)),
        ("Tokens-Out", str(usage.output)),
    ]
    return message(Change.CONSOLIDATION, f"Consolidate {number} session{'' if number == 1 else 's'}", trailers)
