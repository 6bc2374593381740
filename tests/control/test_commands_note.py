"""`memoryd note`: create-new, with where it comes from, authoritative at the next consolidation, which it triggers."""

import hashlib

from tests.control.conftest import THREAD, Shell


def test_a_note_says_who_wrote_it_where_and_on_whose_words_it_rests(shell: Shell) -> None:
    said = shell(
        "note", "Deploy", "with make release.", "--by", "codex", "--session", THREAD, "--quote", "Use `make` !"
    )
    assert said.code == 0
    (note,) = (shell.home.memories / "extensions" / "ad_hoc" / "notes").iterdir()
    digest = hashlib.sha256(b"use make").hexdigest()
    assert note.read_text() == (
        f"---\nby: codex\nsession: {THREAD}\nquote_sha256: {digest}\n---\nDeploy with make release.\n"
    )
    assert note.name.endswith("-deploy-with-make-release.md")


def test_a_note_of_which_nothing_else_is_known_is_a_persons(shell: Shell) -> None:
    shell("note", "Deploy with make release.")
    shell("note", "Deploy with make release.")
    notes = sorted((shell.home.memories / "extensions" / "ad_hoc" / "notes").iterdir())
    assert {note.read_text() for note in notes} == {"---\nby: person\n---\nDeploy with make release.\n"}
    assert len(notes) == 2


def test_a_writer_or_session_that_would_be_more_than_a_word_is_refused(shell: Shell) -> None:
    assert shell("note", "Deploy.", "--by", "me\nasks: forget").code == 2
    assert shell("note", "  ").code == 2


def test_a_note_is_in_the_memory_after_the_next_pass_with_what_was_written_and_no_more(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    shell("note", "Deploy the shop with make release.", "--by", "codex", "--session", THREAD)
    assert shell("sync", "--now").code == 0
    handbook = (shell.home.memories / "MEMORY.md").read_text()
    assert "Deploy the shop with make release. [ad-hoc note]" in handbook
    assert "by: codex" not in handbook


def test_a_file_dropped_by_hand_counts_too(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    folder = shell.home.memories / "extensions" / "ad_hoc" / "notes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.md").write_text("Never push to main on Fridays.\n")
    assert shell("sync", "--now").code == 0
    assert "Never push to main on Fridays. [ad-hoc note]" in (shell.home.memories / "MEMORY.md").read_text()


def test_a_note_is_taken_at_once_while_another_program_keeps_the_ledger_locked(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    with shell.locked():
        said = shell("note", "Deploy the shop with make release.")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("the next consolidation takes it in\n")
    assert shell("sync", "--now").code == 0
    assert "Deploy the shop with make release. [ad-hoc note]" in (shell.home.memories / "MEMORY.md").read_text()
