"""Notes are never written over, and what they ask to forget is understood to the word."""

import resource
from pathlib import Path

import pytest

from memoryd.errors import StorageError, UsageError
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import AD_HOC_NOTES, Home
from memoryd.workspace.notes import asked_to_forget, is_request, request_to_forget, says, write_note
from tests.workspace.factories import NOW


def a_folder_of(*notes: str) -> Folder:
    return Folder({f"{AD_HOC_NOTES}/{number}.md": text for number, text in enumerate(notes)})


def test_a_second_note_of_the_same_words_and_second_gets_a_name_of_its_own(home: Home) -> None:
    first, second = (write_note(home, " Deploy with `make release` \n", now=NOW) for _ in range(2))
    assert first.name == "2025-11-29T09-38-15-deploy-with-make-release.md"
    assert second.name == "2025-11-29T09-38-15-deploy-with-make-release-2.md"
    assert first.read_text() == second.read_text() == "Deploy with `make release`\n"
    assert first.stat().st_mode & 0o777 == 0o600


def test_a_name_of_a_note_is_short_and_says_something_of_any_text(home: Home) -> None:
    assert len(write_note(home, "x" * 5000, now=NOW).name) < 128
    assert write_note(home, "日本", now=NOW).name.endswith("-note.md")


def test_a_note_that_does_not_fit_leaves_no_half_of_it(home: Home) -> None:
    folder = write_note(home, "x", now=NOW).parent
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, hard))  # as a full disk: the sixth byte is refused
    try:
        with pytest.raises(StorageError):
            write_note(home, "Deploy with make release.", now=NOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in folder.iterdir()] == ["2025-11-29T09-38-15-x.md"]


def test_a_note_without_words_or_below_a_symlink_is_refused(home: Home, tmp_path: Path) -> None:
    """I7."""
    with pytest.raises(UsageError):
        write_note(home, " \n", now=NOW)
    (home.memories / "extensions").symlink_to(tmp_path)
    with pytest.raises(StorageError):
        write_note(home, "x", now=NOW)
    assert not (tmp_path / "ad_hoc/notes").exists()


def test_a_request_to_forget_is_one_and_quotes_what_it_is_about() -> None:
    note = request_to_forget("the port is\n5433\n")
    assert is_request(note)
    assert asked_to_forget(a_folder_of(note)) == ("the port is 5433",)
    assert not is_request("forget: the port")
    with pytest.raises(UsageError):
        request_to_forget("...")


@pytest.mark.parametrize("row", ["forget: the port", "- Please, forget that the port", "  Forget that the port"])
def test_a_row_of_a_note_may_ask_for_it_too(row: str) -> None:
    assert asked_to_forget(a_folder_of(f"words\n{row}\nmore")) == ("the port",)


@pytest.mark.parametrize("row", ["do not forget the port", "forget the port", "I forget: the port"])
def test_other_words_about_forgetting_ask_for_nothing(row: str) -> None:
    assert asked_to_forget(a_folder_of(row)) == ()


def test_a_later_note_that_says_it_again_ends_the_request_and_an_earlier_one_does_not() -> None:
    ask, say = request_to_forget("The port is 5433"), "By the way: the PORT is 5433!"
    assert asked_to_forget(a_folder_of(ask, say)) == ()
    assert asked_to_forget(a_folder_of(say, ask)) == ("The port is 5433",)
    assert asked_to_forget(a_folder_of(ask, say, ask)) == ("The port is 5433",)


def test_words_are_found_in_a_row_and_whole_only() -> None:
    assert says("Use the Port, 5433.", "port 5433")
    assert not says("Use the ports 5433", "port 5433")
    assert not says("port of 5433", "port 5433")
    assert not says("anything", "...")
