"""In which order what was found is given: by words first, then by where it holds, what it is, use and age.

Each ranker gives relevances; `fuse` joins any number of them, so that one that judges meaning can stand beside the one
that judges words.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p
from typing import Final, TypeAlias

Relevance: TypeAlias = Mapping[int, float]
"""By the number of an entry, how well it fits a question: larger is better, on the ranker's own scale."""

DAY_SECONDS: Final = 86_400
RECENT_DAYS: Final = 90.0
"""After so many days the bonus of what is recent has fallen to 37 %."""
USAGE_SHARE: Final = 0.10
RECENCY_SHARE: Final = 0.10
"""How much use, and recency, can add to a relevance: enough to decide between what fits about as well."""
ELSEWHERE: Final = 1 / 3
"""When somebody asks from within a project, what holds in another must fit three times as well to come first."""
EVERYWHERE: Final = 0.9
"""What holds in the project itself is the more specific, where something that holds everywhere fits as well."""
KIND_SHARES: Final[Mapping[str, float]] = {"bullet": 1.0, "skill": 0.9, "task": 0.8, "summary": 0.5}
"""The handbook is what holds now; a summary is what one session saw, which may have been overtaken since."""
MANY_USES: Final = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of an entry beside its words; `place_share` by where it holds; instants are epoch seconds."""

    kind: str
    place_share: float
    updated_at: int | None
    uses: int = 0


@dataclass(frozen=True, slots=True)
class Ranking:
    """One ranker's opinion, and how much it counts beside the others."""

    relevance: Relevance
    share: float = 1.0


def fuse(rankings: Sequence[Ranking]) -> dict[int, float]:
    """Join opinions: each on a scale from 0 to its own best, weighted by its share; what one does not know gets 0.

    With one ranking its order and its proportions are kept.
    """
    total = sum(ranking.share for ranking in rankings)
    fused: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        best = max(ranking.relevance.values(), default=0.0)
        if best <= 0:
            continue
        for entry_id, relevance in ranking.relevance.items():
            fused[entry_id] += ranking.share / total * max(0.0, relevance) / best
    return dict(fused)


def order(relevance: Relevance, standing: Mapping[int, Standing], *, now: float) -> list[tuple[int, float]]:
    """Return (number, score) of what is known, the best first; equal scores in the order of their numbers."""
    scored = [(each, relevance[each] * _weight(known, now)) for each, known in standing.items() if each in relevance]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def newest(instants: Iterable[int | None]) -> int | None:
    """Return the latest of the instants that are known."""
    return max((instant for instant in instants if instant is not None), default=None)


def _weight(known: Standing, now: float) -> float:
    used = min(1.0, log1p(known.uses) / log1p(MANY_USES))
    age = None if known.updated_at is None else max(0.0, now - known.updated_at) / DAY_SECONDS
    recent = 0.0 if age is None else exp(-age / RECENT_DAYS)
    return known.place_share * KIND_SHARES[known.kind] * (1 + USAGE_SHARE * used + RECENCY_SHARE * recent)
