"""Stage 1 without a model: what is remembered, in the exact format, and nothing that was not said."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.pipeline.offline_extract import extract_offline
from memoryd.pipeline.offline_preferences import Preference
from memoryd.pipeline.offline_raw import parse_lesson, render_lesson
from memoryd.pipeline.offline_text import one_line
from memoryd.pipeline.reply import NOTHING
from memoryd.sources.items import Item, ItemKind
from tests.support.offline_sessions import CWD, extract, facts, final, human, patch, run

CHANGE = "after changing `app/paging.py`"
RAW = f"""---
description: GET /orders repeats a row
task: GET /orders repeats a row
task_group: shop
task_outcome: success
cwd: {CWD}
keywords: paging.py, README.md, pip, pytest, order, repeat, row
---

### Task 1: GET /orders repeats a row

task: GET /orders repeats a row
task_group: shop
task_outcome: success

Preference signals:
- when the agent had run `pip install x`, the user corrected: "No, use uv instead of pip." -> use uv instead of pip
- when working in {CWD}, the user said: "From now on always run `make check`." -> always run `make check`

Reusable knowledge:
- `pip install x` worked with exit code 0
- `pytest -q` worked with exit code 0
- the agent's last answer: "Fixed. All tests pass."

Failures and how to do differently:
- `pytest -q` failed with exit code 1 ("AssertionError: 17"); {CHANGE}, the same command worked with exit code 0

References:
- changed files: `app/paging.py`
- files named repeatedly: `README.md`
- branch: `main`
"""

SUMMARY = f"""# GET /orders repeats a row

Rollout context: a session of codex in {CWD}, branch main; no model wrote this summary.

## Task 1: GET /orders repeats a row

Outcome: success

Key steps:
- `pip install x` (exit code 0)
- `pytest -q` (exit code 1)
- `pytest -q` (exit code 0)

"""


def test_a_session_becomes_a_raw_memory_and_a_summary_in_the_exact_format() -> None:
    reply = extract(
        human("Hi! GET /orders repeats a row. See README.md and fix it."),
        run("cat README.md"),
        run("pip install x"),
        human("No, use uv instead of pip."),
        run("pytest -q", 1, "AssertionError: 17\n1 failed in 0.1s\n"),
        patch("app/paging.py"),
        run("pytest -q", 0, "1 passed\n"),
        human("From now on always run `make check`."),
        final("Fixed. All tests pass. Anything else?"),
    )

    assert reply.raw_memory == RAW
    assert reply.rollout_summary == SUMMARY + RAW[RAW.index("Preference signals:") :].rstrip("\n")
    assert reply.rollout_slug == "order-repeat-row"


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([], id="nothing"),
        pytest.param([human("Hello!"), final("Hi, what shall we do?"), human("Thanks!")], id="greetings"),
        pytest.param([human("What does 409 mean?"), final("Conflict.")], id="a question"),
        pytest.param([human("Where is the port set?"), *run("grep -rn port ."), final("In a.py.")], id="looking"),
        pytest.param([human("Please fix the bug."), final("Which one?")], id="a request without work"),
        pytest.param([*run("make"), final("Always run make.")], id="work without a person"),
        pytest.param([Item(ItemKind.HARNESS_CONTEXT, "Always use npm.", 0)], id="the harness"),
        pytest.param([Item(ItemKind.OTHER_AGENT, "Always use npm.", 0), *run("make")], id="another agent"),
    ],
)
def test_small_talk_questions_and_sessions_without_a_person_teach_nothing(items: list[Item]) -> None:
    assert extract_offline(session=facts(), items=items) == NOTHING


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ([run("make", 1), run("make")], "success"),
        ([run("make deploy", 1), run("pytest")], "partial"),
        ([run("pytest"), run("make deploy", 1)], "fail"),
        ([patch("a.py")], "uncertain"),
    ],
)
def test_the_outcome_is_what_exit_codes_say(parts: list[list[Item]], outcome: str) -> None:
    assert parse_lesson(extract(human("Please do it."), *parts).raw_memory).outcome == outcome


def test_a_session_that_only_states_a_rule_is_named_after_it() -> None:
    lesson = parse_lesson(extract(human("Hello! From now on always use tabs.")).raw_memory)

    assert lesson.task == "always use tabs"


def test_a_session_whose_request_cannot_be_quoted_is_named_after_its_directory() -> None:
    reply = extract(human("```\nmake it so\n```"), patch("a.py"))

    assert parse_lesson(reply.raw_memory).task == f"session in {CWD}"


def test_a_session_without_a_directory_says_unknown() -> None:
    lesson = parse_lesson(extract(human("Always use tabs."), cwd=None).raw_memory)

    assert (lesson.cwd, lesson.task_group) == ("unknown", "unknown")


def test_the_last_answer_is_quoted_by_whole_sentences_or_cut_between_words() -> None:
    long = "word " * 70
    lesson = parse_lesson(extract(human("Do it."), patch("a.py"), final(f"{long}end. Second one.")).raw_memory)

    (answer,) = lesson.knowledge
    assert answer == f'the agent\'s last answer: "{long[:299].strip()}"'


def test_a_changed_mind_survives_writing_and_reading() -> None:
    reply = extract(human("Always use npm."), human("Actually, use pnpm instead of npm."), human("Never push."))

    lesson = parse_lesson(reply.raw_memory)

    assert [[quote.text for quote in one.quotes] for one in lesson.preferences] == [
        ["Always use npm.", "Actually, use pnpm instead of npm."],
        ["Never push."],
    ]
    assert render_lesson(lesson) == reply.raw_memory


def test_a_raw_memory_of_a_model_is_read_as_far_as_it_is_understood() -> None:
    lesson = parse_lesson(
        "---\ndescription: two things\ntask: t\ntask_group: g\ntask_outcome: partial\ncwd: /w\nkeywords: a, , "
        "b\n---\n\n"
        "### Task 1: First thing\n\ntask: x\nstray line\n- stray bullet\n\nPreference signals:\n"
        '- When asked for tests, the user said "use pytest" -> pytest\n- prefers short answers\n-  \n'
        "### Task 2: Second thing\n- not below a label\n\nReusable knowledge:\n- it builds\n\nReferences:\n- see x\n"
    )

    assert (lesson.task, lesson.outcome, lesson.keywords) == ("t", "partial", ("a", "b"))
    assert [(one.situation, one.latest.text) for one in lesson.preferences] == [("asked for tests", "use pytest")]
    assert (lesson.remarks, lesson.knowledge) == (("prefers short answers",), ("it builds",))
    assert (lesson.failures, lesson.references) == ((), ("see x",))


def test_a_raw_memory_without_any_form_is_an_empty_lesson() -> None:
    lesson = parse_lesson("just prose")

    assert (lesson.task, lesson.outcome, lesson.preferences) == ("", "uncertain", ())


WORDS = st.lists(
    st.sampled_from(["tabs", "spaces", "tests", "yarn", "pnpm", "docs", "main", "src/a.py", "b.ts"]),
    min_size=1,
    max_size=4,
)
RULES = st.builds(
    lambda frame, words: frame.format(" ".join(words)),
    st.sampled_from(
        [
            "Always use {}.",
            "No, use {}.",
            "Don't touch {}!",
            "Remember that {} matter.",
            "I prefer {}",
            "Never {}",
            "Use {} instead.",
        ]
    ),
    WORDS,
)
TALK = st.sampled_from(["Hello!", "Please fix it.", "Why is that?", "It always fails.", "Thanks."])
SPOKEN = st.lists(RULES | TALK | st.text(max_size=40), min_size=1, max_size=5).map(" ".join)
COMMANDS = st.builds(
    lambda program, words: " ".join([program, *words]),
    st.sampled_from(["make", "pytest", "npm", "ls", "uv run pytest"]),
    WORDS,
)
OUTPUTS = st.sampled_from(["", "Error: no route to b.ts\n", "all fine\n", "FAILED\nValueError: tabs\n"]) | st.text(
    max_size=40
)
STEPS = st.one_of(
    SPOKEN.map(lambda text: [human(text)]),
    SPOKEN.map(lambda text: [final(text)]),
    st.builds(run, COMMANDS | st.text(max_size=30), st.integers(-1, 2) | st.none(), OUTPUTS),
    st.just(patch("src/a.py", "b.ts")),
)
SESSIONS = st.lists(STEPS, max_size=14).map(lambda steps: [item for step in steps for item in step])

LABELS = re.compile(
    r"when working(?: in \S+)?, the user |when the agent had run |when the agent had said |when the agent had "
    r"changed |, the user |first "
    r"|(?:said|asked|corrected): "
    r"|, later | -> | failed with exit code -?\d+|, \d+ times|; no similar command worked later in the session"
    r"|; |after "
    r"|running |changing |(?:the same command)? worked with exit code 0|the agent's last answer: |changed "
    r"files: |files named repeatedly: "
    r"|directories: |branch: `main`| \(exit code -?\d+\)|, (?=`)"
)


def evidence_of(items: list[Item]) -> str:
    return one_line(" ".join(item.text for item in items)).replace("**", "")


def quotes_of(preferences: tuple[Preference, ...]) -> list[str]:
    return [quote.text for preference in preferences for quote in preference.quotes]


@given(SESSIONS)
def test_every_quote_of_a_person_stands_in_what_people_said(items: list[Item]) -> None:
    said = evidence_of([item for item in items if item.kind is ItemKind.HUMAN])

    for quote in quotes_of(parse_lesson(extract_offline(session=facts(), items=items).raw_memory).preferences):
        assert quote in said


PLAIN_SESSIONS = st.lists(
    st.one_of(
        st.lists(RULES | TALK, min_size=1, max_size=4).map(lambda said: [human(" ".join(said))]),
        st.lists(RULES | TALK, min_size=1, max_size=4).map(lambda said: [final(" ".join(said))]),
        st.builds(
            run,
            COMMANDS,
            st.integers(0, 2),
            st.sampled_from(["", "Error: no route to b.ts\n", "FAILED\nValueError: tabs\n"]),
        ),
        st.just(patch("src/a.py", "b.ts")),
    ),
    max_size=14,
).map(lambda steps: [item for step in steps for item in step])


@given(PLAIN_SESSIONS)
def test_every_bullet_is_evidence_once_its_labels_are_gone(items: list[Item]) -> None:
    reply = extract_offline(session=facts(), items=items)
    evidence = evidence_of(items)

    for line in (reply.raw_memory + reply.rollout_summary).splitlines():
        if line.startswith("- "):
            for piece in LABELS.split(line[2:]):
                assert piece.strip(' `"(),') in evidence, line


@given(SESSIONS)
def test_the_same_session_always_gives_the_same_storable_reply(items: list[Item]) -> None:
    reply = extract_offline(session=facts(), items=items)

    assert reply == extract_offline(session=facts(), items=items)
    assert reply.is_empty or (reply.raw_memory.encode() and reply.rollout_summary.encode())
    assert reply.is_empty or parse_lesson(reply.raw_memory).task
