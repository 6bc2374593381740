"""The history as entries: trailers are read as they are written, and nobody can pass for memoryd by accident."""

import subprocess
from pathlib import Path

import pytest

from memoryd.errors import GitError, UsageError
from memoryd.workspace.git import DAEMON, PERSON, Repository
from memoryd.workspace.history import Change, check_readable, entries, find_entry, message, named, patch
from memoryd.workspace.repository import accept, ensure
from memoryd.workspace.run_trailers import RunNumbers, of_entry
from tests.support.house import PATH_ONLY


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository(tmp_path / "memories/.git", tmp_path / "memories", environ=PATH_ONLY)
    ensure(repo)
    return repo


def commit(repo: Repository, said: str, *, text: str = "", by_person: bool = False) -> str:
    path = repo.work_tree.parent / "text"
    path.write_text(text or said)
    parent = repo.accepted()
    tree = repo.write_tree({"MEMORY.md": path, "raw_memories.md": path})
    author = PERSON if by_person else DAEMON
    name = repo.commit_tree(tree, [parent] if parent else [], said, author=author, at=5)
    accept(repo, name)
    return name


def test_trailers_are_what_git_understands_and_are_read_back(repo: Repository) -> None:
    rows = [("Model", "m-1\nEvil: yes"), ("Sessions", "3 (1 added, 2 changed, 0 removed)"), ("Tokens", "42")]
    commit(repo, message(Change.CONSOLIDATION, "Consolidate 3 sessions", rows))

    (entry,) = entries(repo, limit=9)
    assert entry.trailers == {
        "Change": "consolidation",
        "Model": "m-1 Evil: yes",
        "Sessions": "3 (1 added, 2 changed, 0 removed)",
        "Tokens": "42",
    }
    assert of_entry(entry) == RunNumbers(total=3, added=1, changed=2, removed=0, tokens=42)
    assert (entry.base, entry.paths, entry.change) == (
        None,
        frozenset({"MEMORY.md", "raw_memories.md"}),
        Change.CONSOLIDATION,
    )
    said = repo.run("log", "-1", "--format=%B")
    parse = ["git", "interpret-trailers", "--parse"]
    parsed = subprocess.run(parse, input=said, capture_output=True, check=True).stdout.decode()
    assert parsed.splitlines()[1] == "Model: m-1 Evil: yes"


def test_ids_in_a_trailer_are_bounded_and_the_rest_is_counted() -> None:
    ids = [f"thread-{number:02}" for number in range(25)]
    assert named(ids[:2]) == "thread-00, thread-01"
    assert named(ids).endswith("thread-19 and 5 more")


def test_a_persons_trailers_do_not_make_a_consolidation_of_their_commit(repo: Repository) -> None:
    commit(repo, "Mine\n\nChange: consolidation\nJob: x\n", by_person=True)
    (entry,) = entries(repo, limit=9)
    assert (entry.change, entry.trailers) == (Change.PERSON, {})


def test_a_run_of_an_earlier_version_is_known_by_its_job(repo: Repository) -> None:
    commit(repo, "Consolidate 1 session\n\nJob: memory_consolidate_global/global epoch 1\n")
    commit(repo, "Something of a later version\n\nChange: whatever\n")
    assert [entry.change for entry in entries(repo, limit=9)] == [Change.CLEAN_UP, Change.CONSOLIDATION]


def test_an_entry_is_found_by_number_and_by_id_and_shown_without_evidence(repo: Repository) -> None:
    first = commit(repo, "One\n\nChange: consolidation\n")
    second = commit(repo, "Two\n\nChange: consolidation\n")
    assert find_entry(repo, "1").commit == find_entry(repo, second[:6]).commit == second
    for wrong in ("3", "0", "abc", "", first[:2]):
        with pytest.raises(UsageError):
            find_entry(repo, wrong)
    shown = patch(repo, first, second)
    assert "+Two" in shown
    assert "raw_memories" not in shown
    assert "+One" in patch(repo, None, first)


def test_a_diff_without_end_is_cut_and_says_so(repo: Repository) -> None:
    first = commit(repo, "Large\n\nChange: consolidation\n", text="line of some length\n" * 80_000)
    shown = patch(repo, None, first)
    assert len(shown) < 1_100_000
    assert shown.rstrip().endswith("bytes]")


def test_what_cannot_be_read_says_what_to_do(tmp_path: Path, repo: Repository) -> None:
    assert entries(repo, limit=9) == []
    nowhere = Repository(tmp_path / "no/.git", tmp_path / "no", environ=PATH_ONLY)
    with pytest.raises(GitError, match="no history"):
        check_readable(nowhere)
    (repo.git_dir / "HEAD").write_text("nonsense")
    with pytest.raises(GitError, match="cannot be read"):
        check_readable(repo)
