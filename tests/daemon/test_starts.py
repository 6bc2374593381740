"""launchd has no limit on starts: the daemon counts its own."""

from pathlib import Path

import pytest

from memoryd.daemon.starts import FILE, MOST, WITHIN_SECONDS, Starts
from tests.support.clock import FakeClock
from tests.support.log_lines import LogLines


def test_after_too_many_starts_in_a_short_time_the_next_one_stays_down_and_then_a_person_may_try(
    tmp_path: Path, clock: FakeClock
) -> None:
    log = LogLines()
    assert [Starts(tmp_path, clock).begin() for _ in range(MOST + 2)] == [True] * MOST + [False, True]
    (line,) = log.events("start.abandoned")
    assert line["count"] == MOST


def test_starts_far_apart_or_after_a_good_end_do_not_count(tmp_path: Path, clock: FakeClock) -> None:
    starts = Starts(tmp_path, clock)
    for _ in range(3 * MOST):
        assert starts.begin()
        clock.freeze(WITHIN_SECONDS / (MOST - 1))
    for _ in range(3 * MOST):
        assert starts.begin()
        starts.forget()
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("content", ["", "{", "7", '["a"]', "[1e999]"])
def test_a_count_that_cannot_be_read_or_written_counts_nothing(tmp_path: Path, clock: FakeClock, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert Starts(tmp_path, clock).begin()
    assert Starts(tmp_path / "missing", clock).begin()
