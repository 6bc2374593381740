"""What a run that gave no answer means, by what programs really say."""

import pytest

from memoryd.errors import (
    AuthRefused,
    ContextOverflow,
    MalformedReply,
    ModelError,
    Overloaded,
    RateLimited,
    RequestRefused,
    StructureUnsupported,
    UnknownModel,
    Unreachable,
)
from memoryd.llm.command.failures import Run, failure, seconds_until_again
from memoryd.llm.command.process import Ended
from memoryd.llm.command.said import Said
from memoryd.llm.endpoint import Endpoint

NOW = 1_790_000_000.0
MEANINGS: list[tuple[str, type[ModelError]]] = [
    ("Not logged in · Please run /login", AuthRefused),
    ("Invalid API key · Fix external API key", AuthRefused),
    ("OAuth token has expired. Please obtain a new token or refresh your existing token.", AuthRefused),
    ("unexpected status 401 Unauthorized: Missing bearer authentication in header", AuthRefused),
    (
        "Your access token could not be refreshed because your refresh token was already used.",
        AuthRefused,
    ),
    ("Please set an Auth method in your /home/dev/.gemini/settings.json", AuthRefused),
    ("Invalid auth method selected.", AuthRefused),
    ("You've hit your usage limit. Upgrade to Pro or try again in 3 days 4 hours 12 minutes.", RateLimited),
    ("Claude AI usage limit reached|1790003600", RateLimited),
    ("You’ve hit your limit · resets 3pm (UTC)", RateLimited),
    ("You have exhausted your capacity on this model. Your quota will reset after 2h30m.", RateLimited),
    ("Credit balance is too low", RateLimited),
    ("API Error: 429 rate_limit_error", RateLimited),
    ("Prompt is too long", ContextOverflow),
    ("Codex ran out of room in the model's context window. Start a new thread.", ContextOverflow),
    ("The model `m-9` does not exist or you do not have access to it.", UnknownModel),
    ("API Error: 529 overloaded_error", Overloaded),
    ("We're currently experiencing high demand, which may cause temporary errors.", Overloaded),
    ("stream disconnected before completion: failed to lookup address information", Unreachable),
    ("API Error: Unable to connect to API (ECONNREFUSED)", Unreachable),
    ("Invalid schema for response_format 'codex_output_schema'", StructureUnsupported),
    ("error: unknown option '--safe-mode'", RequestRefused),
    ("thread 'main' panicked", RequestRefused),
]


def a_run(*, said: Said | None = None, code: int | None = 1, stderr: bytes = b"", **ended: bool) -> Run:
    return Run(Endpoint("mine", "agent"), Ended(code, b"", stderr, **ended), said or Said(), 30.0, "agent login")


def judged(run: Run) -> ModelError | None:
    return failure(run, now=NOW, show=lambda text: text)


@pytest.mark.parametrize(("sentence", "kind"), MEANINGS)
def test_a_sentence_means_the_same_in_the_programs_own_words_and_on_stderr(
    sentence: str, kind: type[ModelError]
) -> None:
    for run in (a_run(said=Said(error=sentence)), a_run(stderr=sentence.encode())):
        error = judged(run)
        assert type(error) is kind
        assert sentence in error.message


def test_an_error_of_a_program_that_ended_with_zero_is_an_error() -> None:
    assert isinstance(judged(a_run(said=Said("half", error="Not logged in"), code=0)), AuthRefused)


def test_the_remedy_of_a_refused_login_is_to_log_in() -> None:
    error = judged(a_run(stderr=b"Not logged in"))
    assert error is not None
    assert error.remedy == "log in: agent login"


def test_an_answer_is_an_answer_whatever_words_stand_in_it() -> None:
    assert judged(a_run(said=Said("rate limit, 401, /login"), code=0)) is None
    assert judged(a_run(said=Said("an answer", is_complete=True), code=3, stderr=b"boom")) is None


def test_a_turn_that_came_to_a_good_end_without_words_is_no_answer() -> None:
    assert type(judged(a_run(said=Said(" ", is_complete=True), code=0))) is MalformedReply


def test_time_out_and_flood_are_told_apart() -> None:
    assert type(judged(a_run(code=None, timed_out=True))) is Unreachable
    assert type(judged(a_run(code=None, overflowed=True))) is MalformedReply


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("try again in 3 days 4 hours 12 minutes.", 3 * 86_400 + 4 * 3_600 + 12 * 60),
        ("your quota will reset after 2h30m5s.", 2 * 3_600 + 30 * 60 + 5),
        ("try again in about 1 hour, 5 minutes and 3 seconds", 3_903),
        ("usage limit reached|1790003600", 3_600.0),
        ("usage limit reached|1700000000", 0.0),
        ("resets 3pm (utc)", None),
        ("try again later", None),
    ],
)
def test_when_a_limit_ends_is_read_from_its_sentence(words: str, seconds: float | None) -> None:
    assert seconds_until_again(words, NOW) == seconds
