import os
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.errors import GitError, LeaseLost, StorageError
from memoryd.redact import Redactor
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home
from memoryd.workspace.publish import Placement, prepare_commit, put_in_place
from memoryd.workspace.staging import Staging, discard, stage
from tests.workspace.factories import MEMORY, NOW, SUMMARY, a_home, a_repository, git, read_files, write_files

BEFORE = {
    "MEMORY.md": "one\ntwo\nthree\nfour\n",
    "memory_summary.md": "v1\nold\n",
    "raw_memories.md": "old\n",
    "rollout_summaries/old.md": "old\n",
    "skills/old/SKILL.md": "old\n",
    "notes.md": "mine\n",
}
AFTER: Mapping[str, str | None] = {
    "MEMORY.md": "one\ntwo\nTHREE\nfour\n",
    "memory_summary.md": "v1\nnew\n",
    "raw_memories.md": "new\n",
    "rollout_summaries/old.md": None,
    "rollout_summaries/new.md": "new\n",
    "skills/old/SKILL.md": None,
    "skills/new/SKILL.md": "new\n",
}
PUBLISHED = {path: text for path, text in ({**BEFORE, **AFTER}).items() if text is not None}


Decided = tuple[str, Staging]


class Killed(BaseException):
    """Stands for kill -9 at a point of the protocol."""


@pytest.fixture(scope="session")
def decided_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Staging]:
    home = a_home(tmp_path_factory.mktemp("decided"))
    return (home.path, *decide(home, a_repository(home)))


@pytest.fixture
def decided(decided_once: tuple[Path, str, Staging], home: Home) -> Decided:
    """A result that changes BEFORE into PUBLISHED, decided and not yet in place: its commit, and its staging."""
    template, commit, staging = decided_once
    shutil.copytree(template, home.path, dirs_exist_ok=True, symlinks=True)
    root = home.staging / staging.token
    return commit, replace(staging, root=root, work=root / "work", base=root / "base")


def decide(
    home: Home, repo: Repository, before: Mapping[str, str] = BEFORE, after: Mapping[str, str | None] = AFTER
) -> tuple[str, Staging]:
    """Accept a folder, then decide a result that changes it; return its commit and what it was staged from."""
    first = stage(home, repo, "first", now=NOW, redactor=Redactor())
    write_files(first.work, before)
    put_in_place(home, repo, prepare_commit(repo, first, "first\n", now=NOW), first.base_id)
    staging = stage(home, repo, "run", now=NOW, redactor=Redactor())
    for path, text in after.items():
        if text is None:
            (staging.work / path).unlink()
        else:
            write_files(staging.work, {path: text})
    write_files(staging.work, {"phase2_workspace_diff.md": "never published"})
    commit = prepare_commit(repo, staging, "Consolidate\n\nJob: 1\n", now=NOW)
    return commit, staging


def live(home: Home) -> dict[str, str]:
    found = read_files(home.memories)
    found.pop("extensions/ad_hoc/instructions.md")
    return found


def publish(home: Home, repo: Repository, commit: str, staging: Staging) -> Placement:
    return put_in_place(home, repo, commit, staging.base_id)


def test_a_commit_is_made_without_moving_a_ref(home: Home, repo: Repository, decided: Decided) -> None:
    commit, staging = decided
    assert repo.accepted() == staging.parent
    (newest, *_) = repo.log(limit=1, start=commit)
    assert (newest.author, newest.subject, newest.body, newest.parents) == (
        "memoryd", "Consolidate", "Job: 1", (staging.parent,),
    )  # fmt: skip
    assert repo.read(commit, "phase2_workspace_diff.md") is None
    assert live(home) == BEFORE


def test_a_result_is_put_in_place_and_accepted(home: Home, repo: Repository, decided: Decided) -> None:
    commit, staging = decided
    discard(staging)
    placement = publish(home, repo, commit, staging)
    assert live(home) == PUBLISHED
    assert placement == Placement(
        written=(
            "raw_memories.md",
            "rollout_summaries/new.md",
            "skills/new/SKILL.md",
            "MEMORY.md",
            "memory_summary.md",
        ),
        deleted=("rollout_summaries/old.md", "skills/old/SKILL.md"),
    )
    assert not (home.memories / "skills/old").exists()
    assert (repo.accepted(), repo.head()) == (commit, commit)
    assert git(home.memories, "status", "--porcelain") == ""
    assert (home.memories / "MEMORY.md").stat().st_mode & 0o777 == 0o600
    assert stage(home, repo, "next", now=NOW, redactor=Redactor()).parent == commit


def test_a_first_result_needs_no_base(home: Home, repo: Repository) -> None:
    staging = stage(home, repo, "t", now=NOW, redactor=Redactor())
    write_files(staging.work, {"MEMORY.md": "m\n", "memory_summary.md": "v1\n"})
    commit = prepare_commit(repo, staging, "m\n", now=NOW)
    put_in_place(home, repo, commit, None)
    assert live(home) == {"MEMORY.md": "m\n", "memory_summary.md": "v1\n"}


def test_raw_memories_of_many_sessions_are_published_again_and_again(home: Home, repo: Repository) -> None:
    before, after = ({**BEFORE, "raw_memories.md": letter * 1_200_000} for letter in "ab")
    commit, staging = decide(home, repo, before, after)
    assert publish(home, repo, commit, staging).kept == ()
    assert live(home) == after


POINTS = [
    "before_rename:raw_memories.md",
    "before_rename:rollout_summaries/new.md",
    "before_rename:skills/new/SKILL.md",
    "before_rename:MEMORY.md",
    "before_rename:memory_summary.md",
    "before_delete:rollout_summaries/old.md",
    "before_delete:skills/old/SKILL.md",
    "before_refs",
    "after_refs",
]


def test_evidence_comes_first_the_summary_last_and_deletions_after_it(
    home: Home, repo: Repository, decided: Decided
) -> None:
    names: list[str] = []
    commit, staging = decided
    put_in_place(home, repo, commit, staging.base_id, reached=names.append)
    assert names == POINTS


def killing(at: str) -> Callable[[str], None]:
    def reached(name: str) -> None:
        if name == at:
            raise Killed(name)

    return reached


@pytest.mark.parametrize("point", POINTS)
def test_after_a_kill_at_any_point_the_same_call_converges(
    home: Home, repo: Repository, decided: Decided, point: str
) -> None:
    """I1, I3."""
    commit, staging = decided
    write_files(home.memories, {"MEMORY.md": "ONE\ntwo\nthree\nfour\n"})
    with pytest.raises(Killed):
        put_in_place(home, repo, commit, staging.base_id, reached=killing(point))
    assert live(home)["MEMORY.md"] in ("ONE\ntwo\nthree\nfour\n", "ONE\ntwo\nTHREE\nfour\n")
    assert live(home)["memory_summary.md"] in ("v1\nold\n", "v1\nnew\n")
    publish(home, repo, commit, staging)
    assert live(home) == {**PUBLISHED, "MEMORY.md": "ONE\ntwo\nTHREE\nfour\n"}
    assert repo.accepted() == commit
    assert [path.name for path in home.memories.rglob("*.tmp")] == []


def test_once_the_refs_have_moved_a_persons_later_edits_are_not_looked_at(
    home: Home, repo: Repository, decided: Decided
) -> None:
    commit, staging = decided
    with pytest.raises(Killed):
        put_in_place(home, repo, commit, staging.base_id, reached=killing("after_refs"))
    write_files(home.memories, {"MEMORY.md": "only mine\n"})
    (home.memories / "raw_memories.md").unlink()
    assert publish(home, repo, commit, staging) == Placement()
    assert live(home)["MEMORY.md"] == "only mine\n"


@pytest.mark.parametrize("passes", range(1, 9))
def test_who_lost_the_lease_changes_nothing_more(home: Home, repo: Repository, decided: Decided, passes: int) -> None:
    """I2."""
    commit, staging = decided
    left = passes
    seen: list[dict[str, str]] = []

    def still_ours() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            seen.append(live(home))
            raise LeaseLost("the lease is gone")

    with pytest.raises(LeaseLost):
        put_in_place(home, repo, commit, staging.base_id, still_ours=still_ours)
    assert live(home) == seen[0]
    assert repo.accepted() == staging.parent


def test_a_reader_never_sees_a_missing_empty_or_half_written_file(home: Home, repo: Repository) -> None:
    """I3."""
    body = "".join(f"line {number}\n" for number in range(20_000))
    commit, staging = decide(
        home,
        repo,
        {"MEMORY.md": "old\n" + body, "memory_summary.md": "v1\nold\n" + body},
        {"MEMORY.md": "new\n" + body, "memory_summary.md": "v1\nnew\n" + body},
    )
    allowed = {first + "\n" + body for first in ("old", "new", "v1\nold", "v1\nnew")}
    seen: set[str] = set()
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            for name in ("MEMORY.md", "memory_summary.md"):
                try:
                    seen.add((home.memories / name).read_text())
                except FileNotFoundError:
                    seen.add("missing")

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        publish(home, repo, commit, staging)
    finally:
        stop.set()
        reader.join()
    assert seen <= allowed


def test_edits_made_during_the_run_are_merged_and_the_persons_text_wins(
    home: Home, repo: Repository, decided: Decided
) -> None:
    """I10."""
    commit, staging = decided
    write_files(
        home.memories,
        {"MEMORY.md": "one\ntwo\nmy three\nfour\n", "memory_summary.md": "v1\nold\nmine\n", "added.md": "mine\n"},
    )
    publish(home, repo, commit, staging)
    assert live(home)["MEMORY.md"] == "one\ntwo\nmy three\nfour\n"
    assert "mine" in live(home)["memory_summary.md"]
    assert live(home)["added.md"] == "mine\n"
    following = stage(home, repo, "next", now=NOW, redactor=Redactor())
    assert following.accepted == commit
    assert following.parent != commit


def test_an_edit_made_between_our_look_and_our_rename_is_merged_too(
    home: Home, repo: Repository, decided: Decided
) -> None:
    commit, staging = decided
    saved: list[str] = []

    def reached(name: str) -> None:
        if name == "before_rename:MEMORY.md" and not saved:
            saved.append(name)
            write_files(home.memories, {"MEMORY.md": "ONE\ntwo\nthree\nfour\n"})

    put_in_place(home, repo, commit, staging.base_id, reached=reached)
    assert live(home)["MEMORY.md"] == "ONE\ntwo\nTHREE\nfour\n"


def test_a_file_that_never_rests_is_named(home: Home, repo: Repository, decided: Decided) -> None:
    commit, staging = decided
    count = 0

    def reached(name: str) -> None:
        nonlocal count
        count += 1
        write_files(home.memories, {"MEMORY.md": f"{count}\ntwo\nthree\nfour\n"})

    with pytest.raises(StorageError, match="another program keeps changing it"):
        put_in_place(home, repo, commit, staging.base_id, reached=reached)


def test_what_the_person_deleted_stays_deleted_but_the_two_files_that_agents_read(
    home: Home, repo: Repository, decided: Decided
) -> None:
    commit, staging = decided
    for path in ("MEMORY.md", "memory_summary.md", "raw_memories.md", "notes.md", "rollout_summaries/old.md"):
        (home.memories / path).unlink()
    placement = publish(home, repo, commit, staging)
    assert placement.kept == ("raw_memories.md",)
    assert sorted(live(home)) == [
        "MEMORY.md", "memory_summary.md", "rollout_summaries/new.md", "skills/new/SKILL.md",
    ]  # fmt: skip


def test_the_two_files_come_back_even_when_the_run_did_not_change_them(home: Home, repo: Repository) -> None:
    commit, staging = decide(home, repo, after={"raw_memories.md": "new\n"})
    (home.memories / "memory_summary.md").unlink()
    write_files(home.memories, {"MEMORY.md": "\n"})
    publish(home, repo, commit, staging)
    assert live(home) == {**BEFORE, "raw_memories.md": "new\n"}


def test_a_file_that_the_run_deleted_and_the_person_changed_stays_unless_it_is_evidence(
    home: Home, repo: Repository, decided: Decided
) -> None:
    commit, staging = decided
    write_files(home.memories, {"skills/old/SKILL.md": "better\n", "rollout_summaries/old.md": "better\n"})
    placement = publish(home, repo, commit, staging)
    assert placement.kept == ("skills/old/SKILL.md",)
    assert live(home)["skills/old/SKILL.md"] == "better\n"
    assert "rollout_summaries/old.md" not in live(home)


def test_a_persons_file_in_the_place_of_a_new_one_wins(home: Home, repo: Repository, decided: Decided) -> None:
    commit, staging = decided
    write_files(home.memories, {"skills/new/SKILL.md": "mine\n"})
    publish(home, repo, commit, staging)
    assert live(home)["skills/new/SKILL.md"] == "mine\n"


def test_nothing_is_written_through_a_persons_symlink(
    home: Home, repo: Repository, decided: Decided, tmp_path: Path
) -> None:
    """I7."""
    outside = tmp_path / "outside"
    write_files(outside, {"new/keep.md": "k", "MEMORY.md": "outside\n"})
    commit, staging = decided
    (home.memories / "skills/old/SKILL.md").unlink()
    (home.memories / "skills/old").rmdir()
    (home.memories / "skills").rmdir()
    (home.memories / "skills").symlink_to(outside)
    (home.memories / "MEMORY.md").unlink()
    (home.memories / "MEMORY.md").symlink_to(outside / "MEMORY.md")
    (home.memories / "raw_memories.md").unlink()
    (home.memories / "raw_memories.md").symlink_to(outside / "MEMORY.md")
    placement = publish(home, repo, commit, staging)
    assert placement.kept == ("raw_memories.md", "skills/new/SKILL.md", "skills/old/SKILL.md")
    assert read_files(outside) == {"new/keep.md": "k", "MEMORY.md": "outside\n"}
    assert live(home)["MEMORY.md"] == PUBLISHED["MEMORY.md"]
    assert (home.memories / "MEMORY.md.set-aside-1").readlink() == outside / "MEMORY.md"


@pytest.mark.parametrize("kind", ["binary", "folder"])
def test_what_cannot_be_merged_in_the_place_of_the_handbook_is_set_aside(
    home: Home, repo: Repository, decided: Decided, kind: str
) -> None:
    commit, staging = decided
    (home.memories / "MEMORY.md").unlink()
    if kind == "folder":
        write_files(home.memories, {"MEMORY.md/x.md": "x"})
    else:
        (home.memories / "MEMORY.md").write_bytes(b"\x00mine")
    (home.memories / "MEMORY.md.set-aside-1").write_text("")
    publish(home, repo, commit, staging)
    assert (home.memories / "MEMORY.md").read_text() == PUBLISHED["MEMORY.md"]
    assert (home.memories / "MEMORY.md.set-aside-2").exists()


def test_a_persons_binary_in_the_place_of_another_file_stays(home: Home, repo: Repository, decided: Decided) -> None:
    commit, staging = decided
    (home.memories / "raw_memories.md").write_bytes(b"\x00")
    (home.memories / "skills/old/SKILL.md").unlink()
    (home.memories / "skills/old").rmdir()
    (home.memories / "skills/old").write_text("a file")
    assert publish(home, repo, commit, staging).kept == ("raw_memories.md", "skills/old/SKILL.md")


def test_an_executable_file_stays_executable(home: Home, repo: Repository, decided: Decided) -> None:
    commit, staging = decided
    (home.memories / "raw_memories.md").chmod(0o755)
    publish(home, repo, commit, staging)
    assert os.access(home.memories / "raw_memories.md", os.X_OK)


def test_a_decided_commit_that_is_gone_is_a_git_error(home: Home, repo: Repository, decided: Decided) -> None:
    commit, staging = decided
    with pytest.raises(GitError):
        publish(home, repo, "f" * 40, staging)
    assert live(home) == BEFORE
    assert commit


def test_a_merge_is_not_made_again_after_a_kill(home: Home, repo: Repository) -> None:
    """git aligns lines that repeat differently the second time, and a line came twice."""
    base, mine, theirs = "b\n", "b\nb\n", "a\nb\na\n"
    assert repo.merge(base.encode(), b"a\nb\nb\n", theirs.encode(), scratch=home.staging) != b"a\nb\nb\n"
    for number, killed_at in enumerate((None, "before_rename:notes.md", "before_refs", "after_refs")):
        write_files(home.memories, {"notes.md": base, "MEMORY.md": MEMORY, "memory_summary.md": SUMMARY})
        staging = stage(home, repo, f"run-{number}", now=NOW, redactor=Redactor())
        write_files(staging.work, {"notes.md": theirs, "MEMORY.md": f"> {number}\n\n{MEMORY}"})
        commit = prepare_commit(repo, staging, "run\n", now=NOW)
        write_files(home.memories, {"notes.md": mine})
        if killed_at is not None:
            with pytest.raises(Killed):
                put_in_place(home, repo, commit, staging.base_id, reached=killing(killed_at))
        for _ in range(2):
            put_in_place(home, repo, commit, staging.base_id)
        assert (home.memories / "notes.md").read_text() == "a\nb\nb\n"
        assert not (home.git_dir / "memoryd-merges").exists()


LINES = st.lists(st.sampled_from("abcdefg"), max_size=8, unique=True).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@pytest.fixture(scope="module")
def merging(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, Path]:
    home = a_home(tmp_path_factory.mktemp("merging"))
    return a_repository(home), home.staging


@settings(max_examples=60, deadline=None)
@given(base=LINES, mine=LINES, theirs=LINES)
def test_merging_the_merged_text_again_changes_nothing_where_no_line_repeats(
    merging: tuple[Repository, Path], base: str, mine: str, theirs: str
) -> None:
    repo, scratch = merging
    once = repo.merge(base.encode(), mine.encode(), theirs.encode(), scratch=scratch)
    assert once is not None
    assert repo.merge(base.encode(), once, theirs.encode(), scratch=scratch) == once
