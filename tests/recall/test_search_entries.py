"""What of the folder has entries: bullets, tasks, passages of summaries and skills, each with its lines."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.ledger import claims
from memoryd.ledger import search as index
from memoryd.ledger.claims import NewClaim
from memoryd.recall.entries import UNKNOWN_SCOPE, Source, entries_of, is_indexed, opening_of, rows_digest_of
from memoryd.recall.passages import MAX_PASSAGE, Passage, passages_of
from memoryd.recall.search import Kind
from memoryd.recall.search_words import terms_of
from memoryd.recall.snippets import MAX_SNIPPET, snippet_of
from memoryd.redact import Redactor
from memoryd.workspace.folder import Folder
from tests.recall.search_folder import NOW, SearchFolder, a_group, a_search_folder, a_summary


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SearchFolder]:
    with a_search_folder(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "has"),
    [
        ("MEMORY.md", True),
        ("rollout_summaries/a.md", True),
        ("skills/ship/SKILL.md", True),
        ("skills/ship/more/notes.md", True),
        ("memory_summary.md", False),
        ("raw_memories.md", False),
        ("rollout_summaries/deep/a.md", False),
        ("rollout_summaries/a.txt", False),
        ("skills/loose.md", False),
        ("extensions/ad_hoc/notes/a.md", False),
    ],
)
def test_what_has_entries(path: str, has: bool) -> None:
    assert is_indexed(path) is has


def test_a_task_is_found_by_its_title_and_its_keywords(folder: SearchFolder) -> None:
    folder.write("MEMORY.md", a_group("x", keywords="helm, staging"))
    folder.refresh()

    (hit,) = folder.find("helm", kinds=frozenset({Kind.TASK}))
    assert (hit.text, hit.line, hit.section) == ("look after the shop, success: helm, staging", 5, "Tasks")


def test_a_bullet_of_several_lines_ends_where_it_ends(folder: SearchFolder) -> None:
    folder.write("MEMORY.md", a_group("first of\n  three\n  lines", "next one"))
    folder.refresh()

    hit = folder.find("three", kinds=frozenset({Kind.BULLET}))[0]
    assert (hit.text, hit.end_line - hit.line) == ("first of three lines", 2)


def test_when_a_bullet_was_seen_last_its_sessions_say_or_else_its_claim_or_else_its_file(folder: SearchFolder) -> None:
    folder.write("rollout_summaries/a.md", a_summary("x"))
    folder.write("MEMORY.md", a_group("of a session", "of a claim [ad-hoc note]", "of nobody [ad-hoc note]"))
    claim = NewClaim("of a claim", "User preferences", "/src/shop", "ad-hoc note", ())
    claims.replace_claims(folder.conn, [claim], now=NOW - 5)
    folder.refresh()

    at = {hit.text: hit.updated_at for hit in folder.find("session claim nobody", kinds=frozenset({Kind.BULLET}))}
    touched = int((folder.home.memories / "MEMORY.md").stat().st_mtime)
    assert at == {"of a session": 1_795_168_800, "of a claim": int(NOW - 5), "of nobody": touched}


def test_a_session_of_an_unknown_directory_holds_in_no_project(folder: SearchFolder) -> None:
    folder.write("rollout_summaries/a.md", a_summary("tabs", cwd="unknown"))
    folder.refresh()

    assert [hit.scope for hit in folder.find("tabs")] == [UNKNOWN_SCOPE]
    assert folder.find("tabs", cwd="/src/shop", scope="project") == ()


def test_a_secret_that_a_person_wrote_is_in_no_entry_and_moves_no_line(folder: SearchFolder) -> None:
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    folder.clean = Redactor().clean
    folder.write("MEMORY.md", a_group(f"the key is {key} as ever", "tabs after it"))
    folder.refresh()

    hit = folder.find("key as ever", kinds=frozenset({Kind.BULLET}))[0]
    assert "[REDACTED_SECRET" in hit.text
    assert key in (folder.home.memories / "MEMORY.md").read_text().split("\n")[hit.line - 1]
    assert key.lower() not in "\n".join(folder.conn.iterdump()).lower()
    assert folder.find("tabs after")[0].line == hit.line + 1


def test_only_what_was_touched_is_made_anew_and_only_what_differs_is_written(folder: SearchFolder) -> None:
    """I4 and I13."""
    folder.write("MEMORY.md", a_group(*(f"statement number {number}" for number in range(50))))
    folder.write("rollout_summaries/a.md", a_summary("tabs"))
    folder.write("rollout_summaries/b.md", a_summary("spaces", thread="b"))
    assert folder.refresh() == 53
    assert folder.refresh() is None

    text = (folder.home.memories / "MEMORY.md").read_text()
    folder.write("MEMORY.md", text.replace("statement number 7 ", "statement number seven "))
    before = folder.conn.total_changes
    assert folder.refresh() == 2
    assert folder.conn.total_changes - before < 30  # none of the other 51 was written

    folder.write("MEMORY.md", "> a line above\n\n" + (folder.home.memories / "MEMORY.md").read_text())
    assert folder.refresh() == 0
    assert folder.find("statement seven")[0].line == 26

    (folder.home.memories / "rollout_summaries/b.md").unlink()
    assert folder.refresh() == 1
    assert folder.find("spaces") == ()


def test_a_summary_that_changes_its_time_changes_that_of_what_rests_on_it(folder: SearchFolder) -> None:
    folder.write("MEMORY.md", a_group("tabs"))
    folder.write("rollout_summaries/a.md", a_summary("x"))
    folder.refresh()
    folder.write("rollout_summaries/a.md", a_summary("x", updated_at="2026-11-21"))
    folder.refresh()

    assert folder.find("tabs", kinds=frozenset({Kind.BULLET}))[0].updated_at == 1_795_255_200


def test_links_and_hidden_names_have_no_entries(folder: SearchFolder, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.md").write_text(a_summary("tabs outside"))
    (folder.home.memories / "rollout_summaries").symlink_to(tmp_path / "outside")
    folder.write("skills/.hidden/SKILL.md", "tabs hidden")
    folder.write("skills/bad/SKILL.md", "tabs")
    (folder.home.memories / "skills/bad/SKILL.md").write_bytes(b"tabs \xff\xfe")
    folder.refresh()

    assert index.is_empty(folder.conn)


def test_a_text_is_cut_into_passages_at_headings_and_labels() -> None:
    rows = a_summary(
        "# One thing\n\nContext: it is so\n\n## Task 1: do\n\nKey steps:\n- a\n- b\n\n## Empty\n\n## Last\n\nz"
    ).split("\n")
    assert list(passages_of(rows, after_header=True)) == [
        Passage(7, 9, "# One thing\n\nContext: it is so", ("One thing",)),
        Passage(13, 15, "Key steps:\n- a\n- b", ("One thing", "Task 1: do", "Key steps")),
        Passage(19, 21, "## Last\n\nz", ("One thing", "Last")),
    ]


def test_a_long_text_is_cut_where_a_paragraph_or_an_item_begins_and_covers_every_line() -> None:
    rows = [f"- item {number} {'word ' * 30}" for number in range(60)]
    passages = list(passages_of(rows))

    assert [each.line for each in passages] == [1, *(each.end_line + 1 for each in passages[:-1])]
    assert passages[-1].end_line == len(rows)
    assert all(len(each.text) < MAX_PASSAGE + 300 for each in passages)


def test_a_heading_inside_a_block_of_code_is_none() -> None:
    rows = ["# Real", "", "```", "# no heading", "```", "end"]

    assert [each.headings for each in passages_of(rows)] == [("Real",)]


def test_a_snippet_is_the_part_with_what_was_asked_for() -> None:
    text = f"{'before ' * 80}the database listens on port 5434 here\nand {'after ' * 80}"
    snippet = snippet_of(text, terms_of("which port does the database use"))

    assert "database listens on port 5434" in snippet
    assert len(snippet) <= MAX_SNIPPET
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert snippet_of("short\nand\tsweet", terms_of("x")) == "short and sweet"


ROWS = st.sampled_from(
    [
        "# Task Group: shop",
        "scope: x",
        "applies_to: cwd=/src/shop; reuse_rule=y",
        "applies_to: cwd=any",
        "## Task 1: do it",
        "## Task 2:",
        "### rollout_summary_files",
        "- rollout_summaries/a.md (x)",
        "### keywords",
        "- helm, , k8s",
        "## User preferences",
        "## Reusable knowledge",
        "- tabs [Task 1] [stated]",
        "- [stated]",
        "  and more",
        "* star",
        "-",
        "- a [ad-hoc note]",
        "",
        "   ",
        "```",
        "Key steps:",
        "---",
        "name: x",
        "thread_id: a",
        "cwd: unknown",
        "# ",
        "x\ry",
        "\u2028",
        "記憶",
        "- tabs [Task 1] [stated]",
    ]
)


@given(handbook=st.lists(ROWS, max_size=25), other=st.lists(st.one_of(ROWS, st.text(max_size=12)), max_size=25))
@settings(max_examples=120, deadline=None)
def test_whatever_a_file_holds_each_entry_names_lines_of_it(handbook: list[str], other: list[str]) -> None:
    others = dict.fromkeys(("rollout_summaries/a.md", "skills/x/SKILL.md"), "\n".join(other))
    texts = {"MEMORY.md": "\n".join(handbook), **others}
    rows = {path: text.split("\n") for path, text in texts.items()}

    made = entries_of(Source(Folder(texts), rows, {}, {}), list(texts))

    for path, entries in made.items():
        for entry in entries:
            assert 1 <= entry.line <= entry.end_line <= len(rows[path])
            assert entry.rows_digest == rows_digest_of(rows[path][entry.line - 1 : entry.end_line])
            assert entry.opening == opening_of(rows[path][entry.line - 1])
            assert any(character.isalnum() for character in entry.text) or entry.kind in {"bullet", "task"}
