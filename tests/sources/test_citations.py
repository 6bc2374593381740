"""Citations are read out of their block, bad lines dropped, and no text whatever makes the reader raise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.sources.citations import (
    BLOCK_CLOSE,
    BLOCK_OPEN,
    CitationEntry,
    Citations,
    parse_citations,
    parse_entry,
    strip_citations,
)

FIRST = "01a2284b-263a-7881-b0d7-aa5a2ff0d2e2"
SECOND = "01a2284b-5eaa-70b1-8eee-7ff17262d9ed"


def a_block(*, entries: str | None = None, ids: str | None = None, tag: str = "rollout_ids") -> str:
    inner = "" if entries is None else f"<citation_entries>\n{entries}\n</citation_entries>\n"
    inner += "" if ids is None else f"<{tag}>\n{ids}\n</{tag}>\n"
    return f"{BLOCK_OPEN}\n{inner}{BLOCK_CLOSE}"


def test_a_block_gives_its_entries_and_ids_in_order() -> None:
    text = "Fixed.\n\n" + a_block(
        entries="MEMORY.md:234-236|note=[short note]\nrollout_summaries/a.md:10-12|note=[b]", ids=f"{SECOND}\n{FIRST}"
    )
    expected = Citations(
        (CitationEntry("MEMORY.md", 234, 236, "short note"), CitationEntry("rollout_summaries/a.md", 10, 12, "b")),
        (SECOND, FIRST),
    )
    assert expected == parse_citations(text)


def test_a_message_without_a_block_cites_nothing() -> None:
    assert parse_citations("no citation here, only <rollout_ids>\nx\n</rollout_ids>") is None


def test_a_block_without_anything_in_it_is_still_a_citation() -> None:
    assert Citations((), ()) == parse_citations(BLOCK_OPEN + BLOCK_CLOSE)


def test_several_blocks_add_up_and_an_id_counts_once() -> None:
    text = (
        a_block(entries="a.md:1-2|note=[x]", ids=FIRST)
        + " and "
        + a_block(entries="b.md:3-4|note=[y]", ids=f"{FIRST}\n{SECOND}")
    )
    cited = parse_citations(text)
    assert cited is not None
    assert [entry.path for entry in cited.entries] == ["a.md", "b.md"]
    assert cited.thread_ids == (FIRST, SECOND)


def test_an_unterminated_block_ends_with_the_message() -> None:
    cited = parse_citations(f"Done.\n{BLOCK_OPEN}\n<rollout_ids>\n{FIRST}\n</rollout_ids>")
    assert cited == Citations((), (FIRST,))


def test_the_old_name_of_the_ids_is_used_only_when_the_new_one_is_absent() -> None:
    old = a_block(ids=FIRST, tag="thread_ids")
    both = f"{BLOCK_OPEN}<thread_ids>\n{FIRST}\n</thread_ids><rollout_ids>\n{SECOND}\n</rollout_ids>{BLOCK_CLOSE}"
    empty = f"{BLOCK_OPEN}<thread_ids>\n{FIRST}\n</thread_ids><rollout_ids>\n</rollout_ids>{BLOCK_CLOSE}"
    assert [parse_citations(text) for text in (old, both, empty)] == [
        Citations((), (FIRST,)),
        Citations((), (SECOND,)),
        Citations((), ()),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  a.md:1-2|note=[n]  ", CitationEntry("a.md", 1, 2, "n")),
        ("a:b.md:1-2|note=[n]", CitationEntry("a:b.md", 1, 2, "n")),
        ("a.md:1-2|note=[x|note=[y]", None),
        ("a|note=[.md:1-2|note=[y]", CitationEntry("a|note=[.md", 1, 2, "y")),
        ("a.md:1-2|note=[a [b] c]", CitationEntry("a.md", 1, 2, "a [b] c")),
        ("a.md:1-2|note=[]", CitationEntry("a.md", 1, 2, "")),
        ("a.md:1-2|note=[n", None),
        ("a.md:1-2", None),
        ("a.md:12|note=[n]", None),
        ("a.md|note=[n]", None),
        (":1-2|note=[n]", None),
        ("a.md:1-2-3|note=[n]", None),
        ("a.md:one-2|note=[n]", None),
        ("a.md:1-²|note=[n]", None),
        ("a.md:1-4294967295|note=[n]", CitationEntry("a.md", 1, 4294967295, "n")),
        ("a.md:1-4294967296|note=[n]", None),
        ("a.md:1-99999999999999999999|note=[n]", None),
        ("", None),
    ],
)
def test_an_entry_is_split_at_the_last_note_the_last_colon_and_the_first_dash(
    line: str, expected: CitationEntry | None
) -> None:
    assert expected == parse_entry(line)


def test_tags_are_literal() -> None:
    assert parse_citations(a_block(ids=FIRST).upper()) is None


def test_stripping_takes_the_blocks_out_and_leaves_the_words() -> None:
    text = f"Before.\n{a_block(ids=FIRST)}\nAfter. {BLOCK_OPEN} never closed"
    assert strip_citations(text) == "Before.\n\nAfter. "
    assert strip_citations("plain") == "plain"


PIECES = st.sampled_from(
    [BLOCK_OPEN, BLOCK_CLOSE, "<citation_entries>", "</citation_entries>", "<rollout_ids>", "</rollout_ids>",
     "<thread_ids>", "</thread_ids>", "\n", "a.md:1-2|note=[n]", "|note=[", "]", ":", "-", "0", FIRST]
)  # fmt: skip


@given(st.lists(PIECES | st.text(), max_size=20).map("".join))
def test_no_text_makes_it_raise(text: str) -> None:
    cited = parse_citations(text)
    stripped = strip_citations(text)
    assert (cited is None) == (BLOCK_OPEN not in text)
    assert len(stripped) <= len(text)
    if cited is not None:
        assert len(set(cited.thread_ids)) == len(cited.thread_ids)
        assert all(0 <= entry.line_start < 2**32 and entry.path for entry in cited.entries)
