"""Whether what was measured is flat: how much each gauge grew over the time after the warm-up, and how much it may."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.soak.gauges import Sample

MEGABYTE = 1024 * 1024
WARM_UP_SHARE = 0.3
"""The first part of the time is not judged: imports, pools, caches and the first 256 memories fill up in it."""
MOST_POINTS = 400


@dataclass(frozen=True, slots=True)
class Verdict:
    """One statement about the run, with the number behind it."""

    name: str
    value: float
    most: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.value <= self.most


def growth(samples: Sequence[Sample], gauge: Callable[[Sample], float]) -> float:
    """Return by how much a gauge grew: the median slope between all pairs (Theil-Sen), times the time.

    A peak, however high, does not move it; what grows all the time does.
    """
    points = [(sample.at, gauge(sample)) for sample in thinned(samples)]
    slopes = [(later[1] - each[1]) / (later[0] - each[0]) for n, each in enumerate(points) for later in points[n + 1 :]]
    return median(slopes) * (points[-1][0] - points[0][0]) if slopes else 0.0


def thinned(samples: Sequence[Sample]) -> Sequence[Sample]:
    step = max(1, len(samples) // MOST_POINTS)
    return samples[::step]


def judged(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the samples after the warm-up."""
    begins = WARM_UP_SHARE * samples[-1].at
    return [sample for sample in samples if sample.at >= begins]


def flatness(samples: Sequence[Sample]) -> list[Verdict]:
    """Judge every gauge of the samples of a whole run."""
    warm = judged(samples)
    arrived = max(1, warm[-1].sessions - warm[0].sessions)

    def grew(name: str, gauge: Callable[[Sample], float], most: float, unit: str, per: float = 1.0) -> Verdict:
        return Verdict(name, round(growth(warm, gauge) / per, 2), most, unit)

    return [
        grew("memory grew by", lambda sample: sample.rss, 12, "MB", MEGABYTE),
        grew("open descriptors grew by", lambda sample: sample.descriptors, 3, ""),
        grew("threads grew by", lambda sample: sample.threads, 3, ""),
        # The log is a saw: it grows up to where it is taken in, and then begins anew.
        Verdict("the ledger's log was at most", round(max(s.wal for s in samples) / MEGABYTE, 2), 40, "MB"),
        grew("the ledger grew per session by", lambda sample: sample.ledger, 24, "kB", 1024 * arrived),
        Verdict("loose objects were at most", max(s.loose_objects for s in samples), 4000, ""),
        grew("the history grew per session by", lambda sample: sample.history, 64, "kB", 1024 * arrived),
        grew("the rest of the folder grew by", lambda sample: sample.rest, 8, "MB", MEGABYTE),
    ]
