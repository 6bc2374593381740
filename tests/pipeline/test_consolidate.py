import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection

import pytest

from memoryd.daemon.endings import Done, Ending
from memoryd.daemon.worker import Worker
from memoryd.errors import ContextOverflow, RateLimited
from memoryd.ledger import claims, jobs, outputs, publications, sessions
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.sessions import Sighting, UserMode
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from memoryd.llm.question import Answer, Question
from memoryd.pipeline.consolidate import consolidate, publish_decided
from memoryd.pipeline.context import Context
from memoryd.workspace.stems import session_stem
from tests.ledger.factories import a_sighting
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import agent_that_writes, calls, good_files, good_model, opening
from tests.support.log_lines import LogLines
from tests.support.model_manners import stage1_reply

FIRST = "0194f5a6-89ab-7cde-8123-456789abcdef"
SECOND = "01a226ab-5fe7-707c-80dd-7a6d93907104"
THIRD = "01a226ab-5fe7-707c-80dd-7a6d93907105"
NOW_TIMING = ConsolidateTiming(0, 0)


async def remember(context: Context, thread: str, words: str, *, cwd: str = "/home/dev/shop", at: float = 0) -> None:
    """Put the output of a session into the ledger, and ask for a consolidation."""
    updated_at = int(context.clock.now() - 3600 + at)
    reply = json.loads(stage1_reply(f"cwd: {cwd}\nthread_id: {thread}\n\n[human user] {words}\n").text)
    sighting = a_sighting(thread, updated_at=updated_at, cwd=cwd)
    output = NewOutput(
        thread_id=thread,
        source_updated_at=updated_at,
        raw_memory=reply["raw_memory"],
        rollout_summary=reply["rollout_summary"],
        rollout_slug=reply["rollout_slug"],
        stem=session_stem(thread, updated_at, reply["rollout_slug"]),
    )
    await context.ledger.write(_store, sighting, output, context.clock.now())


def _store(conn: Connection, sighting: Sighting, output: NewOutput, now: float) -> None:
    sessions.upsert(conn, sighting, now)
    assert outputs.store(conn, output, now=now)
    assert output.stem is not None
    sessions.fix_stem(conn, output.thread_id, output.stem)
    jobs.enqueue_consolidation(conn, now=now, timing=NOW_TIMING, max_attempts=3, reason="session")


def _move(conn: Connection, thread: str, path: str) -> None:
    conn.execute("UPDATE sessions SET path = ? WHERE thread_id = ?", (path, thread))


def a_consolidator(context: Context) -> Worker:
    return Worker(
        context, kind=JobKind.CONSOLIDATE, run=consolidate, publish=publish_decided, max_running=1, worker_id="test"
    )


async def run(context: Context) -> Done:
    context.clock.jump(1)  # type: ignore[attr-defined]  # what was enqueued at once is ready a moment later
    done = await a_consolidator(context).run_once()
    assert done is not None
    return done


async def enqueue(context: Context) -> None:
    await context.ledger.write(
        jobs.enqueue_consolidation,
        now=context.clock.now(),
        timing=NOW_TIMING,
        max_attempts=3,
        reason="test",
    )


def memory(context: Context) -> str:
    return (context.home.memories / "MEMORY.md").read_text()


def message_of(context: Context, commit: str) -> str:
    return context.repository.run("show", "--no-patch", "--format=%B", commit).decode()


async def selected(context: Context) -> list[str]:
    return [row.thread_id for row in await context.ledger.read(outputs.previously_selected)]


async def test_the_agent_writes_a_folder_that_is_accepted_committed_and_recalled(
    tmp_path: Path, clock: FakeClock
) -> None:
    client = Answering(good_model)
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await remember(context, SECOND, "Never deploy the shop on Fridays", cwd="/home/dev/infra")

        done = await run(context)

        assert done.ending is Ending.PUBLISHED, done
        assert "Always use tabs in the Makefile" in memory(context)
        assert (context.home.memories / "memory_summary.md").read_text().startswith("v1\n")
        assert await selected(context) == [FIRST, SECOND]
        latest = await context.ledger.read(publications.latest)
        assert latest is not None
        assert latest.state == "published"
        assert context.repository.accepted() == context.repository.head() == latest.commit
        assert json.loads((context.home.recall / "index.json").read_text())["commit"] == latest.commit
        assert list(context.home.staging.iterdir()) == []
        assert len(await context.ledger.read(claims.valid)) >= 2
        message = message_of(context, latest.commit)
        assert message.startswith("Consolidate 2 sessions\n\n")
        for trailer in ("Provider: scripted", "Model: model-1", "Sessions: 2 (2 added, 0 changed, 0 removed)", "Job: "):
            assert trailer in message
        assert f"Requests: {len(client.asked)}" in message
    assert log.events("consolidation.published")
    assert not (context.home.memories / "phase2_workspace_diff.md").exists()
    assert "phase2_workspace_diff.md" in opening(client.asked[0])


async def test_without_changes_nobody_is_asked(tmp_path: Path, clock: FakeClock) -> None:
    """I4: a consolidation that finds its folder as it left it costs nothing and commits nothing."""
    client = Answering(good_model)
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        asked, commit = len(client.asked), context.repository.head()
        await enqueue(context)

        done = await run(context)

        assert done.ending is Ending.UNCHANGED
        assert (len(client.asked), context.repository.head()) == (asked, commit)
        assert await selected(context) == [FIRST]
    assert log.events("consolidation.unchanged")


async def test_a_second_run_revises_what_stands(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        first = opening(client.asked[0])
        asked = len(client.asked)
        await remember(context, SECOND, "Never deploy the shop on Fridays")

        done = await run(context)

        assert done.ending is Ending.PUBLISHED, done
        assert "rollout_summaries/" in opening(client.asked[asked])
        assert opening(client.asked[asked]).split()[:12] != first.split()[:12]
        assert await selected(context) == [FIRST, SECOND]


async def test_the_offline_writer_passes_the_same_checks(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")

        done = await run(context)

        assert done.ending is Ending.PUBLISHED, done
        assert memory(context).startswith("> ")
        latest = await context.ledger.read(publications.latest)
        assert latest is not None
        message = message_of(context, latest.commit)
        assert "Model: none" in message
        assert "Consolidate 1 session\n" in message


async def test_without_evidence_left_code_empties_the_folder_and_asks_nobody(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        asked = len(client.asked)
        await context.ledger.write(sessions.set_user_mode, FIRST, UserMode.DISABLED)
        await enqueue(context)

        done = await run(context)

        assert done.ending is Ending.PUBLISHED, done
        assert len(client.asked) == asked
        assert "tabs" not in memory(context)
        assert "Nothing is remembered" in memory(context)
        assert list((context.home.memories / "rollout_summaries").glob("*.md")) == []
        assert await selected(context) == []
        assert await context.ledger.read(claims.valid) == []


async def test_a_note_is_evidence_too(tmp_path: Path, clock: FakeClock) -> None:
    """With a note left the agent is asked, though no session supports a memory."""
    client = Answering(agent_that_writes(lambda _raw: {"MEMORY.md": "", "memory_summary.md": "v1\n"}))
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        notes = context.home.memories / "extensions" / "ad_hoc" / "notes"
        notes.mkdir(parents=True)
        (notes / "2023-11-14T22-13-20-tabs.md").write_text("Use tabs.\n")
        await enqueue(context)
        await run(context)
    assert client.asked


BAD_FOLDERS: dict[str, Callable[[str], dict[str, str]]] = {
    "empty": lambda raw: {**good_files(raw), "MEMORY.md": " \n"},
    "no v1": lambda raw: {**good_files(raw), "memory_summary.md": good_files(raw)["memory_summary.md"][3:]},
    "placeholder": lambda raw: {**good_files(raw), "MEMORY.md": good_files(raw)["MEMORY.md"] + "- [...]\n"},
    "secret": lambda raw: {
        **good_files(raw),
        "MEMORY.md": good_files(raw)["MEMORY.md"] + f"- key sk-proj-{'a1B2' * 12} [Task 1] [stated]\n",
    },
}


@pytest.mark.parametrize("kind", BAD_FOLDERS)
async def test_a_result_that_is_turned_down_leaves_the_published_folder_and_retries_from_a_clean_context(
    tmp_path: Path, clock: FakeClock, kind: str
) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        before, commit = memory(context), context.repository.head()
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        bad = Answering(agent_that_writes(BAD_FOLDERS[kind]))
        stage = replace(context.consolidate, client=bad)

        done = await run(replace(context, consolidate=stage))

        assert (done.ending, done.reason) == (Ending.FAILED, "ResultRejected")
        assert (memory(context), context.repository.head()) == (before, commit)
        assert await selected(context) == [FIRST]
        assert await context.ledger.read(publications.pending) is None
        assert list(context.home.staging.iterdir()) == []
        detail = await context.ledger.read(jobs.show, JobKind.CONSOLIDATE, GLOBAL_KEY)
        assert detail is not None
        assert detail.job.last_error
        assert detail.job.wait_reason == "backoff"
        assert "sk-proj-" not in str(detail)

        clock.jump(3600)
        again = await run(context)
        assert again.ending is Ending.PUBLISHED, again
    assert log.events("consolidation.rejected")


async def test_complaints_go_back_to_the_agent_which_may_mend_its_work(tmp_path: Path, clock: FakeClock) -> None:
    def mends(question: Question) -> Answer:
        number = len(client.asked)
        if number == 4:
            assert "rejected" in str(question.turns[-1])
            return calls({"write_file": {"path": "memory_summary.md", "content": files["memory_summary.md"]}})
        return bad(question)

    def first_wrong(raw: str) -> dict[str, str]:
        files.update(good_files(raw))
        return {**files, "memory_summary.md": "v2\n"}

    files: dict[str, str] = {}
    bad = agent_that_writes(first_wrong)
    client = Answering(mends)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        done = await run(context)
    assert done.ending is Ending.PUBLISHED, done
    assert len(client.asked) == 5


async def test_the_claim_that_vanished_is_a_complaint_once_and_then_closed(tmp_path: Path, clock: FakeClock) -> None:
    def drops(raw: str) -> dict[str, str]:
        files = dict(good_files(raw))
        files["MEMORY.md"] = "\n".join(
            line for line in files["MEMORY.md"].splitlines() if not line.startswith(("- when", "## User preferences"))
        )
        return files

    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        await remember(context, SECOND, "Never deploy the shop on Fridays", cwd="/home/dev/infra")
        client = Answering(agent_that_writes(drops))

        done = await run(replace(context, consolidate=replace(context.consolidate, client=client)))

        assert done.ending is Ending.PUBLISHED, done
        answers = [str(question.turns[-1]) for question in client.asked]
        assert sum("rejected" in answer for answer in answers) == 1
        assert "when working in shop" not in memory(context)


async def test_strays_are_set_apart_and_the_good_part_kept(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")

        def litters(question: Question) -> Answer:
            for staged in context.home.staging.iterdir():
                (staged / "work" / "stray.txt").write_text("left here\n")
            return good_model(question)

        stage = replace(context.consolidate, client=Answering(litters))
        done = await run(replace(context, consolidate=stage))

        assert done.ending is Ending.PUBLISHED, done
        assert not (context.home.memories / "stray.txt").exists()
        assert [path.read_text() for path in context.home.quarantine.glob("*/stray.txt")] == ["left here\n"]
        assert "Strays: 1 removed" in context.repository.log(limit=1)[0].body


async def test_an_agent_that_never_finishes_is_stopped_by_its_requests(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(lambda _question: calls({"list_files": {"path": ""}}))
    async with a_house(settings_in(tmp_path, consolidate__max_requests=5), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        done = await run(context)
    assert (done.ending, done.reason) == (Ending.FAILED, "ResultRejected")
    assert len(client.asked) <= 5


class Silent:
    """A model that never answers."""

    async def ask(self, question: Question, purpose: object) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_a_request_that_outlasts_the_whole_run_is_ended(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path, consolidate__max_duration="1s"), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        stage = replace(context.consolidate, client=Silent(), model="model-1")
        done = await run(replace(context, consolidate=stage))
    assert (done.ending, done.reason) == (Ending.FAILED, "ResultRejected")
    assert "max_duration" in done.message


@pytest.mark.parametrize(("window", "kept"), [(None, True), (100, False)])
async def test_a_known_window_bounds_what_is_said_again(
    tmp_path: Path, clock: FakeClock, window: int | None, kept: bool
) -> None:
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        stage = replace(context.consolidate, context_window=window)
        done = await run(replace(context, consolidate=stage))
    assert done.ending is Ending.PUBLISHED, done
    assert ("Always use tabs" in str(client.asked[-1].turns[2])) is kept


async def test_trouble_of_the_model_leaves_the_folder_alone(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(lambda _question: ContextOverflow("too long"))
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        done = await run(context)
        assert (done.ending, done.reason) == (Ending.FAILED, "ContextOverflow")
        assert not (context.home.memories / "MEMORY.md").exists()
        assert list(context.home.staging.iterdir()) == []


async def test_a_pause_of_seconds_is_waited_out_and_no_work_is_thrown_away(tmp_path: Path, clock: FakeClock) -> None:
    """Limits per minute would otherwise defer the run at its fourth request, and pay for it anew each time."""
    asked = 0

    def limited(question: Question) -> Answer | str | Exception:
        nonlocal asked
        asked += 1
        return RateLimited("per minute", retry_after=20.0) if asked == 3 else good_model(question)

    client = Answering(limited)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        running = asyncio.create_task(run(context))
        await clock.sleeping(2)  # the heartbeat, and the pause
        await clock.advance(20.0)
        done = await running
        assert done.ending is Ending.PUBLISHED, done


@pytest.mark.parametrize("retry_after", [None, 3_600.0])
async def test_a_long_pause_of_the_provider_defers_the_run(
    tmp_path: Path, clock: FakeClock, retry_after: float | None
) -> None:
    client = Answering(lambda _question: RateLimited("for today", retry_after=retry_after))
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        done = await run(context)
        assert (done.ending, done.reason, len(client.asked)) == (Ending.DEFERRED, "rate_limited", 1)


class Killed(BaseException):
    """The process ends here, as far as this test goes."""


async def test_a_decided_publication_is_put_in_place_after_a_crash_at_every_point(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I1, I3: after the deciding transaction a crash costs nothing, and no model is asked again."""
    points: list[str] = []
    async with a_house(settings_in(tmp_path / "dry"), clock, client=Answering(good_model)) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        assert (await run(replace(context, reached=points.append))).ending is Ending.PUBLISHED
        wanted = memory(context)
    after_decision = [point for point in points if point.startswith(("before_", "after_"))]
    assert len(after_decision) >= 6

    for number, point in enumerate(after_decision):
        folder = tmp_path / f"{number}"
        folder.mkdir()

        def die(reached: str, point: str = point) -> None:
            if reached == point:
                raise Killed

        client, its_clock = Answering(good_model), FakeClock()
        async with a_house(settings_in(folder), its_clock, client=client) as context:
            await remember(context, FIRST, "Always use tabs in the Makefile")
            with pytest.raises(Killed):
                await run(replace(context, reached=die))
            assert await context.ledger.read(publications.pending) is not None
        asked = len(client.asked)
        async with a_house(settings_in(folder), its_clock, client=client) as context:
            await publish_decided(context)
            await publish_decided(context)

            assert await context.ledger.read(publications.pending) is None
            assert memory(context) == wanted
            assert context.repository.accepted() == context.repository.head()
            assert json.loads((context.home.recall / "index.json").read_text())["commit"] == context.repository.head()
            await enqueue(context)
            assert (await run(context)).ending is Ending.UNCHANGED
        assert len(client.asked) == asked


async def test_a_crash_before_the_decision_costs_a_run_and_changes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """I1."""

    def die(reached: str) -> None:
        if reached == "objects_written":
            raise Killed

    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        with pytest.raises(Killed):
            await run(replace(context, reached=die))
        assert await context.ledger.read(publications.pending) is None
        assert not (context.home.memories / "MEMORY.md").exists()
    clock.jump(3600)
    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        assert (await run(context)).ending is Ending.PUBLISHED


async def test_two_that_would_publish_the_same_decision_do_it_one_after_the_other(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A pass that was asked for over the socket, and the daemon's own consolidator."""
    points: list[str] = []

    def die(reached: str) -> None:
        if reached == "before_refs":
            raise Killed

    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        with pytest.raises(Killed):
            await run(replace(context, reached=die))

        both = replace(context, reached=points.append)
        await asyncio.gather(publish_decided(both), publish_decided(both))

        assert points.count("before_refs") == 1
        assert await context.ledger.read(publications.pending) is None


async def test_a_publication_that_has_begun_goes_to_its_end_although_it_is_cancelled(
    tmp_path: Path, clock: FakeClock
) -> None:
    began, may_go_on = threading.Event(), threading.Event()

    def die(reached: str) -> None:
        if reached == "before_refs":
            raise Killed

    def halt(reached: str) -> None:
        if reached == "before_refs":
            began.set()
            assert may_go_on.wait(30)

    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        with pytest.raises(Killed):
            await run(replace(context, reached=die))
        publishing = asyncio.create_task(publish_decided(replace(context, reached=halt)))
        await asyncio.to_thread(began.wait, 30)
        publishing.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await publishing

        assert await context.ledger.read(publications.pending) is None


async def test_a_persons_edit_stands_and_shows_in_the_next_run(tmp_path: Path, clock: FakeClock) -> None:
    """I10."""
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        edited = memory(context) + "\n## Failures and how to do differently\n- Ask Ada first [Task 1] [stated]\n"
        (context.home.memories / "MEMORY.md").write_text(edited)
        await enqueue(context)
        client = Answering(lambda _question: calls({"finish": {"summary": "as the person has it"}}))
        stage = replace(context.consolidate, client=client, model="model-1")

        done = await run(replace(context, consolidate=stage))

        assert done.ending is Ending.PUBLISHED, done
        assert "M MEMORY.md" in opening(client.asked[0])
        assert "Ask Ada first" in memory(context)


async def test_old_resources_of_an_extension_expire(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        resources = context.home.memories / "extensions" / "calendar" / "resources"
        resources.mkdir(parents=True)
        (resources.parent / "instructions.md").write_text("Look here.\n")
        for name in ("2023-11-01T00-00-00-old.md", "2023-11-14T00-00-00-new.md"):
            (resources / name).write_text("A meeting.\n")
        await enqueue(context)
        await run(context)
        assert [path.name for path in resources.iterdir()] == ["2023-11-14T00-00-00-new.md"]


async def test_a_third_session_joins_without_touching_the_others_names(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        await run(context)
        before = {path.name for path in (context.home.memories / "rollout_summaries").iterdir()}
        await remember(context, THIRD, "Please write commit messages in English")
        await run(context)
        after = {path.name for path in (context.home.memories / "rollout_summaries").iterdir()}
    assert before < after


async def test_a_pattern_that_is_newer_than_a_memory_or_matches_its_path_is_no_reason_to_reject(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I6: a person's own name in the path of every session must not end consolidation for good."""
    async with a_house(settings_in(tmp_path, privacy__patterns=["alice", "Makefile"]), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile", cwd="/home/alice/shop")
        path = "/home/alice/.codex/sessions/rollout.jsonl"
        await context.ledger.write(_move, FIRST, path)

        done = await run(context)

        assert done.ending is Ending.PUBLISHED, done
        for file in (context.home.memories).rglob("*.md"):
            assert "alice" not in file.read_text()
            assert "Makefile" not in file.read_text()


async def test_what_was_written_without_a_model_is_judged_as_well(tmp_path: Path, clock: FakeClock) -> None:
    """A pattern of the person's own that matches the very structure: said, not published, not repeated for ever."""
    async with a_house(settings_in(tmp_path, privacy__patterns=["Task Group"]), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        done = await run(context)
        assert (done.ending, done.reason) == (Ending.FAILED, "ResultRejected")
        assert "secret" in done.message
        assert not (context.home.memories / "MEMORY.md").exists()


@pytest.mark.parametrize("jump", [-400 * 86_400.0, 40 * 86_400.0])
async def test_nothing_leaves_the_memory_for_its_age_while_the_clock_is_in_doubt(
    tmp_path: Path, clock: FakeClock, jump: float
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        resource = context.home.memories / "extensions" / "shop" / "resources" / "2023-11-10T00-00-00-prices.md"
        resource.parent.mkdir(parents=True)
        resource.write_text("A sack of flour costs 12 euros.\n")
        (resource.parent.parent / "instructions.md").write_text("Prices of the shop.\n")
        clock.jump(jump)
        await remember(context, SECOND, "Never deploy the shop on Fridays", at=-jump)

        await enqueue(context)
        assert (await run(context)).ending is Ending.PUBLISHED
        assert await selected(context) == [FIRST, SECOND]
        assert resource.exists()

        clock.jump(-jump)
        await enqueue(context)
        await run(context)
        assert await selected(context) == [FIRST, SECOND]
        assert resource.exists()
