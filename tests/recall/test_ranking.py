"""In which order what was found is given, and how opinions are joined."""

import pytest

from memoryd.recall.ranking import DAY_SECONDS, ELSEWHERE, EVERYWHERE, Ranking, Standing, fuse, order

NOW = 1_000 * DAY_SECONDS
PLAIN = Standing("bullet", 1.0, NOW)


def test_one_opinion_keeps_its_order_and_its_proportions() -> None:
    assert fuse([Ranking({1: 8.0, 2: 4.0, 3: 1.0})]) == {1: 1.0, 2: 0.5, 3: 0.125}


def test_opinions_on_different_scales_count_by_their_shares() -> None:
    fused = fuse([Ranking({1: 8.0, 2: 4.0}), Ranking({2: 0.9, 3: 0.3}, share=3.0)])

    assert fused == {1: pytest.approx(0.25), 2: pytest.approx(0.125 + 0.75), 3: pytest.approx(0.25)}


@pytest.mark.parametrize("nothing", [{}, {1: 0.0}, {1: -2.0}])
def test_an_opinion_that_knows_nothing_changes_no_order(nothing: dict[int, float]) -> None:
    assert list(fuse([Ranking({1: 2.0, 2: 1.0}), Ranking(nothing)])) == [1, 2]
    assert fuse([Ranking(nothing)]) == {}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (PLAIN, Standing("summary", 1.0, NOW)),
        (PLAIN, Standing("task", 1.0, NOW)),
        (PLAIN, Standing("bullet", EVERYWHERE, NOW)),
        (Standing("bullet", EVERYWHERE, NOW), Standing("bullet", ELSEWHERE, NOW)),
        (PLAIN, Standing("bullet", 1.0, NOW - 30 * DAY_SECONDS)),
        (Standing("bullet", 1.0, NOW - 300 * DAY_SECONDS), Standing("bullet", 1.0, None)),
        (Standing("bullet", 1.0, NOW, uses=1), PLAIN),
        (Standing("bullet", 1.0, NOW, uses=9), Standing("bullet", 1.0, NOW, uses=3)),
    ],
)
def test_of_what_fits_as_well_place_kind_use_and_age_decide(better: Standing, worse: Standing) -> None:
    assert [each for each, _ in order({1: 1.0, 2: 1.0}, {1: worse, 2: better}, now=NOW)] == [2, 1]


def test_no_use_and_no_freshness_outweighs_words_that_fit_much_better() -> None:
    used = Standing("bullet", 1.0, NOW, uses=1_000)

    assert [each for each, _ in order({1: 0.7, 2: 1.0}, {1: used, 2: Standing("bullet", 1.0, None)}, now=NOW)] == [2, 1]


def test_a_time_in_the_future_is_now() -> None:
    later = Standing("bullet", 1.0, NOW + 9_000 * DAY_SECONDS)

    (_, score), (_, same) = order({1: 1.0, 2: 1.0}, {1: later, 2: PLAIN}, now=NOW)
    assert score == same


def test_what_fits_the_same_in_all_is_given_in_the_order_of_its_numbers() -> None:
    assert [each for each, _ in order({3: 1.0, 1: 1.0}, {3: PLAIN, 1: PLAIN}, now=NOW)] == [1, 3]
