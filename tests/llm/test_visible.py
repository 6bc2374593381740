"""What of a server's words may be shown."""

from memoryd.llm.question import ModelTurn, ToolCall, ToolResult, ToolTurn, UserTurn
from memoryd.llm.visible import KEY_MARK, MAX_SHOWN_CHARACTERS, WITHHELD, content_of, visible
from memoryd.redact import Redactor
from tests.llm.asking import a_question

KEY = "local-key-without-any-known-shape"


def show(text: str, *, key: str | None = KEY, content: str = "") -> str:
    return visible(text, clean=Redactor().clean, key=key, content=content)


def test_the_key_is_never_shown_even_without_a_known_shape() -> None:
    assert show(f"wrong key {KEY}!") == f"wrong key {KEY_MARK}!"


def test_a_placeholder_key_does_not_blot_out_words() -> None:
    assert show("no such model", key="no") == "no such model"


def test_secrets_of_known_shapes_are_redacted() -> None:
    secret = "ghp_" + "a1B2" * 9
    assert secret not in show(f"bad token {secret}", key=None)


def test_a_long_text_stands_on_one_line_and_is_cut() -> None:
    shown = show("word \n" * 200)
    assert "\n" not in shown
    assert len(shown) == MAX_SHOWN_CHARACTERS + 1


def test_an_echo_of_the_request_is_withheld_whatever_its_escapes() -> None:
    content = 'please rename "the invoice table" quickly'
    assert show('invalid input: rename \\"the invoice\\n table\\"', content=content) == WITHHELD


def test_words_that_only_resemble_the_request_are_shown() -> None:
    assert show("unknown parameter: effort", content="an unknown thing") == "unknown parameter: effort"


def test_the_content_of_a_question_is_everything_in_its_turns() -> None:
    turns = (
        UserTurn("asked"),
        ModelTurn("said", (ToolCall("c", "read_file", "arguments"),)),
        ToolTurn((ToolResult("c", "output"),)),
    )
    assert content_of(a_question(*turns)) == "asked\nsaid\narguments\noutput"


def test_what_steers_a_terminal_or_hides_a_key_is_taken_out() -> None:
    assert show(f"\x1b[2J\x1b]0;pwn\x07evil\u202e \u200b{KEY[:5]}\u200b{KEY[5:]}") == f"evil {KEY_MARK}"
