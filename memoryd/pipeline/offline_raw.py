"""What the offline writer keeps of one session, written as a model writes a raw memory, and read back from it.

Reading is forgiving, because a model may have written the raw memory: a line that is not understood is no statement.
"""

import re
from dataclasses import dataclass
from typing import Final

from memoryd.pipeline.offline_phrases import Voice
from memoryd.pipeline.offline_preferences import Preference, Quote
from memoryd.pipeline.offline_text import is_quotable, one_line, plain

LAST_ANSWER: Final = "the agent's last answer: "

CHANGED: Final = "changed files"
NAMED: Final = "files named repeatedly"
DIRECTORIES: Final = "directories"
"""Labels of references that tell which places mattered."""

PREFERENCES: Final = "Preference signals:"
KNOWLEDGE: Final = "Reusable knowledge:"
FAILURES: Final = "Failures and how to do differently:"
REFERENCES: Final = "References:"

_SUBSECTIONS: Final = (PREFERENCES, KNOWLEDGE, FAILURES, REFERENCES)
_TASK: Final = re.compile(r"^### Task \d+: (.+)$")
_FIELD: Final = re.compile(r"^(description|task|task_group|task_outcome|cwd|keywords): *(.*)$")
_SIGNAL: Final = re.compile(
    r'^(?:[Ww]hen )?(?P<situation>.*?),? the user (?P<quotes>(?:first )?(?:said|asked|corrected):? ".*)'
)
_QUOTE: Final = re.compile(
    r'(?:^|, later )(?:first )?(said|asked|corrected):? "(.*?)"(?=, later (?:said|asked|corrected):? "| ?-> |$)'
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """One session as one task: what it was asked, how it ended, and what it teaches, a bullet each."""

    task: str
    task_group: str
    outcome: str
    cwd: str
    keywords: tuple[str, ...] = ()
    preferences: tuple[Preference, ...] = ()
    remarks: tuple[str, ...] = ()
    knowledge: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


def render_signal(preference: Preference) -> str:
    """Write a preference as prompts/stage1_system.md asks a model to; of a changed mind every quote, in order."""
    first, *later = preference.quotes
    opening = f'{"first " if later else ""}{first.voice}: "{first.text}"'
    quotes = ", later ".join([opening, *(f'{quote.voice}: "{quote.text}"' for quote in later)])
    return f"when {preference.situation}, the user {quotes} -> {preference.default}"


def parse_signal(bullet: str) -> Preference | None:
    """Read a preference bullet back, None when it quotes no user."""
    found = _SIGNAL.match(bullet)
    if found is None:
        return None
    quotes = tuple(
        Quote(Voice(voice), one_line(text)) for voice, text in _QUOTE.findall(found["quotes"]) if text.strip()
    )
    return Preference(found["situation"], quotes) if quotes else None


def places_in(lesson: Lesson) -> tuple[str, ...]:
    """Return the references that tell which files and directories mattered."""
    return tuple(one for one in lesson.references if one.startswith((f"{CHANGED}: ", f"{NAMED}: ", f"{DIRECTORIES}: ")))


def render_lesson(lesson: Lesson) -> str:
    """Write the raw memory of a session."""
    task = [f"task: {lesson.task}", f"task_group: {lesson.task_group}", f"task_outcome: {lesson.outcome}"]
    place = [f"cwd: {lesson.cwd}", f"keywords: {', '.join(lesson.keywords)}"]
    head = ["---", f"description: {lesson.task}", *task, *place, "---"]
    return "\n".join([*head, "", f"### Task 1: {lesson.task}", "", *task, *render_subsections(lesson)]) + "\n"


def render_subsections(lesson: Lesson) -> list[str]:
    """Write the four subsections, each with its label even when it is empty."""
    signals = tuple(render_signal(preference) for preference in lesson.preferences)
    bodies = (signals, lesson.knowledge, lesson.failures, lesson.references)
    lines: list[str] = []
    for label, bullets in zip(_SUBSECTIONS, bodies, strict=True):
        lines += ["", label, *(f"- {bullet}" for bullet in bullets)]
    return lines


def parse_lesson(raw_memory: str) -> Lesson:
    """Read a raw memory, whoever wrote it; several tasks become one that carries all their bullets."""
    fields: dict[str, str] = {}
    bullets: dict[str, list[str]] = {label: [] for label in _SUBSECTIONS}
    label = ""
    for line in raw_memory.splitlines():
        if line.strip() in _SUBSECTIONS:
            label = line.strip()
        elif (bullet := line.strip()).startswith("- ") and label:
            bullets[label].append(plain(bullet[2:]))
        elif task := _TASK.match(line):
            fields.setdefault("task", plain(task[1]))
            label = ""
        elif field := _FIELD.match(line.strip()):
            fields.setdefault(field[1], plain(field[2]))
    signals = [(bullet, parse_signal(bullet)) for bullet in bullets[PREFERENCES] if is_quotable(bullet)]
    return Lesson(
        task=fields.get("task") or fields.get("description") or "",
        task_group=fields.get("task_group", ""),
        outcome=fields.get("task_outcome") or "uncertain",
        cwd=fields.get("cwd", ""),
        keywords=tuple(word for word in (part.strip() for part in fields.get("keywords", "").split(",")) if word),
        preferences=tuple(signal for _, signal in signals if signal),
        remarks=tuple(bullet for bullet, signal in signals if signal is None),
        knowledge=tuple(bullet for bullet in bullets[KNOWLEDGE] if is_quotable(bullet)),
        failures=tuple(bullet for bullet in bullets[FAILURES] if is_quotable(bullet)),
        references=tuple(bullet for bullet in bullets[REFERENCES] if is_quotable(bullet)),
    )
