"""Whatever was said in a session, it is sanitised without an error, without growing, and nothing private comes out.

More examples than the suite runs: `python -m tests.pipeline.fuzz --examples 20000`.
"""

from collections import Counter

import pytest

from memoryd.pipeline.sanitise import sanitise
from memoryd.sources.items import Item, ItemKind
from tests.pipeline.fuzz import HOME, fuzz


def test_any_words_are_sanitised_in_bounded_space_and_nothing_private_comes_out() -> None:
    fuzz(examples=100, repeatable=True)


@pytest.mark.parametrize(
    "text",
    [
        "<pri\x1b[0mvate>hush</private>",
        "<private\x1b[31m>hush</private>",
        "\x1b]8;;<private>\x07hush</private>",
        "\x1b]8;;<private>hush\x07hush</private>",
        "<private\x1b[31m",
    ],
)
def test_what_a_terminal_does_not_show_hides_no_private_tag(text: str) -> None:
    dropped: Counter[str] = Counter()
    item = Item(ItemKind.HUMAN, f"before {text}", 1)
    (kept,) = sanitise([item], private_tags=["private"], home=HOME, dropped=dropped)
    assert "hush" not in kept.text
    assert kept.text.startswith("before")
    assert dropped["private"] == 1
