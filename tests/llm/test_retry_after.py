"""Retry-After in every form that servers send it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.llm.retry_after import MAX_RETRY_AFTER_SECONDS, retry_after

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"RETRY-AFTER": "0"}, 0.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:37 GMT"}, 60.0),
        ({"retry-after": "Sunday, 06-Nov-94 08:50:37 GMT"}, 60.0),
        ({"retry-after": "Sun Nov  6 08:50:37 1994"}, 60.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 06 Nov 1994 09:50:37 +0100"}, 60.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "nonsense", "retry-after": "9"}, 9.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "7, 9"}, 9.0),
        ({"retry-after": "7,7"}, 7.0),
        ({"retry-after-ms": "250, 500"}, 0.5),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:37 GMT, Sun, 06 Nov 1994 08:50:37 GMT"}, 60.0),
        ({"retry-after-ms": "inf", "retry-after": "9"}, 9.0),
        ({"retry-after-ms": "", "retry-after": "9"}, 9.0),
        ({"retry-after": "1e9"}, MAX_RETRY_AFTER_SECONDS),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_RETRY_AFTER_SECONDS),
    ],
)
def test_a_wait_is_read_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    [
        "", "   ", "soon", "nan", "inf", "-inf", "-5", "7, -5", "7, nan", ",", "1 minute", "9" * 5_000, "1e400",
        "Sun, 99 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 99999 23:59:59 GMT",
    ],
)  # fmt: skip
def test_what_names_no_wait_names_none(value: str) -> None:
    assert retry_after({"retry-after": value}, NOW) is None


def test_without_the_header_there_is_no_wait() -> None:
    assert retry_after({}, NOW) is None


@given(st.text(max_size=40), st.text(max_size=20))
def test_no_header_value_makes_an_endless_or_negative_wait(value: str, milliseconds: str) -> None:
    wait = retry_after({"retry-after": value, "retry-after-ms": milliseconds}, NOW)
    assert wait is None or 0 <= wait <= MAX_RETRY_AFTER_SECONDS
