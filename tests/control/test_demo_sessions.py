"""The bundled sessions: realistic to the reader, shifted to today, and telling what the demo is to show."""

import random
import uuid
from collections import Counter
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest

from memoryd.control.demo_sessions.install import bundled_scripts, install
from memoryd.control.demo_sessions.records import thread_id_of
from memoryd.control.demo_sessions.scripts import made_up_token, parse_script, seconds_of, with_secrets
from memoryd.errors import StorageError
from memoryd.pipeline.offline_extract import extract_offline
from memoryd.pipeline.reply import Stage1Reply
from memoryd.pipeline.session_facts import SessionFacts
from memoryd.redact import Redactor
from memoryd.sources.items import ItemKind, MemoryMode, SessionFile, SessionHead, SessionKind
from memoryd.sources.readers import READERS
from tests.support.random_sessions import random_sessions

NOW = 1_700_000_000.0
HOUR = 3_600
CODEX = READERS["codex"]


def reply_of(file: SessionFile) -> Stage1Reply:
    """Extract a session as the pipeline would, budget and redaction aside."""
    head, tail = CODEX.head(file), CODEX.tail(file)
    facts = SessionFacts(head.thread_id, "codex", head.cwd, head.git_branch, head.started_at, tail.last_record_at)
    with CODEX.read(file) as reading:
        return extract_offline(session=facts, items=list(reading))


def installed(home: Path, now: float = NOW) -> list[tuple[SessionFile, SessionHead]]:
    install(home, now=now)
    return [(file, CODEX.head(file)) for file in CODEX.find([home])]


def test_the_sessions_are_many_varied_and_of_three_projects(tmp_path: Path) -> None:
    sessions = installed(tmp_path)

    assert len(sessions) == len(bundled_scripts()) == 17
    assert len({head.cwd for _, head in sessions}) == 3
    assert Counter(head.kind for _, head in sessions) == {
        SessionKind.INTERACTIVE: 15,
        SessionKind.SUBAGENT: 1,
        SessionKind.NONINTERACTIVE: 1,
    }
    assert [head.memory_mode for _, head in sessions].count(MemoryMode.DISABLED) == 1


def test_the_reader_understands_every_line(tmp_path: Path) -> None:
    for file, _ in installed(tmp_path):
        with CODEX.read(file) as reading:
            kinds = Counter(item.kind for item in reading)
        assert (reading.bad_lines, reading.unknown) == (0, Counter())
        assert kinds[ItemKind.HUMAN]


def test_ages_serve_the_demo_one_session_is_too_fresh_and_one_too_old(tmp_path: Path) -> None:
    ages = [NOW - CODEX.tail(file).last_record_at for file, _ in installed(tmp_path)]

    assert sum(age < 6 * HOUR for age in ages) == 1
    assert sum(age > 30 * 24 * HOUR for age in ages) == 1
    assert sum(age > 14 * 24 * HOUR for age in ages) > 3


def test_the_sub_agent_names_its_parent(tmp_path: Path) -> None:
    sessions = installed(tmp_path)

    (child,) = [head for _, head in sessions if head.kind is SessionKind.SUBAGENT]
    assert child.parent_id in {head.thread_id for _, head in sessions}


def test_files_are_named_and_dated_by_the_times_inside_them(tmp_path: Path) -> None:
    for file, head in installed(tmp_path):
        assert head.started_at is not None
        start = datetime.fromtimestamp(head.started_at, UTC)
        assert file.path.name == f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{head.thread_id}.jsonl"
        assert file.path.parent == tmp_path / "sessions" / f"{start:%Y}" / f"{start:%m}" / f"{start:%d}"
        assert abs(file.mtime_ns // 10**9 - CODEX.tail(file).last_record_at) <= 1
        identity = uuid.UUID(head.thread_id)
        assert (identity.version, identity.variant) == (7, uuid.RFC_4122)
        assert identity.int >> 80 == head.started_at * 1000


def test_the_same_instant_gives_the_same_files_and_another_one_only_shifts_them(tmp_path: Path) -> None:
    first, again, later = (installed(tmp_path / name, now) for name, now in (("a", NOW), ("b", NOW), ("c", NOW + 4e7)))

    assert [file.path.read_text() for file, _ in first] == [file.path.read_text() for file, _ in again]
    assert [file.path.name for file, _ in first] == [file.path.name for file, _ in again]
    assert [head.cwd for _, head in first] == [head.cwd for _, head in later]
    assert not {head.thread_id for _, head in first} & {head.thread_id for _, head in later}


def test_small_talk_questions_and_what_is_not_asked_for_teach_nothing(tmp_path: Path) -> None:
    eligible = [(file, head) for file, head in installed(tmp_path) if head.kind is SessionKind.INTERACTIVE]
    empty = [head.thread_id for file, head in eligible if reply_of(file).is_empty]

    names = {thread_id_of(script.name, NOW + script.starts): script.name for script in bundled_scripts()}
    assert sorted(names[one] for one in empty) == ["03-orders-api-hello", "12-orders-api-question"]


@pytest.mark.parametrize(
    "telling",
    [
        'the user corrected: "No, we use uv in this repo, never call pip directly." -> we use uv in this repo',
        'the user said: "From now on always run `make check` before you say that something is done."',
        "the user corrected: \"I changed my mind about the styling: let's use Tailwind instead of CSS modules",
        'the user asked: "Bitte antworte ab jetzt immer auf Englisch, auch wenn ich Deutsch schreibe."',
        'the user corrected: "No, don\'t add retries to tests, fix the race itself."',
        '`npm install` failed with exit code 1 ("npm error Unsupported URL Type',
        "`pnpm install` worked with exit code 0",
        "; after changing `orders/outbox.py`, ",
    ],
)
def test_the_sessions_hold_what_the_demo_is_to_show(tmp_path: Path, telling: str) -> None:
    memories = [reply_of(file).raw_memory for file, _ in installed(tmp_path)]

    assert any(telling in memory for memory in memories)


def test_a_pasted_secret_is_in_one_session_and_in_no_file_of_the_repository(tmp_path: Path) -> None:
    redactor = Redactor()
    bundled = resources.files("memoryd.control.demo_sessions") / "bundled"

    assert not any(redactor.contains_secret(entry.read_text()) for entry in bundled.iterdir())
    leaking = [file.path for file, _ in installed(tmp_path) if redactor.contains_secret(file.path.read_text())]
    assert len(leaking) == 1
    assert made_up_token("package-index") not in redactor.clean(leaking[0].read_text())


def test_a_home_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")

    with pytest.raises(StorageError, match="cannot write the demo session") as caught:
        install(tmp_path / "home", now=NOW)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "seconds"), [("-3d2h", -266_400), ("+40s", 40), ("1h5m", 3_900), ("0s", 0), ("2d3h4m5s", 183_845)]
)
def test_durations_are_read_as_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "-", "3", "3w", "1s2h", "soon"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        seconds_of(text)


@pytest.mark.parametrize("row", ['{"at": "1s"}', '{"at": "1s", "human": "a", "says": "b"}'])
def test_a_row_is_of_exactly_one_kind(row: str) -> None:
    with pytest.raises(ValueError, match="exactly one of"):
        parse_script("x", f'{{"starts": "-1d", "cwd": "/"}}\n{row}\n')


def test_made_up_tokens_look_like_tokens_and_are_always_the_same() -> None:
    assert with_secrets("use {{secret:a}} now") == f"use {made_up_token('a')} now"
    assert made_up_token("a") != made_up_token("b")
    assert Redactor().contains_secret(made_up_token("a"))


@pytest.mark.parametrize("seed", range(12))
def test_of_random_sessions_everything_planted_is_remembered_and_small_talk_is_not(tmp_path: Path, seed: int) -> None:
    planted = random_sessions(tmp_path, now=NOW, rng=random.Random(seed))
    files = {CODEX.head(file).thread_id: file for file in CODEX.find([tmp_path])}

    assert len(planted) == len(files) == 12
    for one in planted:
        reply = reply_of(files[one.thread_id])
        assert files[one.thread_id].path == one.path
        assert reply.is_empty != one.remembered
        assert [text for text in one.must_remember if text not in reply.raw_memory] == []
        assert [text for text in one.must_not_remember if text in reply.raw_memory] == []
