"""The questions of the benchmark with what answers them: the same at every run, and made without asking any ranker.

What answers is a line of a file that states the fact as it is now: in the handbook, or in a session's summary.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.bench.search.world import SEED, Fact, Place, World

EACH: Final = 48
"""Questions of each kind."""
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9]+(?:[_./-][A-Za-z0-9]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)+")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, from which directory it is asked (None: from none), and the lines that answer it or did before."""

    kind: str
    words: str
    cwd: str | None
    answers: frozenset[Place]
    stale: frozenset[Place]


def make_questions(world: World, seed: int = SEED) -> list[Asked]:
    """Return EACH questions of each kind."""
    random = Random(seed + 1)
    changed = [fact for fact in world.facts if fact.stale]
    named = [fact for fact in world.facts if _IDENTIFIER.fullmatch(fact.value)]
    kinds: dict[str, tuple[list[Fact], Callable[[Fact], str]]] = {
        "fact": (world.facts, lambda fact: random.choice(fact.topic.direct)),
        "paraphrase": (world.facts, lambda fact: random.choice(fact.topic.paraphrased)),
        "update": (changed, lambda fact: random.choice((*fact.topic.direct, *fact.topic.paraphrased))),
        "superseded": (changed, lambda fact: fact.topic.still),
        "named project": (
            world.facts,
            lambda fact: random.choice((*fact.topic.direct, *fact.topic.paraphrased)) + f" (in {fact.project})",
        ),
        "identifier": (named, lambda _: "{v}"),
    }
    asked = []
    for kind, (facts, template) in kinds.items():
        for fact in random.sample(facts, EACH):
            words = template(fact).format(c=fact.part, v=fact.value, old=fact.old)
            cwd = None if kind == "named project" else fact.cwd
            right = list(_same(world, fact)) if kind == "identifier" else [fact]
            asked.append(Asked(kind, words, cwd, _places(each.places for each in right), frozenset(fact.stale)))
    return asked


def _same(world: World, fact: Fact) -> Iterator[Fact]:
    """Whoever gives a name alone is answered by every fact of the project that has it."""
    for other in world.facts:
        if other.value == fact.value and other.project == fact.project:
            yield other


def _places(sets: Iterable[set[Place]]) -> frozenset[Place]:
    return frozenset(place for places in sets for place in places)
