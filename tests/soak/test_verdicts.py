"""What the soak calls flat."""

from dataclasses import replace

from tests.soak.gauges import Sample
from tests.soak.verdicts import MEGABYTE, flatness, growth

CALM = Sample(0.0, 60 * MEGABYTE, 16, 6, 0.0, MEGABYTE, MEGABYTE, MEGABYTE, 100, MEGABYTE, 0)
RUN = [replace(CALM, at=2.0 * number, sessions=number) for number in range(100)]


def failing(samples: list[Sample]) -> list[str]:
    return [verdict.name for verdict in flatness(samples) if not verdict.holds]


def test_a_run_that_stays_as_it_is_holds_and_so_does_one_with_a_peak_and_a_warm_up() -> None:
    assert failing(RUN) == []
    warmed = [replace(each, rss=each.rss - (30 - n) * MEGABYTE if n < 30 else each.rss) for n, each in enumerate(RUN)]
    assert failing(warmed) == []
    peak = [
        replace(each, rss=each.rss + 200 * MEGABYTE if n in range(60, 70) else each.rss) for n, each in enumerate(RUN)
    ]
    assert failing(peak) == []


def test_what_grows_all_the_time_fails_by_name() -> None:
    assert failing([replace(each, rss=each.rss + n * MEGABYTE) for n, each in enumerate(RUN)]) == ["memory grew by"]
    assert failing([replace(each, descriptors=16 + n // 10) for n, each in enumerate(RUN)]) == [
        "open descriptors grew by"
    ]
    assert failing([replace(each, wal=each.wal + n * MEGABYTE) for n, each in enumerate(RUN)]) == [
        "the ledger's log was at most"
    ]
    assert growth(RUN, lambda sample: sample.at) == RUN[-1].at
    assert growth(RUN[:1], lambda sample: sample.at) == 0.0
