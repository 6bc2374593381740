"""Consolidation agents that misbehave: turned down, the memory as it was, the reason on record."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.checks import assert_accepted
from tests.support.model_asked import CONSOLIDATION, Recorded
from tests.support.model_manners import good_model
from tests.support.model_replies import Call, Hang, Reply, Scripted, tools
from tests.support.model_server import ModelServer
from tests.support.process import GLOBAL_KIND, STAGE1_KIND, Place
from tests.support.readers import reading
from tests.support.sessions import a_rollout

Agent = Callable[[Recorded], Scripted | None]
FINISH = tools(Call("finish", {"summary": "done"}))


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def kept(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place with an accepted memory of one session, and one more session that is due; made once, copied each time."""
    place = Place(tmp_path_factory.mktemp("agents") / "place")
    place.folder.mkdir()
    server.reply_with(lambda _asked: None)  # whatever a test before wanted of it
    place.configure(base_url=server.base_url, limits__backfill="recent", consolidate__max_requests=12)
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=["From now on run the formatter before every commit."])
    done = place.run("sync")
    assert done.code == 0, done
    a_rollout(place.codex, now=time.time(), idle_hours=7, turns=["Never rebase the release branch of the shop."])
    place.folder.rename(place.folder.with_name("kept"))
    return place


@pytest.fixture
def remembering(kept: Place, server: ModelServer) -> Place:
    """The place as it was made, with a good agent that nobody has asked yet."""
    server.reply_with(lambda _asked: None)
    server.forget()
    shutil.rmtree(kept.folder, ignore_errors=True)
    shutil.copytree(kept.folder.with_name("kept"), kept.folder, symlinks=True)
    return kept


def agent(step: Scripted) -> Agent:
    """An agent that does the same for ever; stage 1 is answered well."""
    return lambda asked: step if asked.kind == CONSOLIDATION else None


def spoiled(spoil: Callable[[str, str], str]) -> Agent:
    """A good agent, whose files are spoiled (`spoil(path, content)`) on their way."""

    def answer(asked: Recorded) -> Scripted | None:
        if asked.kind != CONSOLIDATION:
            return None
        reply = good_model(asked)
        calls = [
            Call(call.name, {**call.arguments, "content": spoil(call.arguments["path"], call.arguments["content"])})
            if call.name == "write_file" and not isinstance(call.arguments, str)
            else call
            for call in reply.calls
        ]
        return tools(*calls) if calls else reply

    return answer


def empty_handbook(path: str, content: str) -> str:
    return "" if path == "MEMORY.md" else content


def summary_without_v1(path: str, content: str) -> str:
    return content.removeprefix("v1\n") if path == "memory_summary.md" else content


def summaries_made_up(path: str, content: str) -> str:
    return content.replace("rollout_summaries/2", "rollout_summaries/9") if path == "MEMORY.md" else content


def text_left_out(path: str, content: str) -> str:
    return f"{content}- [... rest unchanged ...] [Task 1] [stated]\n" if path == "MEMORY.md" else content


def write_for_ever(asked: Recorded) -> Scripted | None:
    if asked.kind != CONSOLIDATION:
        return None
    return tools(Call("write_file", {"path": "skills/drafts/SKILL.md", "content": f"Draft {asked.number}\n"}))


LOOK_AROUND = tools(Call("list_files", {"path": ""}))
CHATTER = Reply(text="I am thinking about the folder.")
BROKEN = tools(Call("write_file", "{not json"))

BAD: dict[str, tuple[Agent, str]] = {
    "leaves MEMORY.md empty": (spoiled(empty_handbook), "MEMORY.md"),
    "drops the v1 line": (spoiled(summary_without_v1), "v1"),
    "names summaries that do not exist": (spoiled(summaries_made_up), "rollout_summaries/9"),
    "leaves a placeholder for omitted text": (spoiled(text_left_out), "MEMORY.md"),
    "looks around for ever": (agent(LOOK_AROUND), "read nothing new"),
    "writes for ever": (write_for_ever, "max_requests"),
    "only talks": (agent(CHATTER), "valid call"),
    "calls tools wrongly": (agent(BROKEN), "valid call"),
}


@pytest.mark.parametrize("manner", BAD)
def test_a_bad_result_is_rejected_and_the_memory_stays_byte_for_byte(
    remembering: Place, server: ModelServer, manner: str
) -> None:
    """I3, I8: exit 1, the reason in `jobs show global`; then a good agent makes it good."""
    bad, reason = BAD[manner]
    server.reply_with(bad)
    before, head = remembering.artefacts(), remembering.git("rev-parse", "HEAD")

    with reading(remembering.memories) as reader:
        done = remembering.run("sync", "--json")

    assert done.code == 1, done
    assert done.json["jobs"] == {STAGE1_KIND: {"remembered": 1}, GLOBAL_KIND: {"failed": 1}}
    assert remembering.artefacts() == before
    assert remembering.git("rev-parse", "HEAD", "refs/memoryd/accepted").split() == [head, head]
    assert all(len(contents) == 1 for contents in reader.seen.values())
    assert list((remembering.home / "staging").iterdir()) == []
    asked = server.of_kind(CONSOLIDATION)
    assert 1 <= len(asked) <= 12
    assert remembering.query("SELECT requests FROM attempts WHERE kind = ? ORDER BY id DESC LIMIT 1", GLOBAL_KIND) == [
        (len(asked),)
    ]
    shown = remembering.run("jobs", "show", "global")
    assert reason in shown.stdout, shown
    assert remembering.query("SELECT retry_remaining, wait_reason FROM jobs WHERE kind = ?", GLOBAL_KIND) == [
        (2, "backoff")
    ]


def test_a_first_run_that_writes_nothing_is_rejected(place: Place, server: ModelServer) -> None:
    place.configure(base_url=server.base_url, limits__backfill="recent")
    a_rollout(place.codex, now=time.time(), turns=["Never rebase the release branch of the shop."])
    server.reply_with(agent(FINISH))

    done = place.run("sync")

    assert done.code == 1, done
    assert place.artefacts() == {}
    assert "MEMORY.md" in place.run("jobs", "show", "global").stdout


def test_after_a_rejection_a_good_agent_starts_from_a_clean_context(remembering: Place, server: ModelServer) -> None:
    server.reply_with(agent(CHATTER))
    assert remembering.run("sync").code == 1
    server.forget()
    server.reply_with(lambda _asked: None)

    assert remembering.run("jobs", "retry", "global").code == 0
    done = remembering.run("sync")

    assert done.code == 0, done
    assert "I am thinking" not in str(server.requests[0].body)
    assert_accepted(remembering, sessions=2)


def outside_of_home(place: Place) -> set[Path]:
    return {path for path in place.folder.rglob("*") if not path.is_relative_to(place.home)}


def test_nothing_outside_the_folder_can_be_written_or_read(remembering: Place, server: ModelServer) -> None:
    """I7: each way out is refused with an error, and a run that tried them may still end well."""
    outside = remembering.folder / "outside.md"
    evil = [
        Call("write_file", {"path": path, "content": "mine"})
        for path in (str(outside), "../outside.md", "../../outside.md", "skills/../../x.md", ".git/hooks/post-commit")
    ]
    evil += [
        Call("write_file", {"path": "raw_memories.md", "content": "mine"}),
        Call("write_file", {"path": "rollout_summaries/x.md", "content": "mine"}),
        Call("delete_file", {"path": "raw_memories.md"}),
        Call("read_file", {"path": "../../../config.toml", "line_offset": 1, "max_lines": 10}),
        Call("read_file", {"path": "/etc/passwd", "line_offset": 1, "max_lines": 10}),
        Call("list_files", {"path": ".."}),
    ]
    answers: list[str] = []

    def answer(asked: Recorded) -> Scripted | None:
        if asked.kind != CONSOLIDATION:
            return None
        if not asked.exchanges:
            return tools(*evil)
        answers[:] = [each.output for each in asked.exchanges[: len(evil)]]
        return None

    server.reply_with(answer)
    before = outside_of_home(remembering)

    done = remembering.run("sync")

    assert done.code == 0, done
    assert len(answers) == len(evil)
    assert all(each.startswith("error: ") for each in answers), answers
    assert outside_of_home(remembering) == before
    assert not list(remembering.home.rglob("outside.md"))
    assert "mine" not in remembering.artefacts()["raw_memories.md"].decode().splitlines()
    assert_accepted(remembering, sessions=2)


def test_an_agent_that_outlasts_its_time_is_stopped(remembering: Place, server: ModelServer) -> None:
    """The cap on the whole run holds although each single request would be in time."""
    text = (remembering.home / "config.toml").read_text()
    remembering.write_config(text.replace("max_requests = 12", 'max_requests = 12\nmax_duration = "1s"'))
    before = remembering.artefacts()
    server.reply_with(lambda asked: Hang() if asked.kind == CONSOLIDATION else None)

    done = remembering.run("sync")

    assert done.code == 1, done
    assert remembering.artefacts() == before
    assert "max_duration" in remembering.run("jobs", "show", "global").stdout
    assert remembering.requests_made() >= len(server.requests)
