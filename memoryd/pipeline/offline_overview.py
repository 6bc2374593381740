"""The memory summary of the offline writer: what fits of the handbook, newest first, with every group reachable.

Each group keeps at least the topic of its newest session; everything else is optional and is taken in an order that
mixes preferences, topics and tips, until the budget is spent. The largest number that fits is found by halving.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.clock import utc_day
from memoryd.pipeline.offline_groups import EVERYWHERE, Project, Session, preference_text
from memoryd.pipeline.offline_imported import KEYWORDS, is_imported
from memoryd.pipeline.offline_notes import Note
from memoryd.pipeline.offline_raw import LAST_ANSWER, places_in
from memoryd.pipeline.offline_text import clip
from memoryd.text import byte_length
from memoryd.workspace.handbook import AD_HOC, Bullet, Handbook, Section
from memoryd.workspace.summary import Day, OlderScope, Scope, Summary, Topic, render_summary

RECENT_SECONDS: Final = 14 * 86_400
MAX_PREFERENCES: Final = 40
MAX_TIPS: Final = 12
MAX_DESC_CHARS: Final = 240
MAX_LEARNINGS_CHARS: Final = 320
MAX_TOPIC_KEYWORDS: Final = 8
MAX_LEAST_CHARS: Final = 60
NO_MODEL: Final = "No model wrote this summary: it quotes recorded sessions and exit codes, and judges nothing."
NOTE_KEYWORDS: Final = ("notes", "ad-hoc")


@dataclass(frozen=True, slots=True)
class _Optional:
    """Something that stands in the summary when it fits; smaller ranks first."""

    rank: float
    line: str
    session: Session | None = None
    is_tip: bool = False


def fitted_summary(
    handbook: Handbook, projects: Sequence[Project], notes: Sequence[Note], *, now: float, max_bytes: int
) -> Summary:
    """Return the fullest summary that takes at most `max_bytes`, or, if even the least does not fit, the least."""
    optional = _optionals(handbook, projects)

    def summary_with(count: int) -> Summary:
        return _summary(projects, notes, optional[:count], now)

    return summary_with(_largest_fitting(len(optional), lambda count: _size(summary_with(count)), max_bytes))


def _largest_fitting(most: int, size: Callable[[int], int], max_bytes: int) -> int:
    """Return the largest count up to `most` whose size fits; sizes grow with the count."""
    return max(0, bisect_left(range(1, most + 1), True, key=lambda count: size(count) > max_bytes))


def _size(summary: Summary) -> int:
    return byte_length(render_summary(summary))


def _optionals(handbook: Handbook, projects: Sequence[Project]) -> list[_Optional]:
    """List what may stand in the summary, most wanted first: newest first within each kind."""
    newest_first = sorted(projects, key=lambda project: (-project.newest_at, project.cwd))
    lines = [
        _Optional(float(rank), line)
        for rank, line in enumerate(_preference_lines(handbook, newest_first)[:MAX_PREFERENCES])
    ]
    sessions = sorted((one for project in projects for one in project.sessions), key=_newest_first)
    topics = [_Optional(rank * 1.5, "", session) for rank, session in enumerate(sessions)]
    tips = [_Optional(rank * 3.0, line, is_tip=True) for rank, line in enumerate(_tip_lines(newest_first)[:MAX_TIPS])]
    return sorted([*lines, *topics, *tips], key=lambda one: one.rank)


def _newest_first(session: Session) -> tuple[int, str]:
    return -session.output.source_updated_at, session.output.thread_id


def _preference_lines(handbook: Handbook, projects: Sequence[Project]) -> list[str]:
    """What the person wants: notes for everywhere first, then each directory's, latest statement first."""
    everywhere = [bullet for group in handbook.groups if group.cwd is None for bullet in _preferences(group.sections)]
    return [_said(bullet) for bullet in everywhere] + [
        f"in {project.cwd}: {_said(bullet)}"
        for project in projects
        for bullet in sorted(_preferences(project.group.sections), key=_rank)
    ]


def _rank(bullet: Bullet) -> int:
    """Notes first, then the latest session, then what an agent had noted by itself."""
    return 1 if is_imported(bullet.text) else -max(bullet.task_refs, default=10**6)


def _said(bullet: Bullet) -> str:
    """Return a statement as the summary has it: what comes from a note says so there as well."""
    return f"{bullet.text} {AD_HOC}" if bullet.ad_hoc else bullet.text


def _preferences(sections: Mapping[Section, tuple[Bullet, ...]]) -> tuple[Bullet, ...]:
    return sections.get(Section.PREFERENCES, ())


def _tip_lines(projects: Sequence[Project]) -> list[str]:
    """Return what failed and then worked, of the newest sessions first; what several sessions saw is said once."""
    lines = (
        f"in {project.cwd}: {failure}"
        for project in projects
        for session in reversed(project.sessions)
        for failure in session.lesson.failures
        if " worked with exit code 0" in failure
    )
    return list(dict.fromkeys(lines))


def _summary(projects: Sequence[Project], notes: Sequence[Note], chosen: Sequence[_Optional], now: float) -> Summary:
    """Put together what was chosen, and the newest topic of every directory in any case."""
    wanted = {one.session.output.thread_id for one in chosen if one.session}
    scopes: list[Scope] = []
    older: list[OlderScope] = []
    for project in sorted(projects, key=lambda project: (-project.newest_at, project.cwd)):
        kept = [session for session in reversed(project.sessions) if session.output.thread_id in wanted]
        recent = [session for session in kept if now - session.output.source_updated_at <= RECENT_SECONDS]
        past = [session for session in kept if session not in recent]
        if recent:
            scopes.append(Scope(project.cwd, _days(recent)))
        if past or not recent:
            topics = tuple(_past_topic(session) for session in past) or (_least_topic(project),)
            older.append(OlderScope(project.cwd, topics))
    if any(note.cwd is None for note in notes):
        older.append(OlderScope(EVERYWHERE, (Topic(EVERYWHERE, NOTE_KEYWORDS, "notes that hold in every directory"),)))
    return Summary(
        profile=_profile(projects),
        preferences=tuple(one.line for one in chosen if one.line and not one.is_tip),
        tips=tuple(one.line for one in chosen if one.is_tip),
        scopes=tuple(scopes),
        older=tuple(older),
    )


def _profile(projects: Sequence[Project]) -> tuple[str, ...]:
    """Say what this is made of: counts and days, nothing about the person."""
    instants = [session.output.source_updated_at for project in projects for session in project.sessions]
    if not instants:
        return (NO_MODEL, "Sessions remembered: none.")
    many = sum(bool(project.sessions) for project in projects)
    span = f"{utc_day(min(instants))} to {utc_day(max(instants))}"
    return (NO_MODEL, f"Sessions remembered: {len(instants)}, in {many} directories, from {span}.")


def _days(sessions: Sequence[Session]) -> tuple[Day, ...]:
    """Group sessions, newest first, by the UTC day on which they ended."""
    days: dict[str, list[Topic]] = {}
    for session in sessions:
        days.setdefault(utc_day(session.output.source_updated_at), []).append(_recent_topic(session))
    return tuple(Day(date, tuple(topics)) for date, topics in days.items())


def _recent_topic(session: Session) -> Topic:
    return Topic(
        title=session.lesson.task,
        keywords=session.lesson.keywords[:MAX_TOPIC_KEYWORDS],
        desc=_desc(session),
        learnings=_learnings(session),
    )


def _past_topic(session: Session) -> Topic:
    return Topic(session.lesson.task, session.lesson.keywords[:MAX_TOPIC_KEYWORDS], _desc(session))


def _least_topic(project: Project) -> Topic:
    if not project.sessions:
        return Topic(project.cwd, KEYWORDS, project.group.scope)
    session = project.sessions[-1]
    return Topic(clip(session.lesson.task, MAX_LEAST_CHARS), session.lesson.keywords[:1], session.lesson.outcome)


def _desc(session: Session) -> str:
    said = next((one for one in session.lesson.knowledge if one.startswith(LAST_ANSWER)), "")
    return clip(f"{session.lesson.outcome}; {said}" if said else session.lesson.outcome, MAX_DESC_CHARS)


def _learnings(session: Session) -> str:
    """Return what the session taught, whole statements only, as many as there is room for."""
    lesson = session.lesson
    statements = [*map(preference_text, lesson.preferences), *lesson.failures, *lesson.knowledge, *places_in(lesson)]
    kept = ""
    for statement in (one for one in statements if not one.startswith(LAST_ANSWER)):
        longer = f"{kept}; {statement}" if kept else statement
        if len(longer) > MAX_LEARNINGS_CHARS:
            continue
        kept = longer
    return kept or "see its rollout summary"
