"""Sessions with sentences drawn at random, and what must and must not be remembered of each."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.control.demo_sessions.install import record
from memoryd.control.demo_sessions.records import thread_id_of
from memoryd.control.demo_sessions.scripts import Row, Script

PREFERENCES: Final = (
    "From now on name {thing} after the {other}.",
    "Always keep the {thing} next to the {other}.",
    "Never touch the {thing} of the {other} by hand.",
    "Please use the {thing} instead of the {other}.",
    "I prefer a short {thing} over a long {other}.",
    "Don't put the {thing} into the {other}.",
    "Remember that the {thing} belongs to the {other}.",
    "No, the {thing} must not know the {other}.",
    "Stop mixing the {thing} with the {other}.",
    "We always write the {thing} before the {other}.",
    "Ab jetzt bitte immer das {thing} vor dem {other} bauen.",
    "Désormais, garde le {thing} avec le {other}.",
    "A partir de ahora pon el {thing} con el {other}.",
)
REQUESTS: Final = (
    "Please fix the {thing} in the {other}.",
    "Add a {thing} to the {other}.",
    "The {thing} of the {other} is broken since yesterday.",
    "Rename the {thing} so that the {other} finds it.",
)
SMALL_TALK: Final = (
    "Hello!",
    "Good morning!",
    "Thanks a lot!",
    "Hi, how are you today?",
    "Great, thank you!",
    "What does the {thing} do to the {other}?",
    "Can you explain the {thing} of the {other}?",
)
ANSWERS: Final = ("The {thing} now fits the {other}.", "The {other} has its {thing} back.", "Both use one {thing} now.")
WORDS: Final = tuple(
    f"{first}{second}"
    for first in ("amber", "birch", "cobalt", "dusty", "ember", "fjord", "glade", "hazel")
    for second in (
        *("gate", "ledger", "parser", "queue", "schema", "socket", "table", "widget"),
        *("anchor", "buffer", "cursor", "driver", "engine", "folder", "graph", "hook"),
    )
)
TOOLS: Final = ("pytest", "cargo test", "go test", "npm test", "make check", "mix test")
DAY_SECONDS: Final = 86_400
PROJECTS: Final = ("/home/rand/atlas", "/home/rand/borealis", "/home/rand/cinder")


@dataclass(frozen=True, slots=True)
class Planted:
    """One generated session: texts that must stand in the memory afterwards, and texts that must not."""

    thread_id: str
    path: Path
    cwd: str
    must_remember: tuple[str, ...]
    must_not_remember: tuple[str, ...]
    remembered: bool


def random_sessions(into: Path, *, now: float, rng: random.Random, count: int = 12) -> list[Planted]:
    """Write random sessions into the Codex home `into` and say what was planted.

    All of them ended between one and nine days before `now`. No word is drawn twice, so that no statement can be taken
    for another's correction.
    """
    words = list(WORDS)
    rng.shuffle(words)
    return [_session(into, now, rng, f"random-{number}", words) for number in range(count)]


def _session(into: Path, now: float, rng: random.Random, name: str, words: list[str]) -> Planted:
    starts = -float(rng.randrange(DAY_SECONDS + 3_600, 9 * DAY_SECONDS))
    cwd = rng.choice(PROJECTS)
    kind = rng.choice(("preference", "cure", "both", "small talk"))
    rows: list[Row] = []
    wanted: list[str] = []
    unwanted: list[str] = []
    if kind == "small talk":
        unwanted = [_filled(rng, SMALL_TALK, words) for _ in range(rng.randint(1, 2))]
        for text in unwanted:
            rows += [Row(0, "human", text), Row(0, "answers", "At your service.")]
    else:
        rows.append(Row(0, "human", _filled(rng, REQUESTS, words)))
    if kind in ("cure", "both"):
        cure, texts = _cure(rng, words)
        rows += cure
        wanted += texts
    if kind in ("preference", "both"):
        statement = _filled(rng, PREFERENCES, words)
        rows += [Row(0, "answers", _filled(rng, ANSWERS, words)), Row(0, "human", statement)]
        wanted.append(statement)
    if kind != "small talk":
        rows.append(Row(0, "answers", _filled(rng, ANSWERS, words)))
    timed = tuple(Row(20.0 * at, row.kind, row.text, row.exit_code, row.output) for at, row in enumerate(rows))
    script = Script(name=name, starts=starts, cwd=cwd, rows=timed)
    (path,) = record([script], into, now=now)
    thread_id = thread_id_of(name, now + starts)
    return Planted(thread_id, path, cwd, tuple(wanted), tuple(unwanted), remembered=bool(wanted))


def _cure(rng: random.Random, words: list[str]) -> tuple[list[Row], list[str]]:
    """A command that fails, an edit, and the same command that works."""
    thing = words.pop()
    command = f"{rng.choice(TOOLS)} src/{thing}.py"
    message = f"AssertionError: {thing} is {rng.randrange(1000)}"
    patch = f"*** Begin Patch\n*** Update File: src/{thing}.py\n-old\n+new\n*** End Patch"
    rows = [
        Row(0, "runs", command, rng.randint(1, 3), f"collected 1 item\n{message}\n1 failed in 0.1s\n"),
        Row(0, "patches", patch, 0, "Success.\n"),
        Row(0, "runs", command, 0, "1 passed in 0.1s\n"),
    ]
    return rows, [command, message, f"src/{thing}.py"]


def _filled(rng: random.Random, sentences: tuple[str, ...], words: list[str]) -> str:
    """Draw a sentence and use up the words that it needs."""
    sentence = rng.choice(sentences)
    thing = words.pop() if "{thing}" in sentence else ""
    other = words.pop() if "{other}" in sentence else ""
    return sentence.format(thing=thing, other=other)
