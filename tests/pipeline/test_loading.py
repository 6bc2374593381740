from pathlib import Path

import pytest

from memoryd.config import Settings
from memoryd.errors import SessionUnreadable, SessionVanished, SessionWithoutItems
from memoryd.pipeline.loading import NO_RELATIVES, Loaded, Relatives, load
from memoryd.redact import Redactor
from memoryd.sources.codex import CodexReader
from memoryd.sources.items import MemoryMode
from tests.support.house import settings_in
from tests.support.sessions import Turn, a_rollout, response

NOW = 1_700_000_000.0
CITES = (
    "As noted before.\n<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2|note=[style]\n</citation_entries>\n"
    "<rollout_ids>\n0194f5a6-89ab-7cde-8123-456789abcdef\n</rollout_ids>\n</oai-mem-citation>"
)


def loaded(settings: Settings, path: Path, relatives: Relatives = NO_RELATIVES, **changes: float) -> Loaded:
    return load(
        CodexReader(pause=lambda _seconds: None),
        CodexReader().locate(path),
        settings=settings,
        redactor=Redactor(),
        home=settings.home,
        budget_tokens=int(changes.get("budget_tokens", 10_000)),
        bytes_per_token=3.0,
        relatives=relatives,
    )


def test_a_session_is_read_into_evidence_with_what_it_said_besides(tmp_path: Path) -> None:
    path = a_rollout(
        tmp_path,
        now=NOW,
        turns=[Turn("Use tabs, my key is sk-proj-" + "a1B2" * 12, CITES)],
        memory_mode="enabled",
        extra=[response("web_search_call", status="completed", action={"type": "search", "query": "tabs"})],
    )
    with path.open("a") as file:
        file.write("{broken\n")

    found = loaded(settings_in(tmp_path), path)

    assert "Use tabs" in found.evidence.text
    assert "a1B2" not in found.evidence.text
    assert (found.evidence.human_messages, found.evidence.external) == (1, True)
    assert found.covered.updated_at == int(NOW - 7 * 3600)
    assert found.covered.record_bytes > 0
    assert [seen.thread_ids for seen in found.citations] == [("0194f5a6-89ab-7cde-8123-456789abcdef",)]
    assert found.memory_mode is MemoryMode.ENABLED
    assert found.bad_lines == 1


def test_what_is_covered_is_what_discovery_sees_at_the_end_of_the_file(tmp_path: Path) -> None:
    """I4: or a session would be extracted again and again."""
    path = a_rollout(tmp_path, now=NOW)
    tail = CodexReader().tail(CodexReader().locate(path))
    covered = loaded(settings_in(tmp_path), path).covered
    assert (covered.updated_at, covered.record_bytes) == (tail.last_record_at, tail.record_bytes)


def test_private_spans_and_the_budget_come_from_the_settings(tmp_path: Path) -> None:
    path = a_rollout(tmp_path, now=NOW, turns=[f"<hush>word {n}</hush> spoken {n} " + "x" * 600 for n in range(9)])
    found = loaded(settings_in(tmp_path, privacy__private_tags=["hush"]), path, budget_tokens=1_000)
    assert "spoken 8" in found.evidence.text
    assert "spoken 0" not in found.evidence.text
    assert "word" not in found.evidence.text


def test_a_file_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(SessionVanished, match="no longer there"):
        CodexReader().locate(tmp_path / "rollout.jsonl")


def test_a_session_of_which_nothing_is_understood_is_never_nothing_to_remember(tmp_path: Path) -> None:
    """I8: its lines may be those of a newer format."""
    path = a_rollout(tmp_path, now=NOW)
    path.write_text("{broken\n" * 20)
    with pytest.raises((SessionWithoutItems, SessionUnreadable)):
        loaded(settings_in(tmp_path), path)


def test_a_session_with_a_head_and_rubbish_is_never_nothing_to_remember(tmp_path: Path) -> None:
    """I8."""
    path = a_rollout(tmp_path, now=NOW, turns=[])
    with path.open("a") as file:
        file.write("{broken\n" * 20)
    with pytest.raises(SessionWithoutItems, match="20 unreadable lines"):
        loaded(settings_in(tmp_path), path)


def test_what_is_not_later_than_a_session_that_may_not_come_back_is_a_copy(tmp_path: Path) -> None:
    path = a_rollout(tmp_path, now=NOW, turns=["First words.", "Later words."])
    until = int(NOW - 7 * 3600 - 3 * 2)  # a turn is three records, two seconds apart

    found = loaded(settings_in(tmp_path), path, Relatives(copied_until=until))

    assert "First words." not in found.evidence.text
    assert "Later words." in found.evidence.text
    assert found.dropped["copied"] == 2
    assert loaded(settings_in(tmp_path), path).dropped["copied"] == 0
