from memoryd.redact import Redactor
from memoryd.text import byte_length
from memoryd.workspace.diff import MAX_DIFF_BYTES, render_diff, workspace_diff
from memoryd.workspace.git import Change, Repository, Status
from memoryd.workspace.layout import Home
from memoryd.workspace.staging import stage
from tests.workspace.factories import NOW, write_files
from tests.workspace.test_staging import accept_live


def test_nothing_changed_says_none(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "m"})
    accept_live(home, repo)
    staging = stage(home, repo, "t", now=NOW, redactor=Redactor())
    write_files(staging.work, {"phase2_workspace_diff.md": "never an input of the next"})
    diff = workspace_diff(repo, staging.accepted, staging.work)
    assert diff.changes == ()
    assert diff.text == (
        "# Memory Workspace Diff\n\nWhat changed in this folder since the last accepted consolidation.\n\n"
        "## Status\n- none\n\n## Diff\n\n```diff\n```\n"
    )


def test_a_persons_edit_and_new_evidence_both_show(home: Home, repo: Repository) -> None:
    write_files(home.memories, {"MEMORY.md": "one\ntwo\n", "gone.md": "g\n"})
    accept_live(home, repo)
    write_files(home.memories, {"MEMORY.md": "one\nmine\n"})
    (home.memories / "gone.md").unlink()
    staging = stage(home, repo, "t", now=NOW, redactor=Redactor())
    write_files(staging.work, {"rollout_summaries/a.md": "new\n", ".hidden": "x"})
    objects = sum(1 for _ in (home.git_dir / "objects").rglob("*"))
    diff = workspace_diff(repo, staging.accepted, staging.work)
    assert diff.changes == (
        Change(Status.MODIFIED, "MEMORY.md"),
        Change(Status.DELETED, "gone.md"),
        Change(Status.ADDED, "rollout_summaries/a.md"),
    )
    assert "## Status\n- M MEMORY.md\n- D gone.md\n- A rollout_summaries/a.md\n\n## Diff\n\n```diff\n" in diff.text
    assert " one\n-two\n+mine\n" in diff.text
    assert sum(1 for _ in (home.git_dir / "objects").rglob("*")) == objects


def test_against_nothing_everything_is_added(home: Home, repo: Repository) -> None:
    staging = stage(home, repo, "t", now=NOW, redactor=Redactor())
    diff = workspace_diff(repo, None, staging.work)
    assert diff.changes == (Change(Status.ADDED, "extensions/ad_hoc/instructions.md"),)


def test_a_long_diff_is_cut_on_a_character_boundary_and_says_so() -> None:
    text = render_diff((Change(Status.ADDED, "a.md"),), "+" + "é" * MAX_DIFF_BYTES)
    assert byte_length(text) in (MAX_DIFF_BYTES - 1, MAX_DIFF_BYTES)
    assert text.endswith("é\n[the diff was cut: this file holds at most 4194304 bytes]\n```\n")


def test_a_diff_of_the_allowed_length_is_whole() -> None:
    room = MAX_DIFF_BYTES - byte_length(render_diff((), ""))
    assert byte_length(render_diff((), "x" * (room - 1) + "\n")) == MAX_DIFF_BYTES
    assert "was cut" not in render_diff((), "x" * (room - 1) + "\n")
    assert "was cut" in render_diff((), "x" * room + "\n")


def test_a_fence_in_the_text_does_not_end_the_diff() -> None:
    assert render_diff((), " ````\n").endswith("`````diff\n ````\n`````\n")
    assert render_diff((), "-no line end").endswith("-no line end\n```\n")
