"""Fuzzing of what stands between a session and a model: sanitising, redacting and fitting into the budget.

python -m tests.pipeline.fuzz --examples 20000
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.pipeline.evidence import gather
from memoryd.pipeline.sanitise import sanitise
from memoryd.redact import Redactor
from memoryd.sources.items import Item, ItemKind
from memoryd.text import MARKER_CLOSE, MARKER_OPEN

HOME = Path("/home/dev/.memoryd")
LONGEST = timedelta(seconds=20)
BUDGET_TOKENS, BYTES_PER_TOKEN = 1_000, 3
SECRET = "hidden-canary"
REDACTOR = Redactor()

# pieces that mean something to the sanitiser; texts are made of them, so that tags meet, nest and are cut
PIECES = [
    "<private>",
    "</private>",
    "<PRIVATE x='1'>",
    "<private/>",
    "<private",
    "</private",
    "&lt;private&gt;",
    "&lt;/private&gt;",
    "\\u003cprivate\\u003e",
    "```",
    MARKER_OPEN,
    MARKER_CLOSE,
    "&lt;memoryd_memory&gt;",
    "[human user] #1",
    "[... response items omitted ...]",
    "\x1b[31m",
    "\x1b]8;;",
    "data:image/png;base64," + "A" * 80,
    "A" * 1100,
    "\ud800",
    "\udc00",
    "\U0001f600",
    "\x00",
    "memoryd recall",
    "$MEMORYD_HOME/memories",
    "-----BEGIN RSA PRIVATE KEY-----",
    '{"password": "',
    "TOKEN=",
    '"',
    "\\",
    "\n",
    " ",
    "word",
]
TEXTS = st.one_of(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=25).map("".join),
    st.text(alphabet=st.characters(codec=None), max_size=60),
)
ITEMS = st.builds(
    Item,
    kind=st.sampled_from(ItemKind),
    text=TEXTS,
    ordinal=st.integers(0, 5),
    at=st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    cwd=st.one_of(
        st.none(), st.just("/home/dev/.memoryd/memories"), st.text(min_size=1, max_size=30)
    ),  # as readers give it: without halves of characters
    tool=st.one_of(st.none(), st.sampled_from(["exec_command", "mcp__memoryd__search"])),
    call_id=st.one_of(st.none(), st.sampled_from(["a", "b"])),
    exit_code=st.one_of(st.none(), st.integers(-(2**70), 2**70)),
    external=st.booleans(),
)


def check(items: Sequence[Item]) -> None:
    """Nothing breaks, nothing grows, nothing is made up, and what comes out can be written down and fits."""
    dropped: Counter[str] = Counter()
    kept = list(sanitise(items, private_tags=["private"], home=HOME, dropped=dropped))
    assert len(kept) <= len(items)
    assert sum(len(item.text) for item in kept) <= sum(len(item.text) for item in items) + 20 * len(items)
    assert all(number >= 0 for number in dropped.values())
    assert list(sanitise(kept, private_tags=["private"], home=HOME, dropped=Counter())) == kept
    evidence = gather(
        items,
        redactor=REDACTOR,
        private_tags=["private"],
        home=HOME,
        budget_tokens=BUDGET_TOKENS,
        bytes_per_token=BYTES_PER_TOKEN,
    )
    assert len(evidence.text.encode("utf-8")) <= BUDGET_TOKENS * BYTES_PER_TOKEN
    assert evidence.human_messages == sum(item.kind is ItemKind.HUMAN for item in kept)


def check_privacy(before: str, inside: str, after: str) -> None:
    """What stands behind an opening tag and before its closing one is in no evidence."""
    text = f"{before}<private>{SECRET}{inside}{SECRET}</private>{after}"
    for kind in ItemKind:
        evidence = gather(
            [Item(kind, text, 1), Item(kind, f"<private>{SECRET}", 2), Item(kind, "plain", 3)],
            redactor=REDACTOR,
            private_tags=["private"],
            home=HOME,
            budget_tokens=BUDGET_TOKENS * 10,
        )
        assert SECRET not in evidence.text


def fuzz(*, examples: int, repeatable: bool) -> None:
    """Run both properties on so many examples."""
    common = settings(
        max_examples=examples,
        derandomize=repeatable,
        deadline=LONGEST,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    common(given(st.lists(ITEMS, max_size=8))(check))()
    quiet = TEXTS.filter(lambda text: "private" not in text.lower())
    common(given(TEXTS, quiet, TEXTS)(check_privacy))()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=5_000)
    options = parser.parse_args()
    fuzz(examples=options.examples, repeatable=False)
    print(f"{options.examples} sessions sanitised")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
