"""The structure ladder and the words that replace a schema."""

import json

from memoryd.llm.codec import Structure
from memoryd.llm.structure import instructions_for, next_rung
from tests.llm.asking import SCHEMA, a_question

LADDER = (Structure.JSON_SCHEMA, Structure.JSON_OBJECT, Structure.PROMPT)


def test_an_enforced_schema_needs_no_words() -> None:
    question = a_question(schema=SCHEMA)
    assert instructions_for(question, Structure.JSON_SCHEMA) == question.instructions


def test_a_question_without_a_schema_keeps_its_instructions() -> None:
    assert instructions_for(a_question(), Structure.PROMPT) == "Read the session."


def test_on_every_other_rung_the_schema_stands_in_the_instructions() -> None:
    text = instructions_for(a_question(schema=SCHEMA), Structure.JSON_OBJECT)
    assert text.startswith("Read the session.")
    assert json.loads(text.rpartition("\n\n")[2]) == SCHEMA.schema
    assert "JSON" in text


def test_the_ladder_ends() -> None:
    assert [next_rung(LADDER, rung) for rung in LADDER] == [Structure.JSON_OBJECT, Structure.PROMPT, None]
