"""The words sent to models: prompts are files in prompts/, filled in here and nowhere else.

A template's `{{name}}` tokens are replaced in one pass, so that evidence that holds such a token is never expanded.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from memoryd.clock import rfc3339, utc_day
from memoryd.pipeline.session_facts import SessionFacts

MAX_FACT_CHARS = 1000
MAX_LISTED = 300
UNKNOWN = "unknown"
NONE = "- none"
HANDS = "# Your hands\n"
FENCE = "===== EVIDENCE"
"""How the lines around the evidence begin; a digest of it follows, which it cannot hold itself."""

_TOKEN = re.compile(r"\{\{([a-z0-9_]+)\}\}")


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
class FolderFacts:
    """What the consolidation agent is told of its folder before it looks.

    `changes` are `<A|M|D> <path>` as in the diff's status, `now` is epoch seconds.
    """

    sessions: int
    changes: Sequence[str]
    removed_threads: Sequence[str]
    max_summary_bytes: int
    now: float


def stage1_question_parts(facts: SessionFacts, evidence: str) -> QuestionParts:
    """Render the one request of stage 1: facts about the session, a line each, then its evidence between fences."""
    opening = render(
        load_prompt("stage1_input"),
        {
            "agent": _fact(facts.agent),
            "thread_id": _fact(facts.thread_id),
            "cwd": _fact(facts.cwd),
            "git_branch": _fact(facts.git_branch),
            "started_at": UNKNOWN if facts.started_at is None else rfc3339(facts.started_at),
            "last_record_at": rfc3339(facts.updated_at),
            "fence": _fence(evidence),
            "evidence": evidence,
        },
    )
    return QuestionParts(load_prompt("stage1_system"), opening)


def stage1_repair(problem: str) -> str:
    """Render the user message that asks once more after a reply that was not the JSON asked for."""
    return render(load_prompt("repair"), {"problem": _fact(problem)})


def consolidation_repair(complaints: Sequence[str]) -> str:
    """Render what the next run of an agent's own program is told of the complaints about the last one."""
    return render(load_prompt("consolidate_repair"), {"complaints": _listed(complaints)})


def consolidation_question_parts(mode: Mode, facts: FolderFacts, *, own_hands: bool = False) -> QuestionParts:
    """Render the instructions and the opening message of a consolidation.

    `own_hands`: for an agent's own program, which works in the folder with tools that are not ours.
    """
    values = {
        "today": utc_day(facts.now),
        "sessions": str(facts.sessions),
        "max_summary_bytes": str(facts.max_summary_bytes),
        "changes": _listed(facts.changes),
    }
    if mode is Mode.INCREMENTAL:
        values["removed_threads"] = _listed(facts.removed_threads)
    instructions = consolidation_instructions(mode, own_hands=own_hands)
    return QuestionParts(instructions, render(load_prompt(f"consolidate_{mode.value}"), values))


def consolidation_instructions(mode: Mode, *, own_hands: bool = False) -> str:
    """Render the instructions of the consolidation agent, with the section on its hands that fits."""
    instructions = render(load_prompt("consolidate_system"), {"mode": mode.value.upper()})
    if not own_hands:
        return instructions
    before, _, ours = instructions.partition(HANDS)
    _, heading, after = ours.partition("\n# ")
    return f"{before}{load_prompt('consolidate_own_hands')}\n{heading}{after}"


@cache
def fingerprint(*names: str) -> str:
    """Return a short digest of prompts: another one means that a model is asked other words."""
    return hashlib.sha256("\0".join(load_prompt(name) for name in names).encode()).hexdigest()[:12]


def load_prompt(name: str) -> str:
    """Return the text of prompts/<name>.md without its last line break."""
    return (resources.files("memoryd.pipeline") / "prompts" / f"{name}.md").read_text("utf-8").rstrip("\n")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` by its value in one pass; raises KeyError when template and values do not agree."""
    names = set(_TOKEN.findall(template))
    if names != set(values):
        raise KeyError(f"template and values differ: {sorted(names ^ set(values))}")
    return _TOKEN.sub(lambda token: values[token.group(1)], template)


def _fact(value: str | None) -> str:
    """Put a value on one bounded line, so that a name with a line break in it cannot pose as another fact."""
    flat = "".join(character if character.isprintable() else " " for character in value or "").strip()
    return flat[:MAX_FACT_CHARS] or UNKNOWN


def _fence(evidence: str) -> str:
    """Make a line that the evidence cannot hold: nobody can write a text that contains its own digest."""
    return f"{FENCE} {hashlib.sha256(evidence.encode('utf-8', 'surrogatepass')).hexdigest()[:16]} ====="


def _listed(lines: Sequence[str]) -> str:
    rows = [f"- {_fact(line)}" for line in lines[:MAX_LISTED]]
    if len(lines) > MAX_LISTED:
        rows.append(f"- and {len(lines) - MAX_LISTED} more")
    return "\n".join(rows) or NONE
