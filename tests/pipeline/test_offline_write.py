"""Stage 2 without a model: files that pass acceptance, keep their budget, and say no more than the selected outputs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.ledger.outputs import SelectedOutput
from memoryd.pipeline.offline_extract import extract_offline
from memoryd.pipeline.offline_groups import EVERYWHERE, PREAMBLE, projects_of
from memoryd.pipeline.offline_notes import read_notes
from memoryd.pipeline.offline_text import one_line
from memoryd.pipeline.offline_write import write_offline
from memoryd.pipeline.reply import Stage1Reply
from memoryd.redact import Redactor
from memoryd.sources.items import Item
from memoryd.workspace.acceptance import judge, vanished_claims
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import Bullet, Handbook, Mark, Section, parse_handbook
from memoryd.workspace.materialise import materialise
from memoryd.workspace.mending import rewrite_provenance
from memoryd.workspace.summary import Summary, parse_summary
from tests.support.offline_sessions import CWD, DAY, NOW, extract, facts, final, flat, human, patch, run, selected

OTHER = "/home/dev/infra"
BUDGET = 40_000


def write(work: Path, outputs: Sequence[SelectedOutput], *, budget: int = BUDGET, now: float = NOW) -> tuple[str, str]:
    materialise(work, outputs)
    write_offline(work, outputs, now=now, max_summary_bytes=budget)
    return (work / "MEMORY.md").read_text(), (work / "memory_summary.md").read_text()


def written(work: Path, outputs: Sequence[SelectedOutput], *, budget: int = BUDGET) -> tuple[Handbook, Summary]:
    handbook, summary = write(work, outputs, budget=budget)
    return parse_handbook(handbook), parse_summary(summary)


def complaints(work: Path, before: Folder, *, removed: Sequence[str] = (), budget: int = BUDGET) -> tuple[str, ...]:
    rewrite_provenance(work)
    verdict = judge(
        before=before,
        after=Folder.read(work),
        removed_threads=removed,
        max_summary_bytes=budget,
        redactor=Redactor(),
    )
    return verdict.complaints


def bullets(handbook: Handbook, section: Section, group: int = 0) -> tuple[Bullet, ...]:
    return handbook.groups[group].sections.get(section, ())


def a_cure(name: str = "test") -> list[Item]:
    return flat(run(f"make {name}", 1, f"Error: no {name}"), patch(f"{name}.py"), run(f"make {name}"))


def three_sessions() -> list[SelectedOutput]:
    return [
        selected(extract(human("Add a box. Always use npm."), a_cure()), number=3, days_ago=20),
        selected(extract(human("Plan it. Never apply it yourself."), run("make plan"), cwd=OTHER), number=2, cwd=OTHER),
        selected(extract(human("Move it. Actually, use pnpm instead of npm."), a_cure(), final("Moved.")), number=1),
    ]


def a_note(work: Path, text: str, name: str = "2026-01-02T03-04-05-a-note.md") -> Path:
    path = work / "extensions" / "ad_hoc" / "notes" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_files_pass_the_acceptance_that_a_model_has_to_pass(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    write(tmp_path, three_sessions())

    assert complaints(tmp_path, before) == ()


def test_each_directory_is_a_group_and_each_session_a_task_in_the_order_of_time(tmp_path: Path) -> None:
    handbook, summary = written(tmp_path, three_sessions())

    assert [(group.title, [task.title for task in group.tasks]) for group in handbook.groups] == [
        (OTHER, ["Plan it, success"]),
        (CWD, ["Add a box, success", "Move it, success"]),
    ]
    assert [scope.name for scope in summary.scopes] == [OTHER, CWD]
    assert [scope.name for scope in summary.older] == [CWD]
    assert handbook.preamble == PREAMBLE
    assert "No model wrote" in handbook.preamble[0]
    assert "model provider" in handbook.preamble[2]


def test_every_statement_carries_its_tasks_and_the_mark_that_it_deserves(tmp_path: Path) -> None:
    handbook, _ = written(tmp_path, three_sessions())

    assert bullets(handbook, Section.PREFERENCES)[0].mark is Mark.STATED
    assert bullets(handbook, Section.FAILURES, 1)[0].mark is Mark.VERIFIED
    marks = {bullet.text: (bullet.task_refs, bullet.mark) for bullet in bullets(handbook, Section.KNOWLEDGE, 1)}
    assert marks == {
        "`make test` worked with exit code 0": ((1, 2), Mark.VERIFIED),
        "changed files: `test.py`": ((1, 2), Mark.INFERRED),
        'the agent\'s last answer: "Moved."': ((2,), Mark.INFERRED),
    }


def test_a_correction_in_a_later_session_takes_the_place_of_the_earlier_statement(tmp_path: Path) -> None:
    handbook, summary = written(tmp_path, three_sessions())

    (preference,) = bullets(handbook, Section.PREFERENCES, 1)
    assert preference.text == (
        'the user first said: "Always use npm.", later corrected: "Actually, use pnpm instead of npm."; '
        "the later statement holds"
    )
    assert preference.task_refs == (1, 2)
    assert f"in {CWD}: {preference.text}" in summary.preferences


def test_a_correction_holds_only_in_its_directory(tmp_path: Path) -> None:
    handbook, _ = written(
        tmp_path,
        [
            selected(extract(human("Always use npm."), cwd=OTHER), number=1, cwd=OTHER, days_ago=3),
            selected(extract(human("Actually, use pnpm instead of npm.")), number=2),
        ],
    )

    assert [bullets(handbook, Section.PREFERENCES, group)[0].text for group in (0, 1)] == [
        'the user said: "Always use npm."',
        'the user corrected: "Actually, use pnpm instead of npm."',
    ]


def test_what_lost_its_evidence_is_forgotten(tmp_path: Path) -> None:
    outputs = three_sessions()
    write(tmp_path, outputs)
    before = Folder.read(tmp_path)

    handbook, summary = write(tmp_path, outputs[:2])

    assert "pnpm" not in handbook + summary
    assert complaints(tmp_path, before, removed=[outputs[2].thread_id]) == ()
    assert vanished_claims(before=before, after=Folder.read(tmp_path), removed_threads=[outputs[2].thread_id]) == ()


def test_a_new_session_leaves_the_other_groups_as_they_were(tmp_path: Path) -> None:
    outputs = three_sessions()
    earlier, _ = write(tmp_path, outputs[:2])
    before = Folder.read(tmp_path)

    later, _ = write(tmp_path, outputs)

    assert later.split("# Task Group: ")[1] == earlier.split("# Task Group: ")[1]
    assert complaints(tmp_path, before) == ()


def test_the_same_inputs_give_the_same_bytes_whatever_stood_there_and_whatever_their_order(tmp_path: Path) -> None:
    first = write(tmp_path, three_sessions())
    (tmp_path / "MEMORY.md").write_text("something else")

    assert write(tmp_path, three_sessions()[::-1]) == first


def test_sessions_without_a_directory_stand_under_unknown(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    handbook, _ = written(tmp_path, [selected(extract(human("Always use npm."), cwd=None), cwd=None)])

    assert [(group.title, group.cwd) for group in handbook.groups] == [("unknown", "unknown")]
    assert complaints(tmp_path, before) == ()


def test_a_raw_memory_of_a_model_is_taken_over_without_claiming_more_than_it_says(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    raw = (
        "Preference signals:\n- likes **short** answers [Task 7] [stated]\n"
        "Reusable knowledge:\n- the build is green\n- [rest of the list unchanged]\n- \n"
    )
    handbook, _ = written(tmp_path, [selected(Stage1Reply(raw, "# Made the build green\nmore", None))])

    assert [task.title for task in handbook.groups[0].tasks] == ["Made the build green, uncertain"]
    (preference,) = bullets(handbook, Section.PREFERENCES)
    assert (preference.text, preference.task_refs, preference.mark) == ("likes short answers", (1,), Mark.INFERRED)
    assert [bullet.text for bullet in bullets(handbook, Section.KNOWLEDGE)] == ["the build is green"]
    assert complaints(tmp_path, before) == ()


def test_what_an_agent_says_of_an_exit_code_verifies_nothing(tmp_path: Path) -> None:
    said = final("All tests pass, the command ended with exit code 0.")
    handbook, _ = written(tmp_path, [selected(extract(human("Fix it."), patch("a.py"), said))])

    (answer,) = [one for one in bullets(handbook, Section.KNOWLEDGE) if "All tests pass" in one.text]
    assert answer.mark is Mark.INFERRED


def test_a_session_whose_name_is_not_fixed_yet_is_named_as_its_file_is(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    imported = replace(selected(extract(human("Always use npm."))), stem=None, started_at=None)
    write(tmp_path, [imported])

    assert complaints(tmp_path, before) == ()


def test_a_handbook_of_many_long_memories_is_still_a_file_that_the_folder_takes(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    knowledge = "".join(f"- {number} {'word ' * 60}\n" for number in range(20))
    reply = Stage1Reply(f"task: a task\nReusable knowledge:\n{knowledge}", "# A task", None)
    outputs = [selected(reply, number=number, cwd=f"/home/dev/{number}") for number in range(256)]
    handbook, _ = written(tmp_path, outputs)

    assert complaints(tmp_path, before) == ()
    (newest, *_) = bullets(handbook, Section.KNOWLEDGE)[::-1]
    assert newest.text.startswith("19 word")


def test_a_directory_may_have_any_name(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    write(tmp_path, [selected(extract(human("Always use npm."), cwd="/todo"), cwd="/todo")])

    assert complaints(tmp_path, before) == ()


def test_a_summary_without_words_is_named_after_its_thread(tmp_path: Path) -> None:
    output = selected(Stage1Reply("Reusable knowledge:\n- it builds\n", "#\n", None))

    assert projects_of([output], [])[0].sessions[0].lesson.task == output.thread_id


def test_notes_become_statements_of_the_directory_that_they_name(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    a_note(tmp_path, "---\na: b\n---\n# About infra\n\nThe infra state lives in\nbucket x.\n\n- two\n3. three\n")
    a_note(tmp_path, f"In {CWD} use node 22.\n", "2026-01-03T00-00-00-b.md")
    handbook, _ = written(tmp_path, three_sessions())

    assert [bullet.text for bullet in bullets(handbook, Section.PREFERENCES) if bullet.ad_hoc] == [
        "The infra state lives in bucket x.",
        "two",
        "three",
    ]
    assert [bullet.text for bullet in bullets(handbook, Section.PREFERENCES, 1) if bullet.ad_hoc] == [
        f"In {CWD} use node 22."
    ]
    assert complaints(tmp_path, before) == ()


def test_notes_that_name_no_directory_hold_everywhere_also_without_any_session(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    a_note(tmp_path, "Be brief.\n")

    handbook, summary = written(tmp_path, [])

    assert [(group.title, group.cwd) for group in handbook.groups] == [(EVERYWHERE, None)]
    assert [(bullet.text, bullet.ad_hoc) for bullet in bullets(handbook, Section.PREFERENCES)] == [("Be brief.", True)]
    assert summary.preferences == ("Be brief. [ad-hoc note]",)
    assert summary.profile[1] == "Sessions remembered: none."
    assert complaints(tmp_path, before) == ()


def test_notes_come_first_in_the_summary(tmp_path: Path) -> None:
    a_note(tmp_path, "Be brief.\n")

    _, summary = written(tmp_path, three_sessions())

    assert summary.preferences[0] == "Be brief. [ad-hoc note]"
    assert summary.older[-1].name == EVERYWHERE


def test_what_is_no_note_is_passed_over(tmp_path: Path) -> None:
    real = a_note(tmp_path, "```\n# only a heading\n```\n")
    a_note(tmp_path, "Hidden.", ".note.md")
    a_note(tmp_path, "Of another kind.", "note.txt")
    a_note(tmp_path, " \n\n", "blank.md")
    real.with_name("2026-01-02T03-04-05-link.md").symlink_to(real)
    real.with_name("2026-01-02T03-04-05-folder.md").mkdir()

    assert read_notes(tmp_path, cwds=[]) == []


def test_a_note_may_have_any_name_and_those_with_a_time_come_first(tmp_path: Path) -> None:
    a_note(tmp_path, "Third.", "1 Meine Notiz.md")
    a_note(tmp_path, "Second.", "2026-02-01T00-00-00-Later Note.md")
    a_note(tmp_path, "First.", "2026-01-01T00-00-00-note.md")
    a_note(tmp_path, "Fourth.", "d.md")

    lines = [note.lines for note in read_notes(tmp_path, cwds=[])]

    assert lines == [("First.",), ("Second.",), ("Third.",), ("Fourth.",)]


def test_a_name_that_two_directories_share_or_that_is_too_short_names_none(tmp_path: Path) -> None:
    a_note(tmp_path, "The infra of web is old, my-infra-x too.")

    assert [note.cwd for note in read_notes(tmp_path, cwds=["/a/infra", "/b/infra", "/c/web"])] == [None]


def test_a_linked_folder_of_notes_is_passed_over(tmp_path: Path) -> None:
    note = a_note(tmp_path / "elsewhere", "Be brief.")
    folder = tmp_path / "extensions" / "ad_hoc"
    folder.mkdir(parents=True)
    (folder / "notes").symlink_to(note.parent)

    assert read_notes(tmp_path, cwds=[]) == []


def many_sessions(count: int, directories: int) -> list[SelectedOutput]:
    outputs = []
    for number in range(count):
        cwd = f"/home/dev/project-{number % directories:03}"
        reply = extract(
            human(f"Please build part{number} of it. Always keep part{number} with other{number}."),
            a_cure(f"part{number}"),
            final(f"Built part{number}."),
            cwd=cwd,
        )
        outputs.append(selected(reply, number=number + 1, cwd=cwd, days_ago=number / 10))
    return outputs


@pytest.mark.parametrize("budget", [40_000, 10_000, 4_000])
def test_the_summary_keeps_its_budget_and_the_newest_and_reaches_every_group(tmp_path: Path, budget: int) -> None:
    before = Folder.read(tmp_path)
    handbook, summary = write(tmp_path, many_sessions(120, 12), budget=budget)

    assert len(summary.encode()) <= budget
    assert len(summary.encode()) > 0.8 * budget
    assert complaints(tmp_path, before, budget=budget) == ()
    assert "part0 " in summary
    assert "part119 " in handbook
    assert len(parse_handbook(handbook).groups) == 12


def test_as_many_directories_as_can_be_selected_fit_the_default_budget(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    write(tmp_path, many_sessions(256, 256))

    assert complaints(tmp_path, before) == ()


def test_sessions_move_to_the_older_topics_as_time_goes_by(tmp_path: Path) -> None:
    outputs = three_sessions()

    _, summary = write(tmp_path, outputs, now=NOW + 100 * DAY)

    assert parse_summary(summary).scopes == ()
    assert {scope.name for scope in parse_summary(summary).older} == {CWD, OTHER}


TEXT = st.text(max_size=50) | st.sampled_from(
    [
        "Always use **bold** names.",
        "Never write [rest of the file unchanged].",
        "Always end with [Task 3] [stated]",
        "Remember: see [ad-hoc note]",
        "- * # Always\n## Never\u2028Always use tabs\x85now.",
        'Always say "yes", later said: "no" -> maybe',
        "# Task Group: x. Always nest. ...",
        "Please fix it.",
    ]
)
ROWS = st.one_of(
    TEXT.map(lambda text: [human(text)]),
    TEXT.map(lambda text: [final(text)]),
    st.builds(run, TEXT, st.integers(0, 2), TEXT),
    TEXT.map(lambda text: patch(*text.split()[:2])),
)
OUTPUTS = st.lists(st.tuples(st.lists(ROWS, max_size=8), st.sampled_from([CWD, OTHER, None, "/a b;c/ü"])), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(OUTPUTS)
def test_whatever_was_said_the_files_pass_acceptance(
    tmp_path_factory: pytest.TempPathFactory, sessions: list[tuple[list[list[Item]], str | None]]
) -> None:
    work = tmp_path_factory.mktemp("work")
    outputs = []
    redactor = Redactor()
    for number, (rows, cwd) in enumerate(sessions):
        items = [item for row in rows for item in row]
        reply = extract_offline(session=facts(cwd), items=items)
        if not reply.is_empty:
            clean = Stage1Reply(redactor.clean(reply.raw_memory), redactor.clean(reply.rollout_summary), None)
            outputs.append(selected(clean, number=number, cwd=cwd))
    before = Folder.read(work)

    handbook, _ = write(work, outputs)

    assert complaints(work, before) == ()
    evidence = one_line(" ".join(output.raw_memory for output in outputs))
    for group in parse_handbook(handbook).groups:
        for section in (Section.KNOWLEDGE, Section.FAILURES):
            assert all(bullet.text in evidence for bullet in group.sections.get(section, ()))
