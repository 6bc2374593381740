import pytest

from memoryd.errors import (
    AuthRefused,
    BudgetSpent,
    ContextOverflow,
    DiskFull,
    GitMissing,
    MalformedReply,
    MemorydError,
    ModelUnavailable,
    Overloaded,
    RateLimited,
    RefusedReply,
    RequestRefused,
    ResultRejected,
    SessionVanished,
    TruncatedReply,
    UnknownModel,
    Unreachable,
)
from memoryd.pipeline.outcomes import Deferred, Failed, outcome_of_error

NOW = 1_700_000_000.0
BASE, CAP = 60.0, 21_600.0


def outcome(error: MemorydError) -> Deferred | Failed:
    return outcome_of_error(error, now=NOW, retry_base=BASE, retry_cap=CAP)


@pytest.mark.parametrize(
    ("error", "reason", "seconds"),
    [
        (RateLimited("full"), "rate_limited", 60),
        (RateLimited("full", retry_after=900), "rate_limited", 900),
        (RateLimited("full", retry_after=7), "rate_limited", 60),
        (RateLimited("full", retry_after=10**9), "rate_limited", CAP),
        (Overloaded("busy"), "provider_overloaded", 60),
        (Unreachable("gone"), "provider_unreachable", 60),
        (AuthRefused("key"), "key_refused", 600),
        (UnknownModel("model"), "model_unknown", 600),
        (ModelUnavailable("odd"), "provider_unavailable", 60),
        (DiskFull("full"), "disk_full", 60),
        (GitMissing("no git"), "git_missing", 60),
        (BudgetSpent("cap", retry_at=NOW + 5), "budget", 5),
        (BudgetSpent("cap"), "budget", CAP),
    ],
)
def test_what_is_the_worlds_fault_waits_with_a_reason_and_costs_no_attempt(
    error: MemorydError, reason: str, seconds: float
) -> None:
    found = outcome(error)
    assert isinstance(found, Deferred)
    assert (found.reason, found.until) == (reason, NOW + seconds)


@pytest.mark.parametrize(
    "error",
    [
        MalformedReply("x"),
        TruncatedReply("x"),
        RefusedReply("x"),
        ContextOverflow("x"),
        RequestRefused("x"),
        SessionVanished("x"),
    ],
)
def test_what_a_retry_of_the_same_input_cannot_excuse_costs_an_attempt(error: MemorydError) -> None:
    assert outcome(error) == Failed(type(error).__name__, "x")


def test_a_rejection_keeps_every_complaint() -> None:
    assert outcome(ResultRejected("no", complaints=("a", "b"))) == Failed("ResultRejected", "no; a; b")
