"""What a refusal means, for the bodies that real servers send."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import (
    AuthRefused,
    ContextOverflow,
    EffortUnsupported,
    ModelError,
    OutputLimitTooLarge,
    OutputLimitUnsupported,
    Overloaded,
    RateLimited,
    RequestRefused,
    StructureUnsupported,
    UnknownModel,
)
from memoryd.llm.classify import classify_http, error_in_body, quota_sentence
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.error_body import Said, read_error

NOW = 1_700_000_000.0
ENDPOINT = Endpoint("main", "http://127.0.0.1:9/v1", "the environment variable MY_KEY")


def classified(status: int, body: Any = "", headers: dict[str, str] | None = None) -> ModelError:
    text = body if isinstance(body, str) else json.dumps(body)
    return classify_http(ENDPOINT, status, headers or {}, text, now=NOW, show=lambda words: words)


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


def claude(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, error("Incorrect API key provided", code="invalid_api_key"), AuthRefused),
        (403, "<html>forbidden</html>", AuthRefused),
        (400, [error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT")], AuthRefused),
        (402, error("Insufficient credits", code=402), RateLimited),
        (429, error("Rate limit reached for m", code="rate_limit_exceeded"), RateLimited),
        (429, "", RateLimited),
        (404, error("The model `m` does not exist", code="model_not_found"), UnknownModel),
        (404, "404 page not found", UnknownModel),
        (404, {"error": "model 'm' not found"}, UnknownModel),
        (400, error("invalid model: m"), UnknownModel),
        (408, "", Overloaded),
        (409, "", Overloaded),
        (425, "", Overloaded),
        (500, {"error": "boom"}, Overloaded),
        (502, "<html>bad gateway</html>", Overloaded),
        (503, error("Loading model"), Overloaded),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Overloaded),
        (400, error("too long", code="context_length_exceeded"), ContextOverflow),
        (400, error("the request exceeds", type="exceed_context_size_error", n_ctx=4096), ContextOverflow),
        (400, error("This model's maximum context length is 8192 tokens. However, you ..."), ContextOverflow),
        (400, error("Input tokens exceed the configured limit of 272000 tokens."), ContextOverflow),
        (422, {"detail": "prompt is too long: 210000 tokens > 200000 maximum"}, ContextOverflow),
        (500, {"error": "input exceeds the context window"}, ContextOverflow),
        (413, "", ContextOverflow),
        (429, error("Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000."), ContextOverflow),
        (400, error("Invalid parameter", param="text.format"), StructureUnsupported),
        (400, error("'response_format' of type 'json_schema' is not supported with this model"), StructureUnsupported),
        (404, error("No endpoints found that support: response_format", code=404), StructureUnsupported),
        (
            422,
            {"detail": [{"loc": ["body", "response_format", "type"], "msg": "bad", "input": "x"}]},
            StructureUnsupported,
        ),
        (400, error("Unable to generate parser: JSON schema error at #: cannot resolve $ref"), StructureUnsupported),
        (500, error("[{'loc': ('body', 'response_format', 'type')}]"), StructureUnsupported),
        (400, error("Unsupported parameter: 'reasoning.effort'", param="reasoning.effort"), EffortUnsupported),
        (400, error("Encrypted content is not supported with this model."), EffortUnsupported),
        (400, error("Unsupported parameter: 'max_tokens' is not supported with this model."), OutputLimitUnsupported),
        (422, {"detail": [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs"}]}, OutputLimitUnsupported),
        (400, error("Unsupported parameter: max_output_tokens"), OutputLimitUnsupported),
        (400, error("max_tokens is too large: 32768. This model supports at most 16384."), OutputLimitTooLarge),
        (
            400,
            claude("max_tokens: 32768 > 8192, which is the maximum allowed number of output tokens"),
            OutputLimitTooLarge,
        ),
        (400, claude("input length and `max_tokens` exceed context limit: 190000 + 32768 > 200000"), ContextOverflow),
        (400, claude("prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow),
        (413, claude("Request exceeds the maximum size", "request_too_large"), ContextOverflow),
        (400, claude("This model does not support the effort parameter."), EffortUnsupported),
        (400, claude("output_config.effort: Input should be 'low', 'medium' or 'high'"), EffortUnsupported),
        (400, claude("output_config.format: Extra inputs are not permitted"), StructureUnsupported),
        (400, claude("output_config: Extra inputs are not permitted"), StructureUnsupported),
        (400, claude("Your credit balance is too low to access the Anthropic API."), RateLimited),
        (402, claude("no credit", "billing_error"), RateLimited),
        (403, error("You have insufficient_quota", code="insufficient_quota"), RateLimited),
        (401, claude("invalid x-api-key", "authentication_error"), AuthRefused),
        (403, claude("not allowed", "permission_error"), AuthRefused),
        (404, claude("model: claude-none", "not_found_error"), UnknownModel),
        (429, claude("This request would exceed your limit", "rate_limit_error"), RateLimited),
        (500, claude("Internal server error", "api_error"), Overloaded),
        (504, claude("timed out", "timeout_error"), Overloaded),
        (529, claude("Overloaded", "overloaded_error"), Overloaded),
        (400, error("bad temperature", param="temperature"), RequestRefused),
        (405, "", RequestRefused),
        (451, "", RequestRefused),
    ],
)
def test_a_refusal_becomes_the_error_that_it_means(status: int, body: Any, kind: type[ModelError]) -> None:
    found = classified(status, body)
    assert type(found) is kind
    assert found.status == status
    assert found.message.startswith(f"main answered {status}")


def test_a_500_that_only_speaks_of_structure_is_an_overload() -> None:
    assert type(classified(500, error("structured output engine crashed"))) is Overloaded


def test_a_refused_key_is_named_by_where_it_comes_from() -> None:
    found = classified(401, error("Incorrect API key"))
    assert str(found) == "main answered 401: Incorrect API key (its key comes from the environment variable MY_KEY)"


def test_a_missing_key_is_named_by_where_it_could_be_set() -> None:
    keyless = classify_http(Endpoint("main", "http://h/v1"), 401, {}, "", now=NOW, show=str)
    assert keyless.remedy == "no key is configured: set api_key_env or api_key_file in [providers.main]"


def test_an_unknown_model_points_to_the_address_too() -> None:
    assert "http://127.0.0.1:9/v1" in classified(404).remedy


@pytest.mark.parametrize("status", [429, 503, 408])
def test_the_wait_that_a_server_asks_for_is_kept(status: int) -> None:
    found = classified(status, "", {"Retry-After": "7"})
    assert isinstance(found, RateLimited | Overloaded)
    assert found.retry_after == 7


def test_a_redirect_is_refused_and_points_to_base_url() -> None:
    found = classified(307, "", {"Location": "https://elsewhere.example/v1/responses?key=1"})
    assert type(found) is RequestRefused
    assert found.message == "main answered 307 and points to https://elsewhere.example/v1/responses"
    assert found.remedy == "redirects are not followed: correct base_url in [providers.main]"


def test_a_redirect_to_nowhere_is_refused_too() -> None:
    assert classified(302).message == "main answered 302"


def test_only_words_that_may_be_shown_are_shown() -> None:
    found = classify_http(ENDPOINT, 400, {}, json.dumps(error("secret")), now=NOW, show=lambda _words: "shown")
    assert found.message == "main answered 400: shown"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error": "plain words"}', Said(message="plain words")),
        ('{"error": {"message": "m", "type": "t", "code": 7, "param": "p"}}', Said("7 t", "p", "m")),
        ('{"message": "m", "code": true}', Said(message="m")),
        ('{"detail": [{"loc": ["body", "x"], "msg": "bad", "input": "private"}]}', Said(message="body.x: bad")),
        ('{"detail": [{"msg": "bad"}]}', Said(message=": bad")),
        ("plain words\n", Said(message="plain words")),
        ("<html>", Said()),
        ("[]", Said(message="[]")),
        ("", Said()),
    ],
)
def test_an_error_body_of_any_shape_is_read(body: str, said: Said) -> None:
    assert read_error(body) == said


@given(st.integers(300, 599), st.text(max_size=200))
def test_any_status_with_any_body_becomes_one_error(status: int, body: str) -> None:
    assert isinstance(classified(status, body), ModelError)


KEYS = st.sampled_from(["error", "message", "code", "detail", "param"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(JSON)
def test_any_json_body_becomes_one_error(body: Any) -> None:
    assert isinstance(classified(400, json.dumps(body)), ModelError)


def inside(body: dict[str, Any]) -> ModelError | None:
    return error_in_body(ENDPOINT, {}, body, now=NOW, show=lambda words: words)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, RateLimited),
        ({"error": {"code": 502, "message": "upstream"}}, Overloaded),
        ({"status": "failed", "error": {"code": "server_error", "message": "oops"}}, Overloaded),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "oops"}}, RateLimited),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "oops"}}, RequestRefused),
        ({"error": {"code": "context_length_exceeded", "message": "oops"}}, ContextOverflow),
        ({"error": {"message": "You exceeded your current quota"}}, RateLimited),
        ({"error": "something broke"}, RequestRefused),
        ({"error": "Too many requests"}, RateLimited),
        (claude("Overloaded", "overloaded_error"), Overloaded),
        (claude("slow down", "rate_limit_error"), RateLimited),
        (claude("no", "authentication_error"), AuthRefused),
        (claude("no such model", "not_found_error"), UnknownModel),
        (claude("too large", "request_too_large"), ContextOverflow),
        (claude("oops", "api_error"), Overloaded),
        (claude("pay", "billing_error"), RateLimited),
        ({"choices": [{"error": {"code": 503, "message": "provider down"}}]}, Overloaded),
    ],
)
def test_an_error_inside_a_200_is_found(body: dict[str, Any], kind: type[ModelError]) -> None:
    assert type(inside(body)) is kind


@pytest.mark.parametrize("body", [{}, {"error": None}, {"choices": [{"message": {}}]}, {"choices": [], "error": {}}])
def test_a_200_without_an_error_carries_none(body: dict[str, Any]) -> None:
    assert inside(body) is None


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("You've hit your usage limit. Try again in 3 hours.", 10_800.0),
        ("You’ve hit your usage limit.", None),
        ("You've hit your limit · resets 3pm", None),
        ("Rate limit reached, please retry in 2m", 120.0),
        ("Quota exceeded.", None),
        ("You exceeded your current quota, please check your plan", None),
        ("Usage limit has been reached. Try again in 20 seconds", 20.0),
        ("Error: too many requests", None),
        ("You are out of credits", None),
    ],
)
def test_a_usage_limit_sentence_in_a_200_is_a_rate_limit(text: str, wait: float | None) -> None:
    found = quota_sentence(ENDPOINT, text)
    assert found is not None
    assert (found.retry_after, found.status) == (wait, 200)
    assert text not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The session was about rate limiting in the gateway.",
        '{"raw_memory": "the API said: rate limit reached", "rollout_summary": "", "rollout_slug": null}',
        '[{"raw_memory": "quota exceeded"}]',
        "Rate limit reached. " * 40,
    ],
)
def test_an_answer_about_limits_is_no_rate_limit(text: str) -> None:
    assert quota_sentence(ENDPOINT, text) is None
