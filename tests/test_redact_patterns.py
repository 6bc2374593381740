"""The user's own patterns: which are taken, which are refused, and what a match costs at most."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import ConfigError
from memoryd.redact import Redactor
from memoryd.redact_patterns import OVERLAP, WINDOW, matches, read_pattern

TAKEN = [
    r"ACME-\d+",
    r"ACME-[0-9A-F]{8}-[0-9A-F]{4}",
    r"(?i)acme[_-]?(?:key|secret)\s*[:=]\s*\S+",
    r"\bK-[A-Z]{2,40}\b",
    r"(?:[A-Z0-9]+-)+X",
    r"(?:\d{1,3}\.){3}\d{1,3}",
    r"(?:ab|cd)+",
    r"(?:a|ab)*c",
    r"(?:\d|[0-9a-f])*z",
    r"acme (?:key\s*|secret\s*)=\s*\w+",
    r"user=\w+;pin=\d+;",
    r"[\w.]+@corp\.example",
    r".*password.{0,4}",
    r"(?<=pin )\d{4,6}",
    r"(?>a+)b",
    r"a*+b",
    r"(a)?(?(1)b|c)",
    r"kunde-[0-9ÄÖÜ]+",
    r"-----BEGIN ACME-----[\s\S]+?-----END ACME-----",
]
REFUSED = [
    r"(a+)+$",
    r"(a*)*b",
    r"(\w+\s?)+!",
    r"(?:a|aa)+b",
    r"(?:ab|abab)*c",
    r"(?:x\d1|xy|x[0-9a-f]1)*z",
    r"(?:a?b?|b)*c",
    r"(.*)*x",
    r"([a-z]+)*\d",
    r"(?i)(?:A|aa)*b",
    r"(x+x+)+y",
    r".*a.*b.*c",
    r"\w+\d+\w+x",
    r"[^é]*ü[^é]*y",
    r"(\w{1,40}){1,40}x",
    r"(a+)\1+b",
    r"(?:(?:ab?)+c?)*d",
]


@pytest.mark.parametrize("pattern", TAKEN)
def test_ordinary_patterns_are_taken(pattern: str) -> None:
    assert read_pattern(pattern).pattern == pattern


@pytest.mark.parametrize("pattern", REFUSED)
def test_patterns_that_could_take_for_ever_are_refused_and_named(pattern: str) -> None:
    with pytest.raises(ConfigError, match="could take for ever") as caught:
        Redactor([pattern])
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize("pattern", TAKEN)
@pytest.mark.parametrize("piece", ["a", "A-", "1.", "aB3_", "acme_key= ", "-----BEGIN ACME-----", "K-A", "password "])
def test_what_is_taken_comes_back_from_hostile_text(pattern: str, piece: str) -> None:
    """Without the refusals one of these would not come back before the end of the universe."""
    text = piece * (60_000 // len(piece))
    assert len(Redactor([pattern]).clean(text)) > 0


def test_a_named_group_says_what_kind_of_secret_a_pattern_finds() -> None:
    redactor = Redactor([r"(?P<Acme_Key>ACME-\d+)", r"X-\d+"])
    redacted = redactor.redact("ACME-12 X-34")
    assert redacted.text == "[REDACTED_SECRET:acme_key] [REDACTED_SECRET:custom]"
    assert redacted.kinds == {"acme_key": 1, "custom": 1}
    assert redactor.redact(redacted.text).kinds == {}


def test_a_match_at_the_edge_of_a_window_goes_whole() -> None:
    secret = "ACME-" + "7" * (OVERLAP - 10)
    redactor = Redactor([r"ACME-\d+"])
    for before in range(WINDOW - 2 * OVERLAP, WINDOW + 10, 97):
        assert redactor.clean("x" * before + secret + " y") == "x" * before + "[REDACTED_SECRET:custom] y"


def test_context_before_a_match_is_seen_across_windows() -> None:
    redactor = Redactor([r"(?<=pin )\d{4}"])
    for before in range(WINDOW - OVERLAP - 12, WINDOW - OVERLAP + 3):
        assert "1234" not in redactor.clean("x" * before + "pin 1234" + "y" * WINDOW)


@given(
    st.text(alphabet="ab1-. ", max_size=60),
    st.sampled_from([re.compile(r"a\d+"), re.compile(r"b-"), re.compile(r"[ab]{2,4}")]),
)
def test_windows_find_what_the_whole_has(piece: str, pattern: re.Pattern[str]) -> None:
    text = piece * (1 + 9_000 // (len(piece) + 1))
    hidden = {at for start, end in matches(pattern, text) for at in range(start, end)}
    assert {at for match in pattern.finditer(text) for at in range(*match.span())} <= hidden


@given(st.text(alphabet="ab\\d[]()|*+?{}1,^$.é-", max_size=12))
def test_any_pattern_is_either_taken_or_refused_with_a_reason(pattern: str) -> None:
    with suppress(ConfigError):
        assert Redactor([pattern]).clean("ab1 " * 50)
