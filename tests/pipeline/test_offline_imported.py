"""Claude Code's memory files without a model: each statement in its project's group, saying where it was noted."""

from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.pipeline.forget import forget
from memoryd.pipeline.import_claude import FORGOTTEN, import_claude
from memoryd.pipeline.importing import known_resources
from memoryd.pipeline.offline_imported import KEYWORDS
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import Section, parse_handbook
from memoryd.workspace.importing_resources import render_imported, session_of
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.summary import parse_summary
from tests.pipeline.test_consolidate import enqueue, memory, remember, run
from tests.pipeline.test_forget_imported import everything
from tests.pipeline.test_import_claude import NAME, SESSION, a_claude_memory, resources
from tests.pipeline.test_offline_write import BUDGET, bullets, complaints, three_sessions, written
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.offline_sessions import CWD

ORIGIN = "5da15695-411e-4859-a37b-b739ede023ae"
OWN = f"""\
---
name: ports
description: where it listens
metadata:
  node_type: memory
  type: %s
  originSessionId: {ORIGIN}
---

"""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_796_000_600.0)


def a_resource(work: Path, text: str, *, project: str = CWD, file: str = "debugging.md", number: int = 0) -> None:
    path = work / "extensions" / "claude" / "resources" / f"{number}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_imported(project, file, text))


def test_statements_stand_in_the_group_of_their_directory_with_the_file_that_they_are_from(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    a_resource(tmp_path, "# Ports\n\nThe port is 5433.\n\n- **Builds** run with\n  make.\n\n```sh\nmake all\n```\n")
    a_resource(tmp_path, OWN % "feedback" + "Answer briefly.\n", file="feedback_style.md", number=1)
    handbook, _ = written(tmp_path, three_sessions())

    assert [(bullet.text, bullet.ad_hoc) for bullet in bullets(handbook, Section.KNOWLEDGE, 1)[-2:]] == [
        ("Claude Code noted in debugging.md: The port is 5433.", True),
        ("Claude Code noted in debugging.md: Builds run with make.", True),
    ]
    assert (
        bullets(handbook, Section.PREFERENCES, 1)[-1].text == "Claude Code noted in feedback_style.md: Answer briefly."
    )
    assert complaints(tmp_path, before) == ()


def test_what_a_person_said_in_a_session_comes_before_what_an_agent_noted_of_them(tmp_path: Path) -> None:
    a_resource(tmp_path, OWN % "user" + "Likes tabs.\n", file="user_profile.md")
    _, summary = written(tmp_path, three_sessions())

    mine = [line for line in summary.preferences if line.startswith(f"in {CWD}: ")]
    assert mine[-1] == f"in {CWD}: Claude Code noted in user_profile.md: Likes tabs. [ad-hoc note]"
    assert len(mine) > 1


def test_a_project_without_a_session_has_a_group_of_its_own_that_is_found_from_the_summary(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    a_resource(tmp_path, "The port is 5433.\n", project="/home/dev/api")
    handbook, summary = written(tmp_path, [])

    assert [(group.title, group.cwd, len(group.tasks)) for group in handbook.groups] == [
        ("/home/dev/api", "/home/dev/api", 0)
    ]
    assert [(scope.name, scope.topics[0].keywords) for scope in summary.older] == [("/home/dev/api", KEYWORDS)]
    assert summary.profile[1] == "Sessions remembered: none."
    assert complaints(tmp_path, before) == ()


def test_a_project_known_by_the_name_of_its_folder_is_the_directory_that_is_called_so(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    a_resource(tmp_path, "The port is 5433.\n", project=CWD.replace("/", "-"))
    a_resource(tmp_path, "Another port.\n", project="-home-nobody-knows", number=1)
    handbook, _ = written(tmp_path, three_sessions())

    assert [group.cwd for group in handbook.groups] == ["-home-nobody-knows", "/home/dev/infra", CWD]
    assert "5433" in bullets(handbook, Section.KNOWLEDGE, 2)[-1].text
    assert complaints(tmp_path, before) == ()


@pytest.mark.parametrize(
    "text",
    [
        "- [Ports](ports.md) — where it listens\n",
        "```\ncode\n```\n",
        "| a | b |\n",
        "\0\n",
        "# Heading\n",
        OWN % "project",
    ],
)
def test_pointers_code_tables_and_headings_are_no_statements(tmp_path: Path, text: str) -> None:
    a_resource(tmp_path, text)
    handbook, _ = written(tmp_path, three_sessions())
    assert not any(
        "Claude Code" in bullet.text for group in (0, 1) for bullet in bullets(handbook, Section.KNOWLEDGE, group)
    )


@pytest.mark.parametrize(
    "text",
    [
        "The port is 5433.\n",
        "---\nfrom: somebody else\nproject: /x\nfile: a.md\n---\nThe port is 5433.\n",
        "---\nfrom: Claude Code, its own memory of a project\n---\nThe port is 5433.\n",
    ],
)
def test_a_resource_that_no_import_wrote_is_left_to_a_model(tmp_path: Path, text: str) -> None:
    a_resource(tmp_path, "")
    (tmp_path / "extensions/claude/resources/0.md").write_text(text)
    handbook, _ = written(tmp_path, three_sessions())
    assert "5433" not in repr(handbook)


def test_hundreds_of_long_files_still_make_a_file_that_the_folder_takes(tmp_path: Path) -> None:
    before = Folder.read(tmp_path)
    for number in range(200):
        a_resource(tmp_path, f"- {'word ' * 110}{number}\n" * 45, project=f"/home/dev/{number}", number=number)
    written(tmp_path, three_sessions())
    assert complaints(tmp_path, before, budget=BUDGET) == ()


@pytest.mark.parametrize(
    ("text", "session"),
    [
        (OWN % "project" + "x", ORIGIN),
        (f"---\ntype: feedback\noriginSessionId: {ORIGIN.upper()}\n---\nx", ORIGIN),
        (f'---\noriginSessionId: "{ORIGIN}"\n---\n', ORIGIN),
        (f"originSessionId: {ORIGIN}\n", ""),
        (f"---\nname: x\n---\noriginSessionId: {ORIGIN}\n", ""),
        ("---\noriginSessionId: nobody\n---\n", ""),
    ],
)
def test_the_session_in_which_a_file_was_written_is_what_its_front_matter_says(text: str, session: str) -> None:
    assert session_of(text) == session


async def test_an_offline_consolidation_takes_an_import_in_and_finds_nothing_to_do_afterwards(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I4, and import without a model."""
    claude = a_claude_memory(tmp_path / "claude")
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_claude(context, [claude])
        done = await run(context)
        assert done.ending is Ending.PUBLISHED, done
        (group,) = parse_handbook(memory(context)).groups
        assert group.cwd == "/home/dev/my-shop"
        assert "Claude Code noted in debugging.md: The port is 5433. [ad-hoc note]" in memory(context)
        summary = parse_summary((context.home.memories / SUMMARY_FILE).read_text())
        assert [scope.name for scope in summary.older] == ["/home/dev/my-shop"]
        await enqueue(context)
        assert (await run(context)).ending is Ending.UNCHANGED


@pytest.mark.parametrize("purge", [False, True])
async def test_what_was_written_in_a_forgotten_session_goes_with_it_and_does_not_come_back_i12(
    tmp_path: Path, clock: FakeClock, *, purge: bool
) -> None:
    claude = a_claude_memory(
        tmp_path / "claude",
        ports=OWN.replace(ORIGIN, SESSION) % "project" + "Zanzibar listens on 5433.\n",
        other="Builds run with make.\n",
    )
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, SESSION, "Always use tabs in the Makefile", cwd="/home/dev/my-shop")
        await import_claude(context, [claude])
        await run(context)
        assert "Zanzibar" in memory(context)
        done = await forget(context, [SESSION], purge=purge)
        assert "Zanzibar" not in memory(context)
        assert "Builds run with make." in memory(context)
        assert done.remains == ()
        assert len(resources(context)) == 1
        again = await import_claude(context, [claude])
        assert [why for _, why in again.left_out] == [FORGOTTEN]
        assert len(resources(context)) == 1
        if purge:
            assert b"Zanzibar" not in everything(context)
            assert not any("ports" in path for path in await context.ledger.read(known_resources))


async def test_a_resource_that_the_person_changed_stays_when_its_session_is_forgotten_and_is_named(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I10."""
    claude = a_claude_memory(tmp_path / "claude", ports=OWN.replace(ORIGIN, SESSION) % "project" + "5433.\n")
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, SESSION, "Always use tabs in the Makefile", cwd="/home/dev/my-shop")
        await import_claude(context, [claude])
        await run(context)
        (path,) = resources(context)
        (context.home.memories / path).write_text(resources(context)[path] + "My own line.\n")
        done = await forget(context, [SESSION])
        assert "My own line." in resources(context)[path]
        assert {each.path for each in done.remains} == {path}
        assert NAME.strip("-") in path
        assert MEMORY_FILE not in {each.path for each in done.remains}
