"""What a question looks for and what the index knows of a text: identifiers in their parts, no character is syntax."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.recall.search_words import MAX_TERMS, any_of, handles_of, parts_of, prefixes_of, terms_of, word


def words(question: str) -> list[tuple[str, ...]]:
    return [term.words for term in terms_of(question)]


def test_small_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert words("How do I run the tests?") == [("run",), ("tests",)]
    assert words("what is this") == [("what",), ("is",), ("this",)]


def test_a_word_is_looked_for_once() -> None:
    assert words("port PORT Port, port") == [("port",)]


@pytest.mark.parametrize(
    ("question", "spellings"),
    [
        ("maxRetryCount", (("max", "retry", "count"), ("maxretrycount",))),
        ("max_retry_count", (("max", "retry", "count"), ("maxretrycount",))),
        ("HTTPServer2", (("http", "server", "2"), ("httpserver2",))),
        ("src/http_client.py", (("src", "http", "client", "py"), ("srchttpclientpy",))),
        ("v2Api-base", (("v", "2", "api", "base"), ("v2api", "base"), ("v2apibase",))),
        ("3.11.7", (("3", "11", "7"), ("3117",))),
    ],
)
def test_an_identifier_is_one_term_in_each_way_of_writing_it(question: str, spellings: object) -> None:
    (term,) = terms_of(question)

    assert term.spellings == spellings


def test_of_an_identifier_that_stands_nowhere_the_parts_that_tell_something_are_looked_for() -> None:
    assert parts_of(terms_of("get_user_by_a_name user-id")) == (word("user"), word("name"), word("id"))
    assert parts_of([word("user")]) == ()


def test_beginnings_are_of_words_that_are_long_enough() -> None:
    assert [term.expression for term in prefixes_of(terms_of("configs of api maxRetryCount"))] == [
        '"configs"*',
        '"maxretrycount"*',
        '"retry"*',
        '"count"*',
    ]


def test_scripts_without_spaces_are_looked_for_by_pairs_of_characters() -> None:
    assert words("記憶を使") == [("記憶",), ("憶を",), ("を使",)]
    assert words("語 uvの") == [("語",), ("の",), ("uv",)]
    assert handles_of("記憶を") == "記憶 憶を"


def test_the_index_knows_the_parts_of_identifiers_and_of_nothing_else() -> None:
    assert handles_of("set maxRetryCount in http_client.py at once") == (
        "max retry count\nmaxretrycount\nhttp client py\nhttpclientpy"
    )
    assert handles_of("plain words, nothing else.") == ""


def test_a_blob_is_no_identifier() -> None:
    assert handles_of("aB" * 100) == ""


def test_a_question_has_only_so_many_terms() -> None:
    terms = terms_of(" ".join(f"some{number}x_other{number}y_third{number}z" for number in range(100)))

    assert [len(some) for some in (terms, parts_of(terms), prefixes_of(terms))] == [MAX_TERMS] * 3


@pytest.mark.parametrize(
    "text", ["ab" * 50_000, "aB" * 50_000, "a_" * 50_000, "A" * 100_000, "記" * 100_000, "-a." * 30_000]
)
def test_a_text_of_one_endless_word_is_read_to_its_end(text: str) -> None:
    """A pattern that begins anew at each place took minutes for these."""
    assert len(handles_of(text)) <= 3 * len(text)
    assert len(terms_of(text)) <= MAX_TERMS


@given(question=st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_an_expression_is_always_one_that_fts5_takes(question: str) -> None:
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2')")
        terms = terms_of(question)
        for asked in (terms, prefixes_of(terms), parts_of(terms)):
            if asked:
                conn.execute("SELECT count(*) FROM t WHERE t MATCH ?", (f"{{text}} : ({any_of(asked)})",)).fetchone()
