"""The words sent to models: prompts are files in prompts/, filled in here and nowhere else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """Whether the consolidation starts from nothing or revises what stands."""

    INIT = "init"
    INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """Instructions (the system's words) and the opening user message."""

    instructions: str
    opening: str


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What is known of a session apart from what was said in it; instants are epoch seconds."""

    agent: str
    thread_id: str
    cwd: str | None
    git_branch: str | None
    started_at: float | None
    last_record_at: float


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """What the consolidation agent is told of its folder before it looks."""

    sessions: int
    changes: Sequence[str]
    removed_threads: Sequence[str]
    max_summary_bytes: int
    now: float


def stage1_question_parts(facts: SessionFacts, evidence: str) -> QuestionParts:
    """Render the one request of stage 1."""
    raise NotImplementedError


def stage1_repair(problem: str) -> str:
    """Render the user message that asks once more after a reply that was not the JSON asked for."""
    raise NotImplementedError


def consolidation_instructions(mode: Mode) -> str:
    """Render the instructions of the consolidation agent."""
    raise NotImplementedError


def consolidation_question_parts(mode: Mode, facts: FolderFacts) -> QuestionParts:
    """Render the instructions and the opening message of a consolidation."""
    raise NotImplementedError


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` by its value in one pass, so that a value is never expanded itself."""
    raise NotImplementedError
