"""The handbook of the offline writer: one task group per directory, one task per session, every bullet with its mark.

Statements of all sessions of a directory are put together in the order in which they were made: what was said twice
stands once and cites both tasks, and a later correction takes the place of the earlier one, quoting both.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memoryd.ledger.outputs import SelectedOutput
from memoryd.pipeline.offline_imported import Noted
from memoryd.pipeline.offline_notes import Note
from memoryd.pipeline.offline_preferences import Preference, merged
from memoryd.pipeline.offline_raw import LAST_ANSWER, Lesson, parse_lesson, places_in
from memoryd.pipeline.offline_text import one_line
from memoryd.workspace.handbook import Bullet, Handbook, Mark, Section, SummaryFile, Task, TaskGroup, parse_bullet
from memoryd.workspace.layout import ROLLOUT_SUMMARIES
from memoryd.workspace.stems import stem_of

UNKNOWN: Final = "unknown"
EVERYWHERE: Final = "everywhere"

PREAMBLE: Final = (
    "> No model wrote this handbook. Its statements are quotes from recorded sessions and exit codes of commands,",
    "> put together by memoryd's offline writer, which judges nothing and misses what has no cue phrase or exit code.",
    "> For a handbook that was thought about, configure a model provider (config.toml, [consolidate] provider).",
)

_EXIT_CODE: Final = re.compile(r"exit(?:ed with)? code -?\d+")


@dataclass(frozen=True, slots=True)
class Session:
    """A selected output with what was read from its raw memory, and its task number within its group."""

    output: SelectedOutput
    lesson: Lesson
    number: int


@dataclass(frozen=True, slots=True)
class Project:
    """One directory: its sessions, oldest first (none where all was imported), and its block of the handbook."""

    cwd: str
    sessions: tuple[Session, ...]
    group: TaskGroup

    @property
    def newest_at(self) -> int:
        """When the last of its sessions ended."""
        return max((session.output.source_updated_at for session in self.sessions), default=0)


def projects_of(
    selected: Sequence[SelectedOutput],
    notes: Sequence[Note],
    noted: Sequence[Noted] = (),
    *,
    max_bullets: int = 1000,
) -> list[Project]:
    """Group the selected outputs by directory, in the order of the directories' names; notes that name one go there.

    What was imported of a directory goes there too, or makes one that has no session. Of each session and kind the last
    `max_bullets` count, of an imported file the first.
    """
    by_cwd: dict[str, list[SelectedOutput]] = {}
    for output in selected:
        by_cwd.setdefault(one_line(output.cwd or "") or UNKNOWN, []).append(output)
    cut = [replace(each, lines=each.lines[:max_bullets]) for each in noted]
    return [
        _project(
            cwd,
            by_cwd.get(cwd, []),
            [note for note in notes if note.cwd == cwd],
            [each for each in cut if each.cwd == cwd],
            max_bullets,
        )
        for cwd in sorted({*by_cwd, *(each.cwd for each in noted)})
    ]


def handbook_of(projects: Sequence[Project], notes: Sequence[Note]) -> Handbook:
    """Put the groups together; notes that name no directory come last, in a group that holds everywhere."""
    general = tuple(_note_bullet(line) for note in notes if note.cwd is None for line in note.lines)
    groups = [project.group for project in projects]
    if general:
        groups.append(
            TaskGroup(
                title=EVERYWHERE,
                scope="notes that a person left for every directory",
                cwd=None,
                reuse_rule="holds in every directory",
                sections={Section.PREFERENCES: general},
            )
        )
    return Handbook(groups=tuple(groups), preamble=PREAMBLE)


def preference_text(preference: Preference) -> str:
    """Say what a person stated, quoted; of a changed mind every quote, in order."""
    first, *later = preference.quotes
    about = "" if preference.situation.startswith("working") else f"when {preference.situation}, "
    if not later:
        return f'{about}the user {first.voice}: "{first.text}"'
    quotes = ", ".join(f'later {quote.voice}: "{quote.text}"' for quote in later)
    return f'{about}the user first {first.voice}: "{first.text}", {quotes}; the later statement holds'


def _project(
    cwd: str, outputs: Sequence[SelectedOutput], notes: Sequence[Note], noted: Sequence[Noted], max_bullets: int
) -> Project:
    in_order = sorted(outputs, key=lambda output: (output.source_updated_at, output.thread_id))
    sessions = tuple(
        Session(output, _cut(_named(parse_lesson(output.raw_memory), output), max_bullets), number)
        for number, output in enumerate(in_order, start=1)
    )
    about = "sessions recorded in" if sessions else "what Claude Code had noted of"
    group = TaskGroup(
        title=cwd,
        scope=f"{about} {cwd}; use it when working there, not in other directories",
        cwd=cwd,
        reuse_rule="only in this directory and its checkouts",
        tasks=tuple(_task(session) for session in sessions),
        sections=_sections(sessions, notes, noted),
    )
    return Project(cwd, sessions, group)


def _named(lesson: Lesson, output: SelectedOutput) -> Lesson:
    """Give a lesson without a task name the first line of its summary."""
    first = next((line.lstrip("# ") for line in output.rollout_summary.splitlines() if line.strip("# ")), "")
    return lesson if lesson.task else replace(lesson, task=one_line(first) or output.thread_id)


def _cut(lesson: Lesson, max_bullets: int) -> Lesson:
    return replace(
        lesson,
        preferences=lesson.preferences[-max_bullets:],
        remarks=lesson.remarks[-max_bullets:],
        knowledge=lesson.knowledge[-max_bullets:],
        failures=lesson.failures[-max_bullets:],
    )


def _task(session: Session) -> Task:
    return Task(
        number=session.number,
        title=f"{session.lesson.task}, {session.lesson.outcome}",
        summary_files=(SummaryFile(path=f"{ROLLOUT_SUMMARIES}/{stem_of(session.output)}.md"),),
        keywords=session.lesson.keywords or (session.output.agent or "session",),
    )


def _sections(
    sessions: Sequence[Session], notes: Sequence[Note], noted: Sequence[Noted]
) -> dict[Section, tuple[Bullet, ...]]:
    stated = [
        [replace(preference, task_refs=(session.number,)) for preference in session.lesson.preferences]
        for session in sessions
    ]
    preferences = [
        Bullet(preference_text(preference), preference.task_refs, Mark.STATED) for preference in merged(stated)
    ]
    remarks = _cited((one, session.number) for session in sessions for one in session.lesson.remarks)
    preferences += [replace(remark, mark=Mark.INFERRED) for remark in remarks]
    preferences += [_note_bullet(line) for note in notes for line in note.lines]
    preferences += [_note_bullet(line) for each in noted if each.is_persons for line in each.lines]
    knowledge = _cited(
        (one, session.number) for session in sessions for one in (*session.lesson.knowledge, *places_in(session.lesson))
    )
    knowledge += [_note_bullet(line) for each in noted if not each.is_persons for line in each.lines]
    failures = _cited((one, session.number) for session in sessions for one in session.lesson.failures)
    sections = {
        Section.PREFERENCES: tuple(preferences),
        Section.KNOWLEDGE: tuple(knowledge),
        Section.FAILURES: tuple(failures),
    }
    return {section: bullets for section, bullets in sections.items() if bullets}


def _cited(statements: Iterable[tuple[str, int]]) -> list[Bullet]:
    """Make a bullet of each text, citing every task that says it."""
    tasks: dict[str, set[int]] = {}
    for text, number in statements:
        tasks.setdefault(parse_bullet(text).text, set()).add(number)
    return [Bullet(text, tuple(sorted(numbers)), _mark(text)) for text, numbers in tasks.items() if text]


def _mark(text: str) -> Mark:
    """An exit code verifies, unless an agent only speaks of it; everything else that no person said is inferred."""
    return Mark.VERIFIED if _EXIT_CODE.search(text) and not text.startswith(LAST_ANSWER) else Mark.INFERRED


def _note_bullet(line: str) -> Bullet:
    return Bullet(line, ad_hoc=True)
