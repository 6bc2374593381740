"""What is known of a session apart from what was said in it; what both writers, model and offline, are told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """Identity, place and time of a session; instants are epoch seconds UTC."""

    thread_id: str
    agent: str
    cwd: str | None
    git_branch: str | None
    started_at: int | None
    updated_at: int
