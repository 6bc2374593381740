"""Deciding what a refusal means. Pure: a status, headers and a body in, one error of the tree out.

The order matters: a context overflow may arrive with any of 400, 413, 422, 429 and 500, and a refused parameter as a
404, so the body is read before the status speaks.
"""

import re
from collections.abc import Mapping

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
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.error_body import Said, read_error, said_in
from memoryd.llm.fields import object_at, objects_at
from memoryd.llm.question import JsonObject
from memoryd.llm.retry_after import retry_after
from memoryd.llm.visible import Show

OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|string_above_max_length|maximum context length|context window"
    r"|context length|context size|context limit|(?:prompt|input|request) is too (?:long|large)"
    r"|too many (?:input )?tokens"
    r"|exceeds? (?:[\w']+ ){0,4}(?:maximum|max|limit).{0,40}tokens|reduce the length|^.{0,60}request too large",
    re.DOTALL,
)
STRUCTURE = re.compile(
    r"response_format|text\.format|json[_ ]schema|json_object|structured.?outputs?|guided_json|\bgrammar\b"
    r"|output_config\.format|output_format|output.config(?!\.effort)"
)
# A 500 is a step down only where it names the parameter literally: llama-cpp-python answers a json_schema so.
STRUCTURE_IN_500 = re.compile(r"response_format|json_schema|text\.format")
EFFORT = re.compile(r"reasoning|encrypted content|\beffort\b|\bthinking\b")
OUTPUT_LIMIT = re.compile(r"max_(?:completion_|output_)?tokens|maximum (?:allowed )?number of output tokens")
TOO_LARGE = re.compile(r"too (?:large|high|big)|at most|less than|exceed|maximum|greater than|[<>]")
NO_CREDIT = re.compile(
    r"credit balance is too low|billing_error|insufficient (?:credits?|quota|funds|balance)|insufficient_quota"
    r"|out of credits|spend(?:ing)? limit"
)
NO_MODEL = re.compile(r"model_not_found|(?:unknown|invalid) model|model\b.{0,80}(?:does not exist|not found|not exist)")
NO_KEY = re.compile(r"invalid_api_key|api_key_invalid|incorrect api key|invalid api key|api key not valid")

LIMITED_STATUSES = frozenset({402, 429})
BUSY_STATUSES = frozenset({408, 409, 425})
READ_STATUSES = frozenset({400, 404, 405, 413, 415, 422, 500, 501})

# Words of providers for what their status says, for errors that arrive inside a 200.
STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "usage_limit_reached": 429,
    "server_error": 500,
    "overloaded_error": 529,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "billing_error": 402,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "timeout_error": 504,
    "api_error": 500,
}

QUOTA = re.compile(
    r"hit your (?:\w+ )?(?:usage |rate )?limit|(?:usage|rate|request|token) limit (?:has been |was |is )?"
    r"(?:reached|exceeded|hit)|(?:exceeded|reached|exhausted) (?:your|the) (?:\w+ ){0,3}(?:limit|quota)"
    r"|quota (?:has been |was |is )?(?:exceeded|exhausted|reached)|(?:out of|insufficient) (?:credits|quota)"
    r"|too many requests"
)
AGAIN_IN = re.compile(r"\bin (?:about |approximately )?(\d{1,6}(?:\.\d{1,3})?) ?(s|sec|m|min|h|hour|d|day)")
SECONDS_OF = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
MAX_QUOTA_CHARACTERS = 400


def classify_http(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body_text: str, *, now: float, show: Show
) -> ModelError:
    """Return the error that a status other than 2xx stands for; its text holds nothing that `show` did not pass."""
    return _classify(endpoint, status, headers, read_error(body_text), now=now, show=show)


def error_in_body(
    endpoint: Endpoint, headers: Mapping[str, str], body: JsonObject, *, now: float, show: Show
) -> ModelError | None:
    """Return the error that a 200 carries inside, None when it carries none (`error` is null in most answers)."""
    first = next(iter(objects_at(body, "choices")), None)
    carrier = first if first is not None and object_at(first, "error") else body
    if not carrier.get("error"):
        return None
    said = said_in(carrier)
    return _classify(endpoint, _status_inside(said, carrier), headers, said, now=now, show=show)


def quota_sentence(endpoint: Endpoint, text: str) -> RateLimited | None:
    """Return RateLimited when a whole answer is a usage-limit sentence, as some providers send with status 200.

    Only a short text that does not begin like JSON can be one: a memory about rate limits is no rate limit. The
    sentence itself is not shown: it could as well be a model's own words.
    """
    sentence = text.strip()
    if not sentence or len(sentence) > MAX_QUOTA_CHARACTERS or sentence[0] in "{[":
        return None
    if QUOTA.search(sentence.lower().replace("’", "'")) is None:
        return None
    message = f"{endpoint.provider} answered with a usage-limit sentence instead of an answer"
    return RateLimited(message, status=200, retry_after=_wait_in(sentence), remedy=_LIMIT_REMEDY)


_LIMIT_REMEDY = "it is asked again later by itself; check plan and usage at the provider if this stays"


def _classify(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], said: Said, *, now: float, show: Show
) -> ModelError:
    message = _sentence(endpoint, status, said, show)
    if 300 <= status < 400:
        return _redirect(endpoint, status, headers, message, show)
    wait = retry_after(headers, now)
    if status in {400, 403} and NO_CREDIT.search(said.names):
        return RateLimited(message, status=status, retry_after=wait, remedy=_LIMIT_REMEDY)
    if status in {401, 403} or NO_KEY.search(said.names):
        return AuthRefused(message, status=status, remedy=endpoint.key_remedy)
    read = _by_words(endpoint, status, said, message)
    if read is not None:
        return read
    if status in LIMITED_STATUSES:
        return RateLimited(message, status=status, retry_after=wait, remedy=_LIMIT_REMEDY)
    if status in BUSY_STATUSES or status >= 500:
        return Overloaded(message, status=status, retry_after=wait)
    if status == 404:
        return _no_model(endpoint, message, status)
    return RequestRefused(message, status=status, remedy=f"check {endpoint.section} and what its server supports")


def _by_words(endpoint: Endpoint, status: int, said: Said, message: str) -> ModelError | None:
    """Return the error that the body names, whatever the status, None when only the status speaks."""
    names = said.names
    if status == 413 or (status in READ_STATUSES | {429} and OVERFLOW.search(said.message.lower() or names)):
        return ContextOverflow(message, status=status)
    if "context_length_exceeded" in names or "exceed_context_size" in names:
        return ContextOverflow(message, status=status)
    if status not in READ_STATUSES:
        return None
    if (STRUCTURE if status < 500 else STRUCTURE_IN_500).search(names):
        return StructureUnsupported(message, status=status)
    return _by_parameter(endpoint, status, names, message) if status < 500 else None


def _by_parameter(endpoint: Endpoint, status: int, names: str, message: str) -> ModelError | None:
    """Return the error of a 4xx that names the model, the limit of the answer or the effort."""
    if NO_MODEL.search(names):
        return _no_model(endpoint, message, status)
    if OUTPUT_LIMIT.search(names):
        kind = OutputLimitTooLarge if TOO_LARGE.search(names) else OutputLimitUnsupported
        remedy = f"set max_output_tokens in {endpoint.section} to what the model can say"
        return kind(message, status=status, remedy=remedy)
    if EFFORT.search(names):
        remedy = f"set effort to what the model of {endpoint.section} knows"
        return EffortUnsupported(message, status=status, remedy=remedy)
    return None


def _sentence(endpoint: Endpoint, status: int, said: Said, show: Show) -> str:
    words = show(said.message or said.code)
    return f"{endpoint.provider} answered {status}: {words}" if words else f"{endpoint.provider} answered {status}"


def _no_model(endpoint: Endpoint, message: str, status: int) -> UnknownModel:
    remedy = f"check the model's name, and base_url in {endpoint.section} (now {endpoint.base_url})"
    return UnknownModel(message, status=status, remedy=remedy)


def _redirect(endpoint: Endpoint, status: int, headers: Mapping[str, str], message: str, show: Show) -> RequestRefused:
    """A redirect is never followed: it would carry the sessions' text to a place that nobody configured."""
    there = show(next((value for key, value in headers.items() if key.lower() == "location"), "").split("?")[0])
    elsewhere = f" and points to {there}" if there else ""
    remedy = f"redirects are not followed: correct base_url in {endpoint.section}"
    return RequestRefused(f"{message}{elsewhere}", status=status, remedy=remedy)


def _status_inside(said: Said, carrier: JsonObject) -> int:
    code = object_at(carrier, "error").get("code")
    if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
        return code
    words = said.code.split()
    known = next((STATUS_OF_CODE[word] for word in words if word in STATUS_OF_CODE), None)
    if known is not None:
        return known
    return 429 if QUOTA.search(said.message.lower()) else 400


def _wait_in(sentence: str) -> float | None:
    found = AGAIN_IN.search(sentence.lower())
    return float(found[1]) * SECONDS_OF[found[2][0]] if found else None
