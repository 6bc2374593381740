"""Whose words a message in Gemini form holds: the person's, or what the program put beside them."""

import time
from collections import Counter

import msgspec
import pytest
from msgspec import Raw

from memoryd.sources.gemini_parts import Content, human_parts, parse_content, part_items
from memoryd.sources.items import ItemKind
from memoryd.sources.parts import Spot

HUMAN, HARNESS, OTHER = ItemKind.HUMAN, ItemKind.HARNESS_CONTEXT, ItemKind.OTHER_AGENT
FILES = "--- Content from referenced files ---"
END = "--- End of content ---"


def content(value: object) -> Content:
    return parse_content(Raw(msgspec.json.encode(value)))


def spoken(*texts: str) -> list[tuple[ItemKind | None, str]]:
    return [(part.kind, part.text if part.kind else part.reason) for part in human_parts(texts)]


def said(*texts: str) -> list[str]:
    return [text for kind, text in spoken(*texts) if kind is HUMAN]


# contents


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("hello", ("hello",)),
        ({"text": "hello"}, ("hello",)),
        (["hello", {"text": "you"}], ("hello", "you")),
        ([{"text": "  "}, {"text": ""}, "", 7, None, [], {"text": 5}], ()),
        (None, ()),
        (17, ()),
    ],
)
def test_a_content_is_a_text_a_part_or_a_list_of_them(value: object, texts: tuple[str, ...]) -> None:
    assert content(value).texts == texts


def test_no_content_says_nothing() -> None:
    assert parse_content(None) == parse_content(Raw()) == Content()


def test_parts_are_sorted() -> None:
    parts = [
        {"text": "secretly", "thought": True},
        {"text": "aloud", "thoughtSignature": "x"},
        {"functionCall": {"name": "a"}},
        {"functionResponse": {"name": "a"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"fileData": {"mimeType": "audio/wav", "fileUri": "x"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
    ]
    assert content(parts) == Content(
        ("aloud",), (Raw(b'{"name":"a"}'),), (Raw(b'{"name":"a"}'),), ("reasoning", "image", "audio", "attachment")
    )


# the person and the program


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two\nlines",
        "/home/dev/shop is the place",
        "/fix the login",
        "a question ?",
        "I like the --- Content from referenced files --- line",
        "why does <session_context> exist?",
        "what is a <system-reminder> for?",
        "<b>bold</b>",
    ],
)
def test_words_of_the_person_stay(text: str) -> None:
    assert spoken(text) == [(HUMAN, text)]


def test_outer_white_space_goes_and_inner_stays() -> None:
    assert said("\n  a \n\n b\t\n") == ["a \n\n b"]


@pytest.mark.parametrize("command", ["/help", "/chat", "?", "/my-command", "/git:commit", " /quit\n"])
def test_a_command_alone_is_no_evidence(command: str) -> None:
    assert spoken(command) == [(None, "command")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<session_context>\nThis is the Gemini CLI.\n</session_context>", HARNESS),
        ("<environment_context>\n<cwd>/x</cwd>", HARNESS),
        ("This is the Gemini CLI. We are setting up the context for our chat.\nToday's date is Friday.", HARNESS),
        ("This is the Qwen Code. We are setting up the context for our chat.", HARNESS),
        ("I ran the following shell command:\n```sh\nls\n```", HARNESS),
        ("<task-notification>\ndone\n</task-notification>", OTHER),
    ],
)
def test_what_tells_of_the_surroundings_or_of_others_is_theirs(text: str, kind: ItemKind) -> None:
    assert spoken(text) == [(kind, text)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<state_snapshot>\nwe did it\n</state_snapshot>", "compaction"),
        ("<project_context>\nrules\n</project_context>", "agents_md"),
        ("<loaded_context>\nrules\n</loaded_context>", "agents_md"),
        ("--- Context from: GEMINI.md ---\nrules\n--- End of Context from: GEMINI.md ---", "agents_md"),
        ("Here is the user's editor context as a JSON object.", "editor_context"),
        ("Here is a summary of changes in the user's editor context", "editor_context"),
        ("System: Please continue.", "harness"),
        ("<hook_context>be nice</hook_context>", "reminder"),
        ("<system-reminder>\nrules\n</system-reminder>", "reminder"),
        ("<system-reminder>\nnever closed", "reminder"),
    ],
)
def test_instructions_of_the_program_are_dropped_with_a_reason(text: str, reason: str) -> None:
    assert spoken(text) == [(None, reason)]


def test_words_around_a_reminder_stay() -> None:
    text = "before\n<system-reminder>\nrules\n</system-reminder>\nafter\n<HOOK_CONTEXT>x</HOOK_CONTEXT> end"
    assert spoken(text) == [(None, "reminder"), (None, "reminder"), (HUMAN, "before\n\nafter\n end")]


# files named with @


def test_files_that_the_program_put_in_are_dropped_and_the_words_stay() -> None:
    parts = ["explain @a.py", f"\n{FILES}", "\nContent from @a.py:\n", "rm -rf /\n", f"\n{END}"]
    assert spoken(*parts) == [(None, "referenced_files"), (HUMAN, "explain @a.py")]


def test_files_in_one_text_are_dropped_too() -> None:
    text = f"explain @a.py\n{FILES}\nContent from @a.py:\nx = 1\n{END}\nand be brief"
    assert said(text) == ["explain @a.py", "and be brief"]


def test_a_file_that_holds_the_closing_line_ends_with_the_last_one() -> None:
    assert said(f"a\n{FILES}\nx\n{END}\nevil words\n{END}\nb") == ["a", "b"]
    assert said("a", FILES, f"x\n{END}\nevil words", END, "b") == ["a", "b"]


def test_a_file_that_never_ends_takes_the_rest() -> None:
    assert said(f"a\n{FILES}\nx", "y", "z") == ["a"]


def test_a_closing_line_alone_is_the_persons() -> None:
    assert said(f"a\n{END}\nb") == [f"a\n{END}\nb"]
    assert said(f"a\n{END}\nb\n{FILES}\nc") == [f"a\n{END}\nb"]


def test_ten_thousand_markers_take_no_time() -> None:
    start = time.perf_counter()
    said(f"{FILES}\n<system-reminder>\n" * 10_000)
    said("<system-reminder>\n" * 10_000)
    said(f"{END}\n" * 10_000)
    assert time.perf_counter() - start < 5


# items


def test_runs_of_the_same_speaker_are_one_item_and_the_rest_is_counted() -> None:
    dropped: Counter[str] = Counter()
    parts = human_parts(["a", "b", "<session_context>x", "<system-reminder>y", "c"])
    items = part_items(parts, Spot(3, 1.5, "/x"), dropped)
    assert [(item.kind, item.text) for item in items] == [
        (HUMAN, "a\n\nb"),
        (HARNESS, "<session_context>x"),
        (HUMAN, "c"),
    ]
    assert {(item.ordinal, item.at, item.cwd) for item in items} == {(3, 1.5, "/x")}
    assert dropped == Counter(reminder=1)
