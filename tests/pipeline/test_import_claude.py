"""Claude Code's memory files become resources of an extension: with their project, without a time, once."""

import json
import os
from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.errors import UsageError
from memoryd.ledger import jobs
from memoryd.pipeline.context import Context
from memoryd.pipeline.import_claude import CHANGED_HERE, import_claude
from memoryd.workspace.extensions import expire_extension_resources
from memoryd.workspace.folder import Folder
from tests.pipeline.test_consolidate import memory, remember, run
from tests.support.clock import FakeClock
from tests.support.codex_memories import everything_below
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.secrets import SHAPES

NAME = "-home-dev-my-shop"
SESSION = "0194f5a6-89ab-7cde-8123-456789abcdef"


def a_claude_memory(home: Path, *, with_session: bool = True, **files: str) -> Path:
    """Lay out projects/<name>/memory, and beside it a session that says where the project lies."""
    folder = home / "projects" / NAME / "memory"
    folder.mkdir(parents=True)
    given = files or {"MEMORY": "- Builds run with make.\n", "debugging": "# Debugging\n\nThe port is 5433.\n"}
    for name, text in given.items():
        (folder / f"{name}.md").write_text(text)
    if with_session:
        row = {
            "type": "user",
            "uuid": SESSION,
            "sessionId": SESSION,
            "timestamp": "2026-11-29T10:00:00.000Z",
            "cwd": "/home/dev/my-shop",
            "message": {"role": "user", "content": "hello"},
        }
        (folder.parent / f"{SESSION}.jsonl").write_text(json.dumps(row) + "\n")
    return home


def resources(context: Context) -> dict[str, str]:
    folder = Folder.read(context.home.memories).files
    return {path: text for path, text in folder.items() if path.startswith("extensions/claude/resources/")}


async def test_each_file_comes_with_its_project_under_a_name_that_does_not_expire(
    tmp_path: Path, clock: FakeClock
) -> None:
    claude = a_claude_memory(tmp_path / "claude")
    before = everything_below(claude)
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_claude(context, [claude])
        found = resources(context)
        assert (report.files, report.left_out) == ({"imported": 2}, [])
        assert [path.rpartition("-")[0] for path in found] == [
            "extensions/claude/resources/home-dev-my-shop--debugging",
            "extensions/claude/resources/home-dev-my-shop--memory",
        ]
        assert all("project: /home/dev/my-shop\n" in text for text in found.values())
        assert "file: debugging.md\n" in next(iter(found.values()))
        assert "The port is 5433." in next(iter(found.values()))
        assert (context.home.memories / "extensions/claude/instructions.md").is_file()
        assert expire_extension_resources(context.home.memories, clock.now() + 10**9, 1.0) == []
        (waiting,) = await context.ledger.read(jobs.list_jobs)
        assert waiting.enqueue_reason == "folder"
    assert everything_below(claude) == before


async def test_importing_again_writes_nothing_and_a_file_that_changed_there_anew(
    tmp_path: Path, clock: FakeClock
) -> None:
    claude = a_claude_memory(tmp_path / "claude")
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_claude(context, [claude])
        first = resources(context)
        assert (await import_claude(context, [claude])).files == {"unchanged": 2}
        (claude / "projects" / NAME / "memory" / "debugging.md").write_text("The port is 5434.\n")
        assert (await import_claude(context, [claude])).files == {"imported": 1, "unchanged": 1}
        after = resources(context)
        assert after.keys() == first.keys()
        assert any("5434" in text for text in after.values())


async def test_what_the_person_changed_or_removed_here_stays_so(tmp_path: Path, clock: FakeClock) -> None:
    """I10."""
    claude = a_claude_memory(tmp_path / "claude")
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_claude(context, [claude])
        changed, removed = (context.home.memories / path for path in resources(context))
        changed.write_text("my own words\n")
        removed.unlink()
        report = await import_claude(context, [claude])
        assert report.files == {"left_out": 2}
        assert changed.read_text() == "my own words\n"
        assert not removed.exists()


async def test_a_pipe_in_the_place_of_one_is_not_waited_for(tmp_path: Path, clock: FakeClock) -> None:
    claude = a_claude_memory(tmp_path / "claude", MEMORY="- one\n")
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_claude(context, [claude])
        (path,) = resources(context)
        (context.home.memories / path).unlink()
        os.mkfifo(context.home.memories / path)
        assert (await import_claude(context, [claude])).left_out[0][1] == CHANGED_HERE


async def test_a_project_without_a_session_is_known_by_the_name_of_its_folder(tmp_path: Path, clock: FakeClock) -> None:
    claude = a_claude_memory(tmp_path / "claude", with_session=False)
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_claude(context, [claude])
        assert all(f"project: {NAME}\n" in text for text in resources(context).values())


@pytest.mark.parametrize("model", [None, good_model], ids=["offline", "scripted"])
async def test_the_next_consolidation_is_accepted_and_keeps_them(
    tmp_path: Path, clock: FakeClock, model: object
) -> None:
    claude = a_claude_memory(tmp_path / "claude")
    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model) if model else None) as context:
        await remember(context, SESSION, "Always use tabs in the Makefile", cwd="/home/dev/my-shop")
        await run(context)
        await import_claude(context, [claude])
        before = resources(context)
        done = await run(context)
        assert done.ending in {Ending.PUBLISHED, Ending.UNCHANGED}, done
        assert resources(context) == before
        assert "Makefile" in memory(context)
        assert context.repository.files(str(context.repository.accepted())) >= before.keys()


@pytest.mark.parametrize("settings", ['{"autoMemoryDirectory": "%s"}', '{"autoMemoryDirectory": 3}', "no json", "[]"])
async def test_the_folder_that_the_settings_name_is_read_beside_those_of_the_projects(
    tmp_path: Path, clock: FakeClock, settings: str
) -> None:
    claude, custom = a_claude_memory(tmp_path / "claude"), tmp_path / "kept elsewhere"
    custom.mkdir()
    (custom / "MEMORY.md").write_text("- Never rebase shared branches.\n")
    (claude / "settings.json").write_text(settings.replace("%s", str(custom)))
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_claude(context, [claude])
        assert len(resources(context)) == (3 if "%s" in settings else 2)


async def test_hostile_files_and_secrets_do_not_come(tmp_path: Path, clock: FakeClock) -> None:
    """I6, I7."""
    secret = SHAPES["openai project"]
    claude = a_claude_memory(tmp_path / "claude", MEMORY=f"- the key is {secret}\n", empty=" \n")
    folder = claude / "projects" / NAME / "memory"
    (tmp_path / "outside.md").write_text("elsewhere")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "notes.txt").write_text("no markdown")
    (folder / "huge.md").write_text("x" * (1024 * 1024 + 1))
    (folder / "binary.md").write_bytes(b"\x00")
    os.mkfifo(folder / "pipe.md")
    (claude / "projects" / "linked").symlink_to(tmp_path)
    (claude / "projects" / "other").mkdir()
    (claude / "projects" / "other" / "memory").symlink_to(folder)
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_claude(context, [claude])
        (text,) = resources(context).values()
        assert "[REDACTED_SECRET" in text
        assert secret not in text
        assert report.files == {"imported": 1, "left_out": 6}


async def test_a_name_with_a_secret_is_shown_nowhere(tmp_path: Path, clock: FakeClock) -> None:
    """I6."""
    secret = SHAPES["github classic"]
    claude = a_claude_memory(tmp_path / "claude", MEMORY="- one\n")
    for name, text in ((secret, "- two\n"), (f"{secret}-b", " \n")):
        (claude / "projects" / NAME / "memory" / f"{name}.md").write_text(text)
    (claude / "projects" / f"-home-{secret}").mkdir()
    (claude / "projects" / NAME / "memory").rename(claude / "projects" / f"-home-{secret}" / "memory")
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_claude(context, [claude])
        assert report.files == {"imported": 2, "left_out": 1}
        assert secret not in repr(report.as_json())
        assert secret not in repr(resources(context))


async def test_a_home_without_a_memory_is_an_error_that_says_what_to_do(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        with pytest.raises(UsageError, match="no memory of Claude Code") as raised:
            await import_claude(context, [tmp_path])
        assert "CLAUDE_CONFIG_DIR" in raised.value.remedy
