"""Makes the memory folder of the benchmark, and knows where each fact stands in it, and where an earlier one does.

40 projects with 10 parts each and 25 facts a part: 10,000 bullets. 256 sessions told some of them, in the other
wording; what has changed since stands there as it was. Everything follows from the seed.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, TypeAlias

from tests.bench.search.names import PARTS, PROJECTS
from tests.bench.search.topics import TOPICS, Topic

SEED: Final = 20261201
"""Of the results that are kept; the ranking's numbers were chosen by the questions of other seeds, 1 and 2."""
NOW: Final = datetime(2026, 11, 30, tzinfo=UTC)
SESSIONS: Final = 256
PARTS_EACH: Final = 10
FACTS_A_SESSION: Final = 9
CHANGED: Final = 0.25
"""So many of the facts that a session told were another before."""
HANDBOOK: Final = "MEMORY.md"
ROOT: Final = "/home/dev/src"

REMARKS: Final = (
    " since the move in {m}, see {t}",
    " ({n} runs in {m})",
    "; agreed in {m} with {n} people",
    " (seen {n} times since {m})",
    ", says the runbook ({t})",
    "; the old way stopped working in {m}, {t}",
    " on all {n} hosts since {m}",
    ", as CI does; {t}",
    "; {n} people asked for it in {m}",
    " (checked on {m} {n})",
    ", also on macOS ({t})",
    "; the wiki is wrong here, {t}",
    ", see ticket {t}",
    "; {t} has the details",
    "; noted on {m} {n}",
    ", which took {n} minutes to find out in {m}",
)
MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")

Place: TypeAlias = tuple[str, int]
"""A file and a line of it."""


@dataclass(slots=True)
class Fact:
    """One statement; `places` are where it stands as it is now, `stale` where it stands as it was."""

    project: str
    part: str
    topic: Topic
    value: str
    old: str | None = None
    places: set[Place] = field(default_factory=set)
    stale: set[Place] = field(default_factory=set)

    @property
    def cwd(self) -> str:
        return f"{ROOT}/{self.project}"

    def said(self, wording: int, value: str | None = None) -> str:
        return self.topic.says[wording].format(c=self.part, v=value or self.value)


@dataclass(frozen=True, slots=True)
class Session:
    """One rollout summary."""

    path: str
    thread: str
    project: str
    at: datetime


@dataclass(frozen=True, slots=True)
class World:
    """The files by their paths, and the facts."""

    files: dict[str, str]
    facts: list[Fact]
    sessions: list[Session]


def make_world(seed: int = SEED) -> World:
    """Make all of it."""
    random = Random(seed)
    facts = [
        Fact(project, part, topic, random.choice(topic.values))
        for project in PROJECTS
        for part in sorted(random.sample(PARTS, PARTS_EACH))
        for topic in TOPICS
    ]
    sessions = [_session(random, number) for number in range(SESSIONS)]
    files = dict(_summaries(random, facts, sessions))
    files[HANDBOOK] = _handbook(random, facts, sessions)
    return World(files, facts, sessions)


def _session(random: Random, number: int) -> Session:
    at = NOW - timedelta(days=1 + 300 * number / SESSIONS, minutes=random.randrange(600))
    thread = (
        f"{random.getrandbits(32):08x}-{random.getrandbits(16):04x}-7{random.getrandbits(12):03x}-8000-{number:012x}"
    )
    stem = f"{at:%Y-%m-%dT%H-%M-%S}-{number:04d}"
    return Session(f"rollout_summaries/{stem}.md", thread, PROJECTS[number % len(PROJECTS)], at)


def _summaries(random: Random, facts: list[Fact], sessions: list[Session]) -> Iterator[tuple[str, str]]:
    by_project = defaultdict(list)
    for fact in facts:
        by_project[fact.project].append(fact)
    for session in sessions:
        told = random.sample(by_project[session.project], FACTS_A_SESSION)
        is_early = (NOW - session.at).days > 60
        lines = [
            f"thread_id: {session.thread}",
            "agent: codex",
            f"updated_at: {session.at.isoformat()}",
            f"rollout_path: /home/dev/.codex/sessions/{session.thread}.jsonl",
            f"cwd: {ROOT}/{session.project}",
            "",
            f"# Worked on {told[0].part} of {session.project}",
            "",
            "Rollout context: the user asked for a change and a look at what was around it.",
        ]
        for task in range(3):
            some = told[3 * task : 3 * task + 3]
            lines += ["", f"## Task {task + 1}: {some[0].topic.name} of {some[0].part}", "", "Outcome: success", ""]
            lines += ["Reusable knowledge:"]
            for fact in some:
                is_old = is_early and not fact.places and (fact.old is not None or random.random() < CHANGED)
                if is_old and fact.old is None:
                    fact.old = random.choice([value for value in fact.topic.values if value != fact.value])
                lines.append(f"- {fact.said(0, fact.old if is_old else None)}")
                (fact.stale if is_old else fact.places).add((session.path, len(lines)))
        yield session.path, "\n".join(lines) + "\n"


def _handbook(random: Random, facts: list[Fact], sessions: list[Session]) -> str:
    by_part: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        by_part[fact.project, fact.part].append(fact)
    lines: list[str] = []
    for (project, part), told in by_part.items():
        own = [session for session in sessions if session.project == project]
        lines += [*([""] if lines else []), f"# Task Group: {project} / {part}", f"scope: work on {part} in {project}"]
        lines.append(f"applies_to: cwd={ROOT}/{project}; reuse_rule=while the repository is laid out like this")
        for number in range(5):
            some = told[5 * number : 5 * number + 5]
            keywords = [part, *(fact.topic.name for fact in some[:3]), some[0].value]
            lines += ["", f"## Task {number + 1}: {some[0].topic.name} and {some[1].topic.name}, success", ""]
            lines += ["### rollout_summary_files", ""]
            lines += [f"- {session.path} (cwd={ROOT}/{project})" for session in random.sample(own, 2)]
            lines += ["", "### keywords", "", f"- {', '.join(keywords)}"]
        for section in dict.fromkeys(topic.section for topic in sorted(TOPICS, key=_place_of_section)):
            lines += ["", f"## {section}", ""]
            for place, fact in enumerate(told):
                if fact.topic.section == section:
                    said = fact.said(random.randrange(2)) + _remark(random)
                    lines.append(f"- {said} [Task {place // 5 + 1}] [{fact.topic.mark}]")
                    fact.places.add((HANDBOOK, len(lines)))
    return "\n".join(lines) + "\n"


def _remark(random: Random) -> str:
    """Return what statements say besides: the same fact of two projects is seldom told in the very same words."""
    ticket = f"{random.choice('ABCDEFGH')}{random.choice('KLMNOP')}-{random.randrange(100, 9999)}"
    return random.choice(REMARKS).format(m=random.choice(MONTHS), n=random.randrange(2, 60), t=ticket)


def _place_of_section(topic: Topic) -> int:
    return ("User preferences", "Reusable knowledge", "Failures and how to do differently").index(topic.section)
