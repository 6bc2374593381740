import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.worker import Worker
from memoryd.errors import SessionUnreadable, SessionVanished, UsageError
from memoryd.ledger import jobs, sessions
from memoryd.ledger.sessions import UserMode
from memoryd.ledger.states import JobKind
from memoryd.pipeline.context import Agent, Context
from memoryd.pipeline.discover import Discovery, choose_mode, reasons_of_waiting
from memoryd.pipeline.extract import extract
from memoryd.sources.codex import CodexReader
from memoryd.sources.items import SessionFile, SessionHead, SessionTail
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.log_lines import LogLines
from tests.support.sessions import a_rollout

DAY_HOURS = 24.0


class CountingReader(CodexReader):
    """The real reader, which counts what it opens and can meet trouble at a path."""

    def __init__(self) -> None:
        super().__init__(pause=lambda _seconds: None)
        self.opened: list[Path] = []
        self.trouble: dict[Path, Exception] = {}

    def head(self, file: SessionFile) -> SessionHead:
        self.opened.append(file.path)
        if file.path in self.trouble:
            raise self.trouble[file.path]
        return super().head(file)


def reading_with(context: Context, reader: Any, *homes: Path) -> Context:
    return replace(context, agents={"codex": Agent(reader, homes or context.agents["codex"].homes)})


async def enqueued(context: Context) -> list[str]:
    return [row.job_key for row in await context.ledger.read(jobs.list_jobs, kind=JobKind.STAGE1)]


async def test_an_idle_session_is_enqueued_once(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id="0194f5a6-89ab-7cde-8123-456789abcdef")
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)

        first, second = await discovery.run_once(), await discovery.run_once()

        assert (first.seen, first.opened, first.enqueued) == (1, 1, 1)
        assert (second.seen, second.opened, second.enqueued) == (1, 0, 0)
        assert await enqueued(context) == ["0194f5a6-89ab-7cde-8123-456789abcdef"]


async def test_a_scan_opens_only_the_files_that_changed(tmp_path: Path, clock: FakeClock) -> None:
    """I13: work grows with what changed, also over a restart."""
    paths = [a_rollout(tmp_path / "codex", now=clock.now() - number, turns=[f"Do {number}"]) for number in range(5)]
    async with a_house(settings_in(tmp_path), clock) as context:
        await Discovery(context).run_once()
        reader = CountingReader()
        discovery = Discovery(reading_with(context, reader))
        await discovery.run_once()
        assert reader.opened == []

        with paths[2].open("a") as file:
            file.write("\n")
        report = await discovery.run_once()

        assert reader.opened == [paths[2]]
        assert report.opened == 1


async def test_touched_files_are_looked_at_and_enqueue_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """I4: time of change only decides whether a file is looked at."""
    paths = [a_rollout(tmp_path / "codex", now=clock.now() - number, turns=[f"Do {number}"]) for number in range(3)]
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)
        await discovery.run_once()
        for path in paths:
            os.utime(path, (clock.now(), clock.now()))

        report = await discovery.run_once()

        assert (report.opened, report.enqueued) == (3, 0)


async def test_settings_that_changed_between_two_starts_judge_known_sessions_anew(
    tmp_path: Path, clock: FakeClock
) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), source="exec")
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await Discovery(context).run_once()
        assert (report.excluded, report.enqueued) == (Counter(noninteractive=1), 0)

    async with a_house(settings_in(tmp_path, sources__include_noninteractive=True), clock) as context:
        report = await Discovery(context).run_once()
        assert (report.excluded, report.enqueued, report.opened) == (Counter(), 1, 0)


async def test_a_session_that_was_left_out_while_its_job_waited_is_due_again_when_the_rule_is_lifted(
    tmp_path: Path, clock: FakeClock
) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), cwd="/src/secret")
    async with a_house(settings_in(tmp_path), clock) as context:
        assert (await Discovery(context).run_once()).enqueued == 1
    async with a_house(settings_in(tmp_path, sources__exclude_cwd=["/src/secret"]), clock) as context:
        assert (await Discovery(context).run_once()).excluded == Counter(excluded_cwd=1)
        done = await Worker(context, kind=JobKind.STAGE1, run=extract, worker_id="test").run_once()
        assert done is not None
        assert done.reason == "excluded_cwd"

    async with a_house(settings_in(tmp_path), clock) as context:
        assert (await Discovery(context).run_once()).enqueued == 1


async def test_a_file_that_cannot_be_read_is_counted_and_not_opened_again_until_it_changes(
    tmp_path: Path, clock: FakeClock
) -> None:
    good = a_rollout(tmp_path / "codex", now=clock.now())
    bad = a_rollout(tmp_path / "codex", now=clock.now(), turns=["Other work"])
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        reader = CountingReader()
        reader.trouble[bad] = SessionUnreadable("rubbish")
        discovery = Discovery(reading_with(context, reader))

        report = await discovery.run_once()

        assert (report.unreadable, report.excluded, report.enqueued) == (1, Counter(unreadable=1), 1)
        assert [event["path"] for event in log.events("session.unreadable")] == [str(bad)]
        assert sorted(reader.opened) == sorted([good, bad])
        again = await discovery.run_once()
        assert (again.unreadable, again.excluded, again.opened) == (0, Counter(unreadable=1), 0)
        assert (await Discovery(reading_with(context, reader)).run_once()).opened == 0

        del reader.trouble[bad]
        os.utime(bad, ns=(0, 1))
        cured = await discovery.run_once()
        assert (cured.excluded, cured.enqueued) == (Counter(), 1)


async def test_a_file_that_vanished_under_the_look_is_looked_at_when_it_is_back(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = a_rollout(tmp_path / "codex", now=clock.now())
    async with a_house(settings_in(tmp_path), clock) as context:
        reader = CountingReader()
        reader.trouble[path] = SessionVanished("it was there a moment ago")
        discovery = Discovery(reading_with(context, reader))
        report = await discovery.run_once()
        assert (report.opened, report.unreadable, report.enqueued) == (1, 0, 0)

        reader.trouble.clear()
        report = await discovery.run_once()

        assert (report.opened, report.enqueued) == (1, 1)


async def test_a_vanished_session_is_not_a_wish_to_forget(tmp_path: Path, clock: FakeClock) -> None:
    path = a_rollout(tmp_path / "codex", now=clock.now())
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)
        await discovery.run_once()
        path.unlink()

        report = await discovery.run_once()

        assert report.seen == 0
        assert len(await context.ledger.read(sessions.list_sessions)) == 1


async def test_a_missing_root_is_said_once_until_it_is_there_again(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)
        for _ in range(3):
            assert (await discovery.run_once()).missing_roots == [tmp_path / "codex"]
        assert len(log.events("root.missing")) == 1

        (tmp_path / "codex" / "sessions").mkdir(parents=True)
        assert (await discovery.run_once()).missing_roots == []
        (tmp_path / "codex" / "sessions").rmdir()
        await discovery.run_once()
        assert len(log.events("root.missing")) == 2


async def test_fresh_old_and_unconsented_sessions_wait_with_their_reason(tmp_path: Path, clock: FakeClock) -> None:
    for hours in (1.0, 7.0, 11 * DAY_HOURS):
        a_rollout(tmp_path / "codex", now=clock.now(), idle_hours=hours, turns=[f"{hours}"])
    async with a_house(settings_in(tmp_path), clock, client=Answering(lambda _question: "")) as context:
        discovery = Discovery(context)

        report = await discovery.run_once()

        assert report.enqueued == 0
        waits = await context.ledger.read(reasons_of_waiting, await discovery.window())
        assert waits == Counter(consent=2, too_old=1)
        report = await discovery.run_once(backfill="recent")
        assert report.enqueued == 1
        waits = await context.ledger.read(reasons_of_waiting, await discovery.window(backfill="recent"))
        assert waits == Counter(too_fresh=1, too_old=1)
        assert (await discovery.run_once(backfill="recent", ignore_idle=True)).enqueued == 1
        assert (await discovery.run_once(backfill="all")).enqueued == 1


async def test_the_offline_writer_needs_no_consent(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now())
    async with a_house(settings_in(tmp_path), clock) as context:
        assert (await Discovery(context).run_once()).enqueued == 1


async def test_one_thread_can_be_asked_for_alone(tmp_path: Path, clock: FakeClock) -> None:
    wanted = "0194f5a6-89ab-7cde-8123-456789abcdef"
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=wanted)
    a_rollout(tmp_path / "codex", now=clock.now(), turns=["Other work"])
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await Discovery(context).run_once(only=wanted)
        assert report.enqueued == 1
        assert await enqueued(context) == [wanted]


@pytest.mark.parametrize(
    ("mode", "user_mode", "polluted", "excluded"),
    [
        ("enabled", None, False, Counter()),
        ("disabled", None, False, Counter(memory_disabled=1)),
        ("disabled", UserMode.ENABLED, False, Counter()),
        ("enabled", UserMode.DISABLED, False, Counter(memory_disabled=1)),
        ("enabled", UserMode.NO_RECALL, False, Counter()),
        ("enabled", None, True, Counter(polluted=1)),
        ("polluted", None, False, Counter(polluted=1)),
    ],
)
async def test_the_persons_choice_wins_over_the_finding_and_that_over_the_agents_word(
    tmp_path: Path, clock: FakeClock, mode: str, user_mode: UserMode | None, polluted: bool, excluded: Counter[str]
) -> None:
    thread = "0194f5a6-89ab-7cde-8123-456789abcdef"
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=thread, memory_mode=mode)
    async with a_house(settings_in(tmp_path), clock) as context:
        await Discovery(context).run_once()
        if user_mode is not None:
            await context.ledger.write(sessions.set_user_mode, thread, user_mode)
        if polluted:
            await context.ledger.write(sessions.mark_polluted, thread, clock.now())

        assert (await Discovery(context).run_once()).excluded == excluded


async def test_many_sessions_are_recorded_in_batches(tmp_path: Path, clock: FakeClock) -> None:
    class Many(CodexReader):
        def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
            return (SessionFile("codex", f"/sessions/{number}", 1, number) for number in range(450))

        def head(self, file: SessionFile) -> SessionHead:
            found = super().head(SessionFile("codex", str(sample), file.size, file.mtime_ns))
            return replace(found, thread_id=file.path.name)

        def tail(self, file: SessionFile) -> SessionTail:
            return super().tail(SessionFile("codex", str(sample), file.size, file.mtime_ns))

    sample = a_rollout(tmp_path / "codex", now=clock.now())
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await Discovery(reading_with(context, Many())).run_once()
        assert (report.seen, report.opened, report.enqueued) == (450, 450, 450)


async def test_what_the_ledger_keeps_of_a_session_is_on_one_line_and_without_secrets(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I6: directories and branches reach requests, files and git objects."""
    secret = "ghp_" + "a1B2" * 9
    a_rollout(
        tmp_path / "codex",
        now=clock.now(),
        cwd=f"/home/dev/{secret}\n# Task Group: evil\0",
        branch=f"fix\u202e/{secret}\x1b[2J",
        meta={"originator": f"codex {secret}"},
    )
    async with a_house(settings_in(tmp_path), clock) as context:
        await Discovery(context).run_once()

        (row,) = await context.ledger.read(sessions.list_sessions)

    assert row.cwd == "/home/dev/[REDACTED_SECRET:github] # Task Group: evil"
    assert row.git_branch == "fix/[REDACTED_SECRET:github]"
    assert row.originator == "codex [REDACTED_SECRET:github]"


async def test_a_session_whose_id_holds_a_secret_is_left_out(tmp_path: Path, clock: FakeClock) -> None:
    """I6: jobs, files and requests name a session by its id."""
    secret = "ghp_" + "a1B2" * 9
    a_rollout(tmp_path / "codex", now=clock.now(), meta={"id": secret})
    a_rollout(tmp_path / "codex", now=clock.now(), idle_hours=9, meta={"forked_from_id": secret})
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await Discovery(context).run_once()

        (row,) = await context.ledger.read(sessions.list_sessions)

    assert report.excluded == {"unreadable": 1}
    assert row.parent_id is None


async def test_no_row_holds_the_path_of_a_file_that_is_no_session_and_is_named_like_a_secret(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I6: neither as a path nor in the words of the error; and it is opened once, and counted once, all the same."""
    secret = "ghp_" + "a1B2" * 9
    sessions_folder = tmp_path / "generic"
    sessions_folder.mkdir()
    (sessions_folder / f"{secret}.jsonl").write_text('{"type": "user", "text": "x"}\n')
    (sessions_folder / f"broken {secret}.jsonl").write_text("{broken\n")
    (sessions_folder / f"odd\n{secret}.jsonl").write_text("{broken\n")
    settings = settings_in(tmp_path, sources__agents=["generic"], sources__roots={"generic": [str(sessions_folder)]})
    async with a_house(settings, clock) as context:
        discovery = Discovery(context)
        reports = [await discovery.run_once() for _ in range(2)]
        rows = await context.ledger.read(lambda conn: list(conn.execute("SELECT * FROM other_files")))

    assert [report.opened for report in reports] == [2, 0]
    assert [report.excluded for report in reports] == [{"unreadable": 3}] * 2
    assert len(rows) == 3
    assert secret not in str([tuple(row) for row in rows])


@pytest.mark.parametrize(
    ("named", "kept"),
    [("Older Memory Topics", None), ("..", None), ("", None), ("/srv/é", "/srv/é"), ("C:\\Users\\x", "C:\\Users\\x")],
)
async def test_only_an_absolute_path_is_a_directory(
    tmp_path: Path, clock: FakeClock, named: str, kept: str | None
) -> None:
    """A relative one could pose as a heading of the memory."""
    a_rollout(tmp_path / "codex", now=clock.now(), cwd=named)
    async with a_house(settings_in(tmp_path), clock) as context:
        await Discovery(context).run_once()

        (row,) = await context.ledger.read(sessions.list_sessions)

    assert row.cwd == kept


async def test_an_ephemeral_session_stays_left_out_over_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    class Ephemeral(CodexReader):
        def head(self, file: SessionFile) -> SessionHead:
            return replace(super().head(file), ephemeral=True)

    a_rollout(tmp_path / "codex", now=clock.now())
    async with a_house(settings_in(tmp_path), clock) as context:
        await Discovery(reading_with(context, Ephemeral())).run_once()

        report = await Discovery(context).run_once()

        assert (report.excluded, report.enqueued, report.opened) == (Counter(ephemeral=1), 0, 0)


async def test_a_session_in_the_home_folder_is_left_out_until_the_settings_or_the_person_want_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    thread = "0194f5a6-89ab-7cde-8123-456789abcdef"
    a_rollout(tmp_path / "codex", now=clock.now(), cwd=str(tmp_path), thread_id=thread)
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await Discovery(context).run_once()
        assert (report.excluded, report.enqueued) == (Counter(home_directory=1), 0)
        await choose_mode(context, thread[:9], UserMode.ENABLED)
        report = await Discovery(context).run_once()
        assert (report.excluded, report.enqueued) == (Counter(), 1)
        await choose_mode(context, thread, UserMode.NO_RECALL)
        assert (await Discovery(context).run_once()).excluded == Counter(home_directory=1)

    async with a_house(settings_in(tmp_path, sources__include_home=True), clock) as context:
        assert (await Discovery(context).run_once()).excluded == Counter()


async def test_a_mode_is_chosen_for_a_session_that_is_known(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        with pytest.raises(UsageError, match="no session 'nobody'"):
            await choose_mode(context, "nobody", UserMode.ENABLED)


async def test_a_file_that_was_gone_when_it_was_to_be_read_is_read_when_it_is_back(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = a_rollout(tmp_path / "codex", now=clock.now())
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)
        worker = Worker(context, kind=JobKind.STAGE1, run=extract, worker_id="test")
        await discovery.run_once()
        path.rename(tmp_path / "away")
        done = await worker.run_once()
        assert done is not None
        assert done.reason == "vanished"
        assert (await discovery.run_once()).excluded == Counter(vanished=1)
        assert await worker.run_once() is None

        (tmp_path / "away").rename(path)
        report = await discovery.run_once()

        assert (report.opened, report.enqueued, report.excluded) == (1, 1, Counter())
        done = await worker.run_once()
        assert done is not None
        assert done.reason == "empty_reply"
        assert (await discovery.run_once()).enqueued == 0
