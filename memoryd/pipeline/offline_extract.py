"""Stage 1 without a model: what a session's own words and exit codes show, quoted, and nothing else.

Deterministic and extractive: a sentence in the result is a person's, a command's, an output's or the agent's own, put
behind a label; nothing is concluded that an exit code does not say. A session of small talk, or one that only asks and
looks, teaches nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.pipeline.offline_commands import Failure, Run, failures_of, is_lasting, is_probe, program_of, runs_of
from memoryd.pipeline.offline_cues import classify
from memoryd.pipeline.offline_files import Places, places_of
from memoryd.pipeline.offline_preferences import preferences_of
from memoryd.pipeline.offline_raw import (
    CHANGED,
    DIRECTORIES,
    LAST_ANSWER,
    NAMED,
    Lesson,
    render_lesson,
    render_subsections,
)
from memoryd.pipeline.offline_subjects import terms_of
from memoryd.pipeline.offline_text import as_code, clip, is_quotable, is_small_talk, one_line, sentences
from memoryd.pipeline.reply import NOTHING, Stage1Reply
from memoryd.pipeline.session_facts import SessionFacts
from memoryd.sources.items import Item, ItemKind

MAX_TASK_CHARS: Final = 100
MAX_OUTCOME_SENTENCES: Final = 2
MAX_OUTCOME_CHARS: Final = 300
MAX_COMMANDS: Final = 5
MAX_FAILURES: Final = 8
MAX_STEPS: Final = 12
MAX_KEYWORDS: Final = 10
MAX_SLUG_WORDS: Final = 5

NO_MODEL: Final = "no model wrote this summary"


@dataclass(frozen=True, slots=True)
class Work:
    """What was done in a session."""

    runs: tuple[Run, ...]
    failures: tuple[Failure, ...]
    places: Places

    @property
    def is_some(self) -> bool:
        """Whether anything was changed or tried, rather than only looked at."""
        return bool(self.runs or self.places.edited)


def extract_offline(*, session: SessionFacts, items: Sequence[Item]) -> Stage1Reply:
    """Write the stage-1 reply of a session from its sanitised items; NOTHING when it taught nothing."""
    human = [item for item in items if item.kind is ItemKind.HUMAN]
    preferences = preferences_of(items, cwd=session.cwd)
    work = _work_of(items, session)
    if not human or not (preferences or work.is_some):
        return NOTHING
    task = _request_of(human) or (preferences[-1].default if preferences else "")
    lesson = Lesson(
        task=clip(task, MAX_TASK_CHARS).rstrip(" .,;:!") or f"session in {_place(session)}",
        task_group=_project(session),
        outcome=_outcome_of(work),
        cwd=_place(session),
        keywords=_keywords(task, work),
        preferences=tuple(preferences),
        knowledge=_knowledge(items, work),
        failures=tuple(failure_bullet(failure) for failure in work.failures),
        references=_references(session, work.places),
    )
    return Stage1Reply(
        raw_memory=_storable(render_lesson(lesson)),
        rollout_summary=_storable(_render_rollout_summary(session, lesson, work)),
        rollout_slug="-".join(terms_of(lesson.task)[:MAX_SLUG_WORDS]) or None,
    )


def failure_bullet(failure: Failure) -> str:
    """Say what failed, with which words, and what then worked after which changes; every part quoted."""
    said = f' ("{failure.message}")' if failure.message else ""
    again = f", {failure.times} times" if failure.times > 1 else ""
    text = f"{as_code(failure.failed.command)} failed with exit code {failure.failed.exit_code}{said}{again}"
    if failure.cure is None:
        return f"{text}; no similar command worked later in the session"
    steps = [f"running {as_code(command)}" for command in failure.between_commands]
    steps += [f"changing {as_code(path)}" for path in failure.between_files]
    after = f"after {', '.join(steps)}, " if steps else ""
    cure = "the same command" if failure.cure.command == failure.failed.command else as_code(failure.cure.command)
    return f"{text}; {after}{cure} worked with exit code 0"


def _work_of(items: Sequence[Item], session: SessionFacts) -> Work:
    runs = runs_of(items)
    failures = failures_of(runs, items)
    return Work(
        runs=tuple(run for run in runs if not is_probe(run.command)),
        failures=tuple(failures[-MAX_FAILURES:]),
        places=places_of(items, cwd=session.cwd),
    )


def _request_of(human: Sequence[Item]) -> str:
    """Return the first sentence that asks for something: no greeting, and no rule for all times."""
    spoken = [sentence for item in human for sentence in sentences(item.text) if not is_small_talk(sentence)]
    return next((sentence for sentence in spoken if classify(sentence) is None), "")


def _outcome_of(work: Work) -> str:
    """Judge by exit codes alone; without any, nobody knows."""
    open_failures = [failure for failure in work.failures if failure.cure is None]
    if not work.runs:
        return "uncertain"
    if not work.runs[-1].worked:
        return "fail"
    return "partial" if open_failures else "success"


def _keywords(task: str, work: Work) -> tuple[str, ...]:
    files = [path.rsplit("/", 1)[-1] for path in (*work.places.edited, *work.places.named)][:4]
    programs = [program_of(run.command) for run in work.runs][:4]
    words = [word for word in (*files, *programs, *terms_of(task)) if word and not set(word) & set(",()")]
    return tuple(dict.fromkeys(words))[:MAX_KEYWORDS]


def _knowledge(items: Sequence[Item], work: Work) -> tuple[str, ...]:
    """Commands that worked, then what the agent said last."""
    worked = dict.fromkeys(run.command for run in work.runs if run.worked and is_lasting(run.command))
    bullets = [f"{as_code(command)} worked with exit code 0" for command in list(worked)[-MAX_COMMANDS:]]
    if outcome := _last_words(items):
        bullets.append(f'{LAST_ANSWER}"{outcome}"')
    return tuple(bullets)


def _last_words(items: Sequence[Item]) -> str:
    """Return the first sentences of the last final answer."""
    final = next((item.text for item in reversed(items) if item.kind is ItemKind.ASSISTANT_FINAL), "")
    said = [sentence for sentence in sentences(final) if not is_small_talk(sentence)]
    together = " ".join(said[:MAX_OUTCOME_SENTENCES])
    if together in one_line(final) and len(together) <= MAX_OUTCOME_CHARS:
        return together
    return clip(said[0], MAX_OUTCOME_CHARS)


def _references(session: SessionFacts, places: Places) -> tuple[str, ...]:
    rows = ((CHANGED, places.edited), (NAMED, places.named), (DIRECTORIES, places.directories))
    bullets = [f"{label}: {', '.join(as_code(path) for path in paths)}" for label, paths in rows if paths]
    if session.git_branch and is_quotable(session.git_branch):
        bullets.append(f"branch: {as_code(one_line(session.git_branch))}")
    return tuple(bullets)


def _render_rollout_summary(session: SessionFacts, lesson: Lesson, work: Work) -> str:
    """Write the rollout summary that a model would: the same statements, and the steps with their exit codes."""
    steps = list(dict.fromkeys((run.command, run.exit_code) for run in work.runs))[-MAX_STEPS:]
    branch = (
        f", branch {one_line(session.git_branch)}" if session.git_branch and is_quotable(session.git_branch) else ""
    )
    return "\n".join(
        [
            f"# {lesson.task}",
            "",
            f"Rollout context: a session of {one_line(session.agent)} in {lesson.cwd}{branch}; {NO_MODEL}.",
            "",
            f"## Task 1: {lesson.task}",
            "",
            f"Outcome: {lesson.outcome}",
            "",
            "Key steps:",
            *(f"- {as_code(command)} (exit code {code})" for command, code in steps),
            *render_subsections(lesson),
        ]
    )


def _place(session: SessionFacts) -> str:
    place = one_line(session.cwd or "")
    return place if is_quotable(place) else "unknown"


def _project(session: SessionFacts) -> str:
    return _place(session).rstrip("/").rsplit("/", 1)[-1] or "/"


def _storable(text: str) -> str:
    """A path may hold a lone surrogate, which neither SQLite nor a file takes."""
    return text.encode("utf-8", "replace").decode()
