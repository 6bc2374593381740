"""Stage 1 without a model: what a session's own words and exit codes show, quoted, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.pipeline.reply import NOTHING, Stage1Reply
from memoryd.sources.items import Item


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What is known of a session besides its items; instants are epoch seconds UTC."""

    thread_id: str
    agent: str
    cwd: str | None
    git_branch: str | None
    started_at: int | None
    updated_at: int


def extract_offline(*, session: SessionFacts, items: Sequence[Item]) -> Stage1Reply:
    """Write the stage-1 reply of a session from its sanitised items; NOTHING when it taught nothing."""
    del session, items
    return NOTHING
