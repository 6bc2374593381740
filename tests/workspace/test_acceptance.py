import pytest

from memoryd.redact import Redactor
from memoryd.workspace.acceptance import MAX_COMPLAINTS, artefacts_stand, judge, strays, vanished_claims
from memoryd.workspace.folder import Folder, Odd
from memoryd.workspace.summary import summary_budget
from tests.workspace.factories import MEMORY, SUMMARY, A, B, a_folder, a_summary_file, files

EMPTY = Folder({})
BUDGET = summary_budget(2500)
SECRET = "ghp_" + "a1B2" * 9


def complaints(
    before: Folder,
    after: Folder,
    removed: tuple[str, ...] = (),
    *,
    budget: int = BUDGET,
    redactor: Redactor | None = None,
) -> tuple[str, ...]:
    return judge(
        before=before,
        after=after,
        removed_threads=removed,
        max_summary_bytes=budget,
        redactor=redactor or Redactor(),
    ).complaints


def one_complaint(before: Folder, after: Folder, removed: tuple[str, ...] = ()) -> str:
    (complaint,) = complaints(before, after, removed)
    return complaint


def test_a_good_first_result_is_accepted() -> None:
    assert complaints(EMPTY, a_folder()) == ()


def test_an_unchanged_folder_is_accepted() -> None:
    assert complaints(a_folder(), a_folder()) == ()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"MEMORY": None}, "MEMORY.md is missing"),
        ({"MEMORY": " \n"}, "MEMORY.md is empty"),
        ({"MEMORY": "> nothing\n"}, "MEMORY.md has no `# Task Group:` block"),
        ({"memory_summary": None}, "memory_summary.md is missing"),
        ({"memory_summary": SUMMARY.removeprefix("v1\n")}, "must begin with a line that is exactly `v1`"),
        ({"memory_summary": "v1\r\n" + SUMMARY}, "must begin with a line that is exactly `v1`"),
        ({"MEMORY": MEMORY.replace(" [stated]", "")}, "MEMORY.md line 27: a bullet that does not end"),
        ({"memory_summary": SUMMARY.replace("#### 2025-11-29", "#### today")}, "memory_summary.md line 19: a `####`"),
        ({"MEMORY": MEMORY.replace("/b.md", "/c.md")}, "MEMORY.md line 19: rollout_summaries/c.md does not exist"),
        ({"MEMORY": MEMORY.replace("use tabs", "[rest unchanged]\n- use tabs")}, "line 27: a placeholder"),
        ({"MEMORY": MEMORY.replace("use tabs", f"log in with {SECRET}")}, "MEMORY.md line 27: a secret"),
        ({"memory_summary": SUMMARY.replace("an index", SECRET)}, "memory_summary.md line 23: a secret"),
        ({"skills__x__SKILL": f"---\nname: x\ndescription: d\n---\n{SECRET}\n"}, "skills/x/SKILL.md line 5: a secret"),
        ({"MEMORY": MEMORY + MEMORY.replace("shop", "barn")}, "the task group `barn` cannot be reached"),
        ({"skills__x__SKILL": "# x\n"}, "skills/x/SKILL.md: its frontmatter needs `name: x`"),
        ({"skills__x__SKILL": "---\nname: y\ndescription: d\n---\n"}, "its frontmatter needs `name: x`"),
        ({"skills__x__SKILL": "---\nname: x\n---\n"}, "needs a `description:`"),
        ({"skills__x__SKILL": "---\nname: x\ndescription: d\n---\n" + "a\n" * 500}, "fewer than 500 lines"),
    ],
)
def test_what_the_run_got_wrong_is_a_complaint_that_names_the_place(
    changes: dict[str, str | None], complaint: str
) -> None:
    found = complaints(EMPTY, a_folder(**changes))
    assert any(complaint in line for line in found), found


@pytest.mark.parametrize(
    "changes",
    [
        {"MEMORY": "# Whatever\n\n* a person's own list with **bold** [rest unchanged]\n"},
        {"MEMORY": MEMORY.replace(" [stated]", "").replace("/b.md", "/gone.md")},
        {"memory_summary": "a person's own words\n"},
        {"memory_summary": "v1\n" + "word " * 20_000},
        {"memory_summary": SUMMARY.replace("- shop:", "- barn:").replace("/home/dev/shop", "/x")},
        {"skills__x__SKILL": "no frontmatter ... (unchanged)"},
        {"MEMORY": MEMORY.replace("use tabs", SECRET)},
    ],
)
def test_what_stood_before_is_never_a_reason_to_reject(changes: dict[str, str | None]) -> None:
    before = a_folder(**changes)
    after = Folder({**before.files, "raw_memories.md": "new"})
    assert [line for line in complaints(before, after) if "no `# Task Group:`" not in line] == []


def test_a_persons_odd_line_stays_unjudged_when_the_run_writes_another() -> None:
    odd = MEMORY.replace("- use tabs", "* a person's item\n- use tabs")
    after = odd.replace("port 5433", "port 5434")
    assert complaints(a_folder(MEMORY=odd), a_folder(MEMORY=after)) == ()
    worse = after.replace("- port", "* port")
    assert len(complaints(a_folder(MEMORY=odd), a_folder(MEMORY=worse))) == 1


def test_the_budget_is_judged_in_bytes_and_what_was_too_long_may_shrink() -> None:
    size = len(SUMMARY.encode())
    assert complaints(EMPTY, a_folder(), budget=size) == ()
    (complaint,) = complaints(EMPTY, a_folder(), budget=size - 1)
    assert complaint == f"memory_summary.md has {size} bytes; at most {size - 1} are allowed, so shorten it"
    longer = a_folder(memory_summary=SUMMARY.replace("an index", "an index, é"))
    assert complaints(longer, a_folder(), budget=10) == ()


def test_the_profile_has_at_most_350_words() -> None:
    def profile(words: int) -> Folder:
        return a_folder(memory_summary=SUMMARY.replace("Works on a shop.", "word " * words))

    assert complaints(EMPTY, profile(350)) == ()
    assert "351 words; at most 350" in one_complaint(EMPTY, profile(351))


def test_a_secret_of_several_lines_or_in_a_name_is_seen_and_never_repeated() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 4 + "-----END PRIVATE KEY-----\n"
    skill = f"---\nname: x\ndescription: d\n---\n{key}"
    assert "skills/x/SKILL.md" in one_complaint(a_folder(), a_folder(skills__x__SKILL=skill))
    found = complaints(a_folder(), Folder({**files(), f"skills/x/{SECRET}.md": "x"}))
    assert len(found) == 1
    assert SECRET not in found[0]


SHORT = MEMORY[: MEMORY.index("## Task 2")].replace("speed up the checkout, done", "x") + (
    "## User preferences\n\n- use tabs, never spaces [Task 1] [stated]\n"
)
LONG = MEMORY.replace(
    "- deploys", "".join(f"- fact {n} about the shop [Task 1] [verified]\n" for n in range(40)) + "- deploys"
)


def test_a_handbook_may_not_lose_more_than_half_without_its_sessions() -> None:
    kept = a_folder(MEMORY=SHORT)
    assert "although only 0 of its 2 sessions were removed" in one_complaint(a_folder(MEMORY=LONG), kept)


def test_a_handbook_may_shrink_with_half_of_its_sessions() -> None:
    kept = a_folder(MEMORY=SHORT, rollout_summaries__b=None)
    assert complaints(a_folder(MEMORY=LONG), kept, (B,)) == ()


def test_a_handbook_without_sessions_may_not_be_emptied() -> None:
    notes = "# Task Group: g\nscope: s\napplies_to: cwd=any; reuse_rule=r\n\n## Reusable knowledge\n"
    before = Folder({"MEMORY.md": notes + "- a [ad-hoc note]\n" * 50, "memory_summary.md": SUMMARY})
    after = Folder({"MEMORY.md": notes + "- a [ad-hoc note]\n", "memory_summary.md": SUMMARY})
    assert "shrank from" in one_complaint(before, after)


ONLY_TASK_2 = MEMORY.replace("[Task 1][Task 2] [stated]", "[Task 2] [stated]").replace(
    "- port 5433 is the test database [Task 1] [verified]\n", ""
)


def test_a_claim_goes_with_the_last_session_that_supports_it() -> None:
    without_a = a_folder(rollout_summaries__a=None)
    found = complaints(a_folder(), without_a, (A,))
    assert any("line 9: rollout_summaries/a.md does not exist" in line for line in found)


def test_a_claim_that_still_cites_a_session_removed_by_name_is_a_complaint() -> None:
    assert "every session that supported `port 5433 is the test database` is gone" in one_complaint(
        a_folder(), a_folder(), (A,)
    )


def renumbered(bullets: str) -> str:
    """Return the handbook with task 1 gone and task 2 in its place."""
    start, end = MEMORY.index("## Task 1"), MEMORY.index("## User preferences")
    second = MEMORY[MEMORY.index("## Task 2") : end].replace("Task 2", "Task 1")
    return MEMORY[:start] + second + bullets


def test_a_claim_may_not_be_handed_to_an_old_session_that_never_supported_it() -> None:
    bullets = "## Reusable knowledge\n\n- Port 5433  is the test database [Task 1] [verified]\n"
    after = a_folder(MEMORY=renumbered(bullets), rollout_summaries__a=None)
    assert "remove it" in one_complaint(a_folder(), after, (A,))


def test_a_claim_may_stand_on_a_session_that_is_new_or_changed() -> None:
    bullets = "## Reusable knowledge\n\n- port 5433 is the test database [Task 1] [verified]\n"
    changed = a_summary_file(B, body="the port is 5433")
    after = a_folder(MEMORY=renumbered(bullets), rollout_summaries__a=None, rollout_summaries__b=changed)
    assert complaints(a_folder(), after, (A,)) == ()


def test_a_claim_with_another_live_session_and_a_note_both_stay() -> None:
    bullets = "## User preferences\n\n- use tabs, never spaces [Task 1] [stated]\n"
    bullets += "- port 5433 is the test database [ad-hoc note]\n"
    after = a_folder(MEMORY=renumbered(bullets), rollout_summaries__a=None)
    assert complaints(a_folder(), after, (A,)) == ()


def test_a_group_that_could_not_be_reached_before_is_not_judged() -> None:
    summary = SUMMARY.replace("- shop:", "- barn:").replace("### /home/dev/shop", "### /home/dev/barn")
    before, after = a_folder(memory_summary=summary), a_folder(memory_summary=summary, MEMORY=MEMORY + "\n")
    assert complaints(before, after) == ()
    assert "cannot be reached" in one_complaint(a_folder(), after)


def test_a_vanished_claim_with_live_evidence_is_named() -> None:
    after = a_folder(MEMORY=MEMORY.replace("- `make check` runs all tests [Task 2] [verified]\n", ""))
    (complaint,) = vanished_claims(before=a_folder(), after=after, removed_threads=())
    assert complaint.startswith(
        "``make check` runs all tests` (Reusable knowledge, shop) is gone, but rollout_summaries/b"
    )
    assert vanished_claims(before=a_folder(), after=after, removed_threads=(B,)) == ()


def test_a_reworded_claim_has_not_vanished() -> None:
    after = a_folder(MEMORY=MEMORY.replace("`make check` runs all tests", "all tests: make check"))
    assert vanished_claims(before=a_folder(), after=after, removed_threads=()) == ()


def test_very_many_complaints_are_cut_and_counted() -> None:
    bad = MEMORY.replace("- deploys", "- fact\n" * 60 + "- deploys")
    found = complaints(EMPTY, a_folder(MEMORY=bad))
    assert len(found) == MAX_COMPLAINTS + 1
    assert found[-1].startswith("and 20 complaints more")


def test_strays_are_named_and_reject_nothing() -> None:
    misplaced = {
        "junk.md": "x",
        "skills/loose.md": "x",
        "rollout_summaries/x.txt": "x",
        "rollout_summaries/deep/x.md": "x",
        "extensions/x/instructions.md": "x",
    }
    belonging = {
        "raw_memories.md": "",
        "phase2_workspace_diff.md": "",
        "extensions/ad_hoc/instructions.md": "",
        "rollout_summaries/c.md": "",
        "skills/x/SKILL.md": "---\nname: x\ndescription: d\n---\n",
    }
    before = Folder({**files(), "mine.md": "m"})
    after = Folder({**before.files, **misplaced, **belonging}, {"link": Odd.SYMLINK})
    assert complaints(before, after) == ()
    assert strays(before, after) == tuple(sorted([*misplaced, "link"]))


@pytest.mark.parametrize(
    ("folder", "count"),
    [(a_folder(), 0), (a_folder(memory_summary="V1\n"), 1), (a_folder(MEMORY="\n"), 1), (EMPTY, 2)],
)
def test_artefacts_stand_when_both_files_are_there(folder: Folder, count: int) -> None:
    assert len(artefacts_stand(folder)) == count
