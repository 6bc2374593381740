from pathlib import Path

import pytest

from memoryd.redact import Redactor
from memoryd.workspace.authorship import KEPT_SUBJECT, person_lines
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home
from memoryd.workspace.protection import Kept, Protection, keep_lines, read_protection, without_removed
from memoryd.workspace.publish import prepare_commit, put_in_place
from memoryd.workspace.staging import Staging, stage
from tests.workspace.factories import MEMORY, NOW, SUMMARY, files, git, write_files

MINE = "- never touch the ledger by hand"
CITING = "- the person's view of the tests [Task 2] [stated]"
TABS = "- use tabs, never spaces [Task 1][Task 2] [stated]\n"
PORT = "- port 5433 is the test database [Task 1] [verified]\n"


def run(
    home: Home, repo: Repository, contents: dict[str, str | None], *, may_move: bool = False, notes: str = ""
) -> Kept:
    """Consolidate: the result is exactly these files, whatever stood before, put right as code does."""
    staging = stage(home, repo, "run", now=NOW, redactor=Redactor())
    for path in (path for path, text in contents.items() if text is None):
        (staging.work / path).unlink(missing_ok=True)
    written = {path: text for path, text in contents.items() if text is not None}
    write_files(staging.work, {path: text for path, text in written.items() if path.startswith("rollout_summaries/")})
    protection = read_protection(repo, staging)
    write_files(staging.work, written)
    kept = put_right(protection, staging, may_move=may_move, notes=notes)
    commit = prepare_commit(repo, staging, "run\n", now=NOW, persons=kept.lines)
    put_in_place(home, repo, commit, staging.base_id)
    return kept


def put_right(protection: Protection, staging: Staging, *, may_move: bool = False, notes: str = "") -> Kept:
    kept = keep_lines(protection, Folder.read(staging.work), may_move=may_move, notes=notes)
    write_files(staging.work, kept.texts)
    return kept


def decide(home: Home, repo: Repository, text: str) -> tuple[str, Staging]:
    """Decide a handbook, whatever stood before, and publish nothing yet."""
    staging = stage(home, repo, "run", now=NOW, redactor=Redactor())
    protection = read_protection(repo, staging)
    write_files(staging.work, {"MEMORY.md": text})
    kept = put_right(protection, staging)
    return prepare_commit(repo, staging, "run\n", now=NOW, persons=kept.lines), staging


def handbook(home: Home) -> str:
    return (home.memories / "MEMORY.md").read_text()


def summary(home: Home) -> str:
    return (home.memories / "memory_summary.md").read_text()


def edit(home: Home, path: str, old: str, new: str) -> None:
    text = (home.memories / path).read_text()
    assert old in text
    write_files(home.memories, {path: text.replace(old, new)})


def test_a_persons_line_survives_every_run_that_loses_it_until_the_person_removes_it(
    home: Home, repo: Repository
) -> None:
    """I10."""
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{MINE}\n{TABS}")
    for _ in range(3):
        run(home, repo, dict(files()))
        assert handbook(home) == MEMORY.replace(TABS, f"{TABS}{MINE}\n")
    write_files(home.memories, {"MEMORY.md": MEMORY})
    run(home, repo, dict(files()))
    assert handbook(home) == MEMORY


def test_the_history_names_the_person_for_a_line_that_a_run_moved_and_for_no_other(
    home: Home, repo: Repository
) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{MINE}\n{TABS}")
    kept = run(home, repo, dict(files()))

    accepted = repo.accepted()
    assert accepted is not None
    (number,) = person_lines(repo, accepted, "MEMORY.md")
    assert handbook(home).split("\n")[number - 1] == MINE
    assert kept.lines["MEMORY.md"] == {MINE}
    newest, below = repo.log(limit=2)
    assert (newest.author, newest.subject) == ("person", KEPT_SUBJECT)
    assert (below.author, below.subject) == ("memoryd", "run")
    assert git(home.memories, "status", "--porcelain") == ""
    run(home, repo, {**files(), "skills/x/SKILL.md": "x"})
    assert repo.log(limit=1)[0].subject == "run"


def test_what_the_person_deleted_and_a_run_writes_again_is_left_out(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, "")
    edit(home, "memory_summary.md", "- tabs\n", "")
    run(home, repo, {**files(), "MEMORY.md": MEMORY.replace("[Task 1][Task 2] [stated]", "[Task 2] [inferred]")})
    assert "use tabs" not in handbook(home)
    assert "- tabs" not in summary(home)
    edit(home, "memory_summary.md", "## General Tips", "- tabs\n\n## General Tips")
    run(home, repo, dict(files()))
    assert "use tabs" not in handbook(home)
    assert summary(home).count("- tabs\n") == 1


def test_what_the_person_put_in_other_words_stands_in_those_alone(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, TABS.replace("tabs, never spaces", "spaces, never tabs"))
    run(home, repo, dict(files()))
    assert handbook(home) == MEMORY.replace(TABS, TABS.replace("tabs, never spaces", "spaces, never tabs"))


def test_what_the_person_moved_stands_where_they_put_it_alone(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    moved = MEMORY.replace(PORT, "").replace(TABS, TABS + PORT)
    write_files(home.memories, {"MEMORY.md": moved})
    run(home, repo, dict(files()))
    assert handbook(home) == moved


def test_what_a_note_says_again_is_no_longer_deleted(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    fridays = "- deploys happen on Fridays [ad-hoc note]\n"
    edit(home, "MEMORY.md", fridays, "")
    run(home, repo, dict(files()))
    assert fridays not in handbook(home)
    write_files(home.memories, {"extensions/ad_hoc/notes/d.md": "deploys happen on Fridays\n"})
    run(home, repo, dict(files()))
    assert fridays in handbook(home)


def test_after_a_kill_a_persons_line_is_put_back_once(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    write_files(home.memories, {"MEMORY.md": f"{MEMORY}{MINE}\n"})
    commit, staging = decide(home, repo, MEMORY.replace("Fridays", "Mondays"))

    def killed(name: str) -> None:
        if name == "before_refs":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put_in_place(home, repo, commit, staging.base_id, reached=killed)
    put_in_place(home, repo, commit, staging.base_id)
    assert handbook(home) == MEMORY.replace("Fridays", "Mondays") + f"{MINE}\n"
    assert repo.accepted() == commit


def test_a_line_that_the_person_takes_out_while_a_run_moves_it_stays_out(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{MINE}\n{TABS}")
    commit, staging = decide(home, repo, MEMORY)
    write_files(home.memories, {"MEMORY.md": MEMORY})
    for _ in range(2):
        put_in_place(home, repo, commit, staging.base_id)
        assert handbook(home) == MEMORY
    run(home, repo, dict(files()))
    assert handbook(home) == MEMORY


def test_a_persons_line_goes_with_the_last_session_that_it_cites(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    write_files(home.memories, {"MEMORY.md": f"{MEMORY}{CITING}\n"})
    run(home, repo, dict(files()))
    assert CITING in handbook(home)
    run(home, repo, {**files(), "rollout_summaries/b.md": None})
    assert CITING not in handbook(home)


def test_a_persons_line_cites_its_sessions_by_their_new_numbers(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    both = "- mine [Task 1][Task 2]\n"
    write_files(home.memories, {"MEMORY.md": f"{MEMORY}{both}"})
    start, end = MEMORY.index("## Task 1"), MEMORY.index("## Task 2")
    only_b = (MEMORY[:start] + MEMORY[end:].replace("Task 2", "Task 1")).replace(PORT, "")
    run(home, repo, {**files(), "MEMORY.md": only_b.replace("[Task 1][Task 1]", "[Task 1]")})
    assert "- mine [Task 1] [stated]\n" in handbook(home)


def test_a_persons_line_in_the_summary_is_kept_and_memoryds_own_lines_are_not(home: Home, repo: Repository) -> None:
    run(home, repo, {"MEMORY.md": "a\nb\n", "memory_summary.md": "v1\n\n## General Tips\n\n- old\n"})
    edit(home, "memory_summary.md", "- old\n", "- old\n- mine\n")
    run(home, repo, {"MEMORY.md": "b\n", "memory_summary.md": "v1\n\n## General Tips\n\n- new\n"})
    assert summary(home) == "v1\n\n## General Tips\n\n- new\n- mine\n"
    assert handbook(home) == "b\n"


def test_a_model_is_told_of_what_it_lost_and_of_what_came_back(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{MINE}\n")
    kept = run(home, repo, dict(files()), may_move=True)
    lost, again = kept.complaints
    assert lost == (
        "MEMORY.md: `never touch the ledger by hand` (Task Group: shop > User preferences) is a person's own line "
        "and is gone; put it back there word for word"
    )
    assert again == "MEMORY.md: a person deleted `use tabs, never spaces`; leave it out"


def test_a_model_may_move_a_persons_line_and_it_stays_the_persons(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{MINE}\n{TABS}")
    elsewhere = MEMORY.replace(PORT, f"{PORT}{MINE} [Task 1] [inferred]\n")
    kept = run(home, repo, {**files(), "MEMORY.md": elsewhere}, may_move=True)
    assert kept.complaints == ()
    assert handbook(home) == MEMORY.replace(PORT, f"{PORT}{MINE}\n")
    run(home, repo, {**files(), "MEMORY.md": MEMORY})
    assert handbook(home) == MEMORY.replace("Fridays [ad-hoc note]\n", f"Fridays [ad-hoc note]\n{MINE}\n")


def test_a_line_that_a_new_note_speaks_of_may_go_when_a_model_insists(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{MINE}\n- and no emoji\n{TABS}")
    run(home, repo, dict(files()), may_move=True, notes="Forget what I said about the ledger.")
    assert MINE not in handbook(home)
    assert "- and no emoji\n" in handbook(home)


def test_a_secret_in_a_persons_line_does_not_come_back(home: Home, repo: Repository) -> None:
    """I6: a pattern may have become known after the line was committed."""
    run(home, repo, dict(files()))
    write_files(home.memories, {"MEMORY.md": f"{MEMORY}- the word is xyzzy-4711\n{MINE}\n"})
    run(home, repo, dict(files()))
    staging = stage(home, repo, "run", now=NOW, redactor=Redactor(["xyzzy-[0-9]+"]))
    kept = keep_lines(read_protection(repo, staging), Folder(files()), may_move=False)
    assert kept.lines["MEMORY.md"] == {MINE}
    assert "xyzzy" not in "".join(kept.texts.values())


MY_GROUP = """
# Task Group: house rules
scope: all that I do
applies_to: cwd=any; reuse_rule=always

## User preferences

- be brief
"""


def test_a_group_of_the_persons_own_is_made_again_and_can_be_found(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    write_files(home.memories, {"MEMORY.md": MEMORY + MY_GROUP})
    edit(
        home,
        "memory_summary.md",
        "### Older Memory Topics\n",
        "### Older Memory Topics\n\n#### any\n\n- house rules: x\n",
    )
    for _ in range(2):
        run(home, repo, dict(files()))
        assert handbook(home) == MEMORY + MY_GROUP
        assert "#### any\n\n- house rules: x\n" in summary(home)


def test_a_line_whose_group_is_gone_goes_to_the_first_that_has_its_section(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{TABS}{MINE}\n")
    other = MEMORY.replace("# Task Group: shop", "# Task Group: app").replace("cwd=/home/dev/shop;", "cwd=/app;")
    kept = run(home, repo, {**files(), "MEMORY.md": other}, may_move=True)
    assert kept.complaints == ()
    assert handbook(home) == other.replace(TABS, f"{TABS}{MINE}\n")


def test_a_line_has_its_group_made_again_when_no_other_has_the_section(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{TABS}{MINE}\n")
    run(home, repo, {**files(), "MEMORY.md": "> nothing\n"})
    assert handbook(home) == (
        "> nothing\n\n# Task Group: shop\nscope: the shop's backend; not its mobile app\n"
        f"applies_to: cwd=/home/dev/shop; reuse_rule=same repository\n\n## User preferences\n\n{MINE}\n"
    )


def test_a_group_that_was_made_again_can_be_found_from_a_summary_that_forgot_it(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{TABS}{MINE}\n")
    shortest = "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n"
    run(home, repo, {**files(), "MEMORY.md": "> nothing\n", "memory_summary.md": shortest})
    assert summary(home) == (f"{shortest}\n### Older Memory Topics\n\n#### /home/dev/shop\n\n- shop: kept by hand\n")


def test_a_group_of_the_persons_own_comes_back_with_the_tasks_whose_sessions_are_there(
    home: Home, repo: Repository
) -> None:
    start, end = MEMORY.index("## Task 1"), MEMORY.index("## Task 2")
    tasks = MEMORY[start : MEMORY.index("## User preferences")]
    mine = MY_GROUP.replace("## User", f"{tasks}## User").replace("- be brief", "- be brief [Task 2] [stated]")
    run(home, repo, {**files(), "skills/x/SKILL.md": "x"})
    write_files(home.memories, {"MEMORY.md": MEMORY + mine})
    only_b = (MEMORY[:start] + MEMORY[end:].replace("Task 2", "Task 1")).replace("[Task 1][Task 1]", "[Task 1]")
    rows = only_b.replace(PORT, "").replace("- rollout_summaries/b.md\n", "- rollout_summaries/c.md\n")
    run(home, repo, {**files(), "MEMORY.md": rows, "rollout_summaries/a.md": None})
    made = handbook(home)[len(rows) :]
    assert made.startswith("\n# Task Group: house rules\n")
    assert "## Task 1: move to pytest, done\n\n### rollout_summary_files\n\n- rollout_summaries/b.md\n" in made
    assert "a.md" not in made
    assert made.endswith("## User preferences\n\n- be brief [Task 1] [stated]\n")


def test_a_section_that_is_gone_is_made_in_its_place(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", TABS, f"{TABS}{MINE}\n")
    run(home, repo, {**files(), "MEMORY.md": MEMORY.replace(f"## User preferences\n\n{TABS}\n", "")})
    assert handbook(home) == MEMORY.replace(TABS, f"{MINE}\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- pytest\n", "- pytest\n- fixtures\n"),
        ("scope: the shop's backend; not its mobile app", "scope: all of the shop"),
        ("# Task Group", "> Read this first.\n\n# Task Group"),
        ("# Task Group", "# My own page\n\nwords\n\n# Task Group"),
        (TABS, f"{TABS}- a rule\n  of two lines [Task 1] [stated]\n"),
        (TABS, TABS.replace(" [Task 1]", ",\n  mixed on no account [Task 1]")),
        ("- rollout_summaries/b.md\n", "- rollout_summaries/b.md\n- rollout_summaries/a.md\n"),
        ("# Task Group: shop", "# Task Group: the shop, as I call it"),
        ("## Task 2: move to pytest, done", "## Task 2: pytest at last, done"),
        ("## Reusable", "## My own section\n\n- mine\n  - and below it\n\n## Reusable"),
    ],
)
def test_any_line_of_the_handbook_that_a_person_wrote_stands_after_a_run(
    home: Home, repo: Repository, old: str, new: str
) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", old, new)
    written = Path(home.memories / "MEMORY.md").read_text()
    for _ in range(2):
        run(home, repo, dict(files()))
        assert sorted(filter(None, handbook(home).split("\n"))) == sorted(filter(None, written.split("\n")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Works on a shop.\n", "Works on a shop.\nLikes tea.\n"),
        ("- shop: checkout, postgres\n", "- tea: kettle\n  - desc: brewing\n- shop: checkout, postgres\n"),
        ("  - learnings: an index helped\n", "  - learnings: an index helped a lot\n"),
        ("  - learnings: an index helped\n", "  - learnings: an index helped\n  - learnings: tea too\n"),
        ("### Older Memory Topics\n", "### Older Memory Topics\n\n#### /home/dev/tea\n\n- tea: kettle\n"),
        ("### /home/dev/shop\n", "### /home/dev/tea\n\n#### 2025-11-29\n\n- tea: kettle\n\n### /home/dev/shop\n"),
        ("## What's", "## Mine\n\n- mine\n\n## What's"),
    ],
)
def test_any_line_of_the_summary_that_a_person_wrote_stands_after_a_run(
    home: Home, repo: Repository, old: str, new: str
) -> None:
    run(home, repo, dict(files()))
    edit(home, "memory_summary.md", old, new)
    added = [line for line in new.split("\n") if line.startswith(("- ", "  - ", "Likes")) and line not in old]
    for _ in range(2):
        run(home, repo, dict(files()))
        rows = summary(home).split("\n")
        assert [rows.count(line) for line in added] == [1] * len(added)
        assert set(rows) >= {row for row in SUMMARY.split("\n") if row not in old}


def test_the_summary_calls_a_group_what_the_person_calls_it(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", "# Task Group: shop", "# Task Group: the till")
    for _ in range(2):
        kept = run(home, repo, dict(files()), may_move=True)
        (complaint,) = kept.complaints
        assert complaint.startswith(
            "MEMORY.md: `# Task Group: the till` (at the top) is a person's own line and is gone"
        )
        assert handbook(home) == MEMORY.replace("# Task Group: shop", "# Task Group: the till")
        assert summary(home) == SUMMARY.replace("- shop: checkout", "- the till: checkout")
        commit = repo.accepted()
        assert commit is not None
        assert person_lines(repo, commit, "MEMORY.md") == {1}


def test_a_task_that_got_another_number_keeps_the_persons_name(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", "## Task 2: move to pytest, done", "## Task 2: pytest at last, done")
    start, end = MEMORY.index("## Task 1"), MEMORY.index("## Task 2")
    only_b = MEMORY[:start] + MEMORY[end:].replace("Task 2", "Task 1").replace("[Task 1][Task 1]", "[Task 1]")
    run(home, repo, {**files(), "MEMORY.md": only_b.replace(PORT, ""), "rollout_summaries/a.md": None})
    assert "\n## Task 1: pytest at last, done\n" in handbook(home)
    assert "move to pytest" not in handbook(home)


def test_a_persons_heading_goes_with_its_sessions_and_takes_no_other_groups_place(home: Home, repo: Repository) -> None:
    other = MEMORY.replace("# Task Group: shop", "# Task Group: app").replace("/home/dev/shop;", "/home/dev/app;")
    other = other.replace("rollout_summaries/a", "rollout_summaries/c").replace(
        "rollout_summaries/b", "rollout_summaries/c"
    )
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", "# Task Group: shop", "# Task Group: the till")
    edit(home, "MEMORY.md", "## Task 1: speed up", "## Task 1: my words, speed up")
    gone = {"rollout_summaries/a.md": None, "rollout_summaries/b.md": None}
    run(
        home, repo, {**files(), **gone, "MEMORY.md": other, "rollout_summaries/c.md": files()["rollout_summaries/b.md"]}
    )
    assert handbook(home) == other


def test_a_heading_from_which_forgotten_words_were_taken_stays_without_them(home: Home, repo: Repository) -> None:
    """I12."""
    run(home, repo, dict(files()))
    edit(home, "MEMORY.md", "# Task Group: shop", "# Task Group: the till")
    edit(home, "MEMORY.md", "## Task 1: speed up", "## Task 1: my words, speed up")
    staged = stage(home, repo, "run", now=NOW, redactor=Redactor())
    protection = read_protection(repo, staged)
    text = MEMORY.replace("speed up the checkout, done", "work in /home/dev/shop")
    write_files(staged.work, {"MEMORY.md": text})
    assert keep_lines(protection, Folder.read(staged.work), may_move=False, may_rename=True).texts == {}


def test_a_topic_whose_day_is_gone_goes_to_the_older_ones_of_its_scope(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    edit(home, "memory_summary.md", "  - learnings: an index helped\n", "  - learnings: mine\n")
    later = SUMMARY.replace("#### 2025-11-29\n\n- shop: checkout, postgres\n", "#### 2025-12-24\n\n- gifts: paper\n")
    run(home, repo, {**files(), "memory_summary.md": later})
    assert summary(home).endswith(
        "### Older Memory Topics\n\n#### /home/dev/shop\n\n- shop: checkout, postgres\n  - learnings: mine\n"
    )


def test_what_a_merge_brings_back_is_taken_out_of_statements_only() -> None:
    base, live = MEMORY, MEMORY.replace(TABS, "").replace("- pytest\n", "")
    assert without_removed("MEMORY.md", base, live, MEMORY) == MEMORY.replace(TABS, "")
    assert without_removed("MEMORY.md", base, live, live) == live
