"""What keeps to the schema and answers nothing is refused; whatever a session can have taught is kept."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import MalformedReply
from memoryd.pipeline.prompting import load_prompt, stage1_question_parts
from memoryd.pipeline.reply import NOTHING, Stage1Reply
from memoryd.pipeline.reply_sense import refuse_nonsense
from tests.support.model_manners import stage1_reply
from tests.support.offline_sessions import extract, facts, final, human, patch, run

EVIDENCE = "[human user] Always use tabs in the Makefile\n[tool] make: exit 0"
ASKED = stage1_question_parts(facts(), EVIDENCE)
SYSTEM = load_prompt("stage1_system")
SHAPE = SYSTEM[SYSTEM.index("---\ndescription: <one line") : SYSTEM.index("In a preference signal")]
EXAMPLE = SYSTEM[SYSTEM.index("### Task 1: fix the rounding") : SYSTEM.index("Write no sentence")]
SUMMARY = "# The Makefile uses tabs"
HONEST = (
    "The user wants tabs in the Makefile.",
    "tabs",
    "Tabs!",
    "タブを使う",
    "- 用制表符",
    "use tabs; " * 300,
    "None of the tests ran: the port was taken",
    "task_outcome: success\n- nothing to remember but that port 5433 is taken",
    "References:\n- `Makefile`: the fix\nReferences:\n- `Makefile`: the fix",
    "\n".join(f"- tests/test_module_{number}.py passes (verified)" for number in range(400)),
    "\n".join(
        f"### Task {number}: make\ntask: make\ntask_outcome: success\n\nReferences:\n- `Makefile`"
        for number in range(99)
    ),
    f"{SHAPE}\n" + "\n".join(f"- fact {number} of this session, with its handle (verified)" for number in range(20)),
)


def a_reply(raw: str, summary: str = SUMMARY) -> Stage1Reply:
    return Stage1Reply(raw, summary, None)


def judged(reply: Stage1Reply, evidence: str = EVIDENCE) -> Stage1Reply:
    return refuse_nonsense(reply, stage1_question_parts(facts(), evidence), evidence)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("string", "is a placeholder"),
        ("raw_memory", "is a placeholder"),
        ("...", "is a placeholder"),
        ("<string>", "is a placeholder"),
        ("N/A", "is a placeholder"),
        ("Nothing to remember.", "is a placeholder"),
        ("---\n---", "is a placeholder"),
        ("👍", "is a placeholder"),
        ("the the " * 3000, "over and over"),
        ("- use tabs in the Makefile (stated)\n" * 400, "over and over"),
        (SHAPE, "repeats the instructions"),
        (EXAMPLE, "repeats the instructions"),
        (SYSTEM, "repeats the instructions"),
        (ASKED.opening.replace(EVIDENCE, "- tabs"), "repeats the instructions"),
        (f"{SHAPE}\n- tabs in the Makefile (stated)", "repeats the instructions"),
    ],
)
def test_what_no_session_can_have_taught_is_no_reply(raw: str, why: str) -> None:
    for reply in (a_reply(raw), a_reply("- tabs (stated)", raw)):
        with pytest.raises(MalformedReply, match=why):
            judged(reply)


@pytest.mark.parametrize("raw", HONEST)
def test_an_honest_reply_is_kept_however_loose_its_form(raw: str) -> None:
    assert judged(a_reply(raw)) == a_reply(raw)
    assert judged(a_reply("- tabs (stated)", raw)) == a_reply("- tabs (stated)", raw)


def test_nothing_to_remember_stays_what_it_is() -> None:
    assert judged(NOTHING) == NOTHING


@pytest.mark.parametrize("quoted", [SYSTEM, json.dumps(SYSTEM), SYSTEM.replace("\n", "\n    ")])
def test_a_session_about_these_very_instructions_may_quote_them(quoted: str) -> None:
    evidence = f"[human user] Improve this prompt:\n[tool] {quoted}"
    for raw in (SHAPE, EXAMPLE):
        assert judged(a_reply(raw), evidence) == a_reply(raw)


def test_the_facts_of_a_session_may_be_repeated() -> None:
    asked = stage1_question_parts(facts("/home/dev/customers/a-long-name/shop-frontend"), EVIDENCE)
    (cwd,) = (row for row in asked.opening.split("\n") if row.startswith("cwd: "))
    reply = a_reply(f"{cwd}\n- tabs in the Makefile (stated)")
    assert refuse_nonsense(reply, asked, EVIDENCE) == reply


def test_a_session_about_such_questions_may_quote_how_another_fenced_its_evidence() -> None:
    fence = "===== EVIDENCE 0123456789abcdef ====="
    raw = f"The prompt of stage 1 fences the evidence twice with a line like this:\n{fence}"
    assert judged(a_reply(raw), f"[tool] cat prompt.txt:\n{fence}\nhello\n{fence}") == a_reply(raw)


def test_what_the_writers_of_this_house_write_is_kept() -> None:
    offline = extract(
        human("Always use npm. Never push to main."), run("make test", 1, "Error"), patch("a.py"), final("Done.")
    )
    assert judged(offline) == offline
    scripted = json.loads(stage1_reply(f"cwd: /home/dev/shop\nthread_id: x\n\n{EVIDENCE}\n").text)
    reply = a_reply(scripted["raw_memory"], scripted["rollout_summary"])
    assert judged(reply) == reply


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=3, max_size=12), min_size=3, max_size=60
    )
)
def test_any_row_of_different_words_is_kept(words: list[str]) -> None:
    reply = a_reply(" ".join(["kept", *words]))
    assert judged(reply) == reply


def test_recorded_memories_of_another_program_are_kept() -> None:
    """Codex's own stage 1, whose prompt is not ours."""
    folder = Path(__file__).parents[1] / "fixtures" / "codex_memories" / "memories"
    for path in (*folder.glob("rollout_summaries/*.md"), folder / "raw_memories.md", folder / "MEMORY.md"):
        reply = a_reply(path.read_text())
        assert judged(reply) == reply
