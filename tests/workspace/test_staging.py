from pathlib import Path

import pytest

from memoryd.errors import StorageError, UsageError
from memoryd.redact import Redactor
from memoryd.workspace.folder import MAX_FILE_BYTES, Odd
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import AD_HOC_INSTRUCTIONS, Home
from memoryd.workspace.repository import accept
from memoryd.workspace.staging import Staging, discard, stage, sweep
from tests.workspace.factories import NOW, git, read_files, write_files

SECRET = "token ghp_" + "a1B2" * 9


def staged(home: Home, repo: Repository, token: str = "t1", redactor: Redactor | None = None) -> Staging:
    return stage(home, repo, token, now=NOW, redactor=redactor or Redactor())


def accept_live(home: Home, repo: Repository) -> str:
    """Make what stands in the live folder the accepted state."""
    commit = staged(home, repo, "setup").parent
    assert commit is not None
    accept(repo, commit)
    return commit


def test_a_new_folder_is_staged_empty_with_instructions_for_notes(home: Home, repo: Repository) -> None:
    result = staged(home, repo)
    assert (result.accepted, result.parent, result.left_out) == (None, None, ())
    assert result.base_id == repo.tree_of(None)
    assert read_files(result.base) == {}
    assert list(read_files(result.work)) == [AD_HOC_INSTRUCTIONS]
    assert result.root == home.staging / "t1"


def test_an_unchanged_folder_stands_on_its_accepted_commit(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "m", "skills/a/SKILL.md": "s"})
    accepted = accept_live(home, repo)
    result = staged(home, repo)
    assert (result.accepted, result.parent) == (accepted, accepted)
    assert read_files(result.work) == read_files(result.base) == {"MEMORY.md": "m", "skills/a/SKILL.md": "s"}
    assert result.work.stat().st_mode & 0o777 == 0o700


def test_a_persons_edits_become_a_commit_of_their_own_and_no_ref_moves(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "m", "notes.md": "n"})
    accepted = accept_live(home, repo)
    write_files(home.memories, {"MEMORY.md": "mine"})
    (home.memories / "notes.md").unlink()
    result = staged(home, repo)
    assert result.parent is not None
    (edits, _) = repo.log(limit=2, start=result.parent)
    assert (edits.author, edits.parents, edits.at) == ("person", (accepted,), int(NOW))
    assert repo.read(result.parent, "MEMORY.md") == b"mine"
    assert repo.read(result.parent, "notes.md") is None
    assert (repo.accepted(), repo.head()) == (accepted, accepted)


def test_what_a_person_committed_already_is_built_on(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "m"})
    accepted = accept_live(home, repo)
    write_files(home.memories, {"MEMORY.md": "mine"})
    git(home.memories, "commit", "-qam", "mine")
    result = staged(home, repo)
    assert (result.accepted, result.parent) == (accepted, repo.head())


def test_a_head_that_does_not_follow_the_accepted_commit_is_not_built_on(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "m"})
    accepted = accept_live(home, repo)
    git(home.memories, "checkout", "-q", "--orphan", "other")
    git(home.memories, "commit", "-qm", "other")
    assert staged(home, repo).parent == accepted


def test_what_is_no_input_is_left_out_and_named(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "m", ".hidden": "x", "a.md~": "x", "phase2_workspace_diff.md": "old"})
    write_files(home.memories, {"deep/repo/.git/HEAD": "", "deep/repo/a.md": "x"})
    (home.memories / "big.md").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (home.memories / "link.md").symlink_to("MEMORY.md")
    result = staged(home, repo)
    assert read_files(result.base) == {"MEMORY.md": "m"}
    assert result.left_out == (
        ("a.md~", Odd.EDITOR_FILE),
        ("big.md", Odd.TOO_LARGE),
        ("deep/repo", Odd.REPOSITORY),
        ("link.md", Odd.SYMLINK),
    )


def test_a_file_with_a_secret_is_neither_committed_nor_staged(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "m"})
    accept_live(home, repo)
    write_files(home.memories, {"MEMORY.md": f"m\n{SECRET}\n", "new.md": SECRET, f"x{SECRET}.md": "its name is one"})
    result = staged(home, repo)
    assert read_files(result.work) == {"MEMORY.md": "m"}
    assert result.parent == result.accepted
    assert dict(result.left_out) == {
        "MEMORY.md": Odd.SECRET,
        "new.md": Odd.SECRET,
        f"x{SECRET}.md": Odd.SECRET_NAME,
    }


def test_what_has_become_a_secret_since_is_taken_out_of_what_a_model_reads(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "the code word is kumquat-7\n"})
    accept_live(home, repo)
    result = staged(home, repo, redactor=Redactor(["kumquat-[0-9]"]))
    assert "kumquat" in (result.base / "MEMORY.md").read_text()
    assert "kumquat" not in (result.work / "MEMORY.md").read_text()
    assert result.parent == result.accepted


def test_an_accepted_version_that_is_no_text_does_not_stand_in(home: Home, repo: Repository, tmp_path: Path) -> None:
    write_files(home.memories, {"MEMORY.md": SECRET})
    (tmp_path / "binary").write_bytes(b"\x00")
    staged(home, repo)
    tree = repo.write_tree({"MEMORY.md": tmp_path / "binary"})
    accept(repo, repo.run("commit-tree", tree, "-m", "x").decode().strip())
    assert read_files(staged(home, repo).work) == {}


def test_a_staging_folder_that_leads_elsewhere_is_not_emptied(home: Home, tmp_path: Path) -> None:
    """I7: nothing outside the home is written."""
    home.staging.rmdir()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "precious").mkdir(parents=True)
    home.staging.symlink_to(elsewhere)
    with pytest.raises(StorageError, match="symlink"):
        sweep(home)
    assert (elsewhere / "precious").is_dir()


def test_staging_again_under_the_same_token_starts_clean(home: Home, repo: Repository) -> None:
    write_files(staged(home, repo).work, {"left.md": "x"})
    assert "left.md" not in read_files(staged(home, repo).work)


def test_a_token_that_is_a_path_is_refused(home: Home, repo: Repository) -> None:
    with pytest.raises(UsageError, match="cannot stage under the name"):
        staged(home, repo, "../x")


def test_discarding_and_sweeping_remove_staged_runs(home: Home, repo: Repository) -> None:
    first = staged(home, repo, "t1")
    staged(home, repo, "t2")
    discard(first)
    discard(first)
    (home.staging / "file").write_text("")
    (home.staging / "link").symlink_to(home.memories)
    assert sweep(home) == ["file", "link", "t2"]
    assert sweep(home) == []
    assert home.memories.is_dir()
