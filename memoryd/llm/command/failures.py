"""What a run that gave no answer means. Pure: how it ended and what it said in, one error of the tree out.

Programs tell in prose; only a run that failed is read like this, never an answer. The words are those of the four
programs and of the providers behind them.
"""

import re
from dataclasses import dataclass
from typing import Final

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
from memoryd.llm.command.keeper import CANNOT_START
from memoryd.llm.command.process import KEPT_ERROR_BYTES, MAX_OUTPUT_BYTES, Ended
from memoryd.llm.command.said import Said
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.visible import Show

AUTH: Final = re.compile(
    r"not logged in|/login\b|log ?in (?:again|required|first)|login required|(?:codex|auth) login|sign in again"
    r"|invalid (?:api|x-api)[- _]key|invalid_api_key|incorrect api key|api key (?:not valid|is invalid|not found)"
    r"|auth(?:entication)?[_ ](?:method|error|failed)|unauthori[sz]ed|\b401\b|oauth token|refresh token"
    r"|token (?:has )?expired|credentials? (?:are|is|were|not|have)"
)
QUOTA: Final = re.compile(
    r"(?:usage|rate|session|weekly|request|token|spend\w*) limit|hit your limit|limit reached|quota|exhausted your"
    r"|out of credits|credit balance|too many requests|\b429\b|resource[_ ]exhausted"
)
OVERFLOW: Final = re.compile(
    r"(?:prompt|input|request|context) (?:is )?too (?:long|large)|context[_ ](?:window|length)"
    r"|exceeds? (?:the )?maximum (?:number|length)|ran out of room"
)
STRUCTURE: Final = re.compile(r"json_schema|text\.format|output.schema|response_format")
NO_MODEL: Final = re.compile(
    r"model_not_found|(?:unknown|invalid|unsupported) model"
    r"|model\b.{0,80}(?:not exist|not found|not supported|may not exist)"
)
BUSY: Final = re.compile(
    r"overloaded|high demand|\b5(?:00|02|03|29)\b|internal server error|at capacity|temporarily unavailable"
)
NETWORK: Final = re.compile(
    r"lookup|enotfound|econn|eai_again|getaddrinfo|stream (?:disconnected|error)|fetch failed|network|connect|socket"
    r"|timed? ?out|certificate"
)
UNKNOWN_OPTION: Final = re.compile(r"unknown (?:option|argument)|unexpected argument|unrecognized (?:option|argument)")

AGAIN: Final = re.compile(r"\b(?:in|after)(?: about)? ((?:\d{1,6} ?[a-z]{1,7}[ ,]{0,2}(?:and )?){1,4})")
PART: Final = re.compile(r"(\d{1,6}) ?(d|h|m(?!o)|s)")
EPOCH: Final = re.compile(r"limit[^|]{0,40}\|(\d{10})\b")
SECONDS_OF: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it is judged: who was asked, how it went, in which bounds, and how one logs in there."""

    endpoint: Endpoint
    ended: Ended
    said: Said
    seconds: float
    login: str


def failure(run: Run, *, now: float, show: Show) -> ModelError | None:
    """Return the error that a run stands for, None when it gave an answer.

    A program that says itself that its turn came to a good end is believed, whatever its exit status.
    """
    ended, who = run.ended, run.endpoint.provider
    if ended.overflowed:
        remedy = f"try the command of {run.endpoint.section} by hand"
        return MalformedReply(f"{who} printed more than {MAX_OUTPUT_BYTES} bytes and was stopped", remedy=remedy)
    if ended.timed_out:
        said = show(run.said.error)
        return Unreachable(
            f"{who} did not end within {run.seconds:g} seconds and was stopped" + (f": {said}" if said else ""),
            remedy=f"raise timeout in {run.endpoint.section} if it needs longer",
        )
    if run.said.is_complete or (ended.code == 0 and not run.said.error):
        return None if run.said.text.strip() else _silent(run, show)
    return _by_words(run, _words(run), now, show)


def seconds_until_again(words: str, now: float) -> float | None:
    """Return how long to wait as a limit's sentence tells it: a duration, or an epoch behind a bar; None without."""
    epoch = EPOCH.search(words)
    if epoch:
        return max(0.0, float(epoch[1]) - now)
    again = AGAIN.search(words)
    return sum(float(count) * SECONDS_OF[unit] for count, unit in PART.findall(again[1])) if again else None


def _silent(run: Run, show: Show) -> MalformedReply:
    said = show(_tail(run.ended))
    return MalformedReply(
        f"{run.endpoint.provider} ended without an answer" + (f": {said}" if said else ""),
        remedy=f"try the command of {run.endpoint.section} by hand",
    )


def _by_words(run: Run, words: str, now: float, show: Show) -> ModelError:
    who, section, low = run.endpoint.provider, run.endpoint.section, words.lower().replace("’", "'")
    shown = show(words)
    message = f"{who} ended with status {run.ended.code}" + (f": {shown}" if shown else " and said nothing")
    if run.ended.code == CANNOT_START and "memoryd: cannot start" in low:
        return Unreachable(message, remedy=f"check command in {section}")
    if QUOTA.search(low):
        remedy = "it is asked again later by itself; check your plan if this stays"
        return RateLimited(message, status=429, retry_after=seconds_until_again(low, now), remedy=remedy)
    if AUTH.search(low):
        remedy = f"log in: {run.login}" if run.login else f"check the login of the command in {section}"
        return AuthRefused(message, status=401, remedy=remedy)
    return _by_other_words(run, low, message)


def _by_other_words(run: Run, low: str, message: str) -> ModelError:
    section = run.endpoint.section
    if OVERFLOW.search(low):
        return ContextOverflow(message)
    if STRUCTURE.search(low):
        return StructureUnsupported(message)
    if NO_MODEL.search(low):
        return UnknownModel(message, status=404, remedy=f"check the model's name for {section}")
    if UNKNOWN_OPTION.search(low):
        return RequestRefused(message, status=400, remedy=f"update the program in {section}: it lacks an option")
    if BUSY.search(low):
        return Overloaded(message)
    if NETWORK.search(low):
        return Unreachable(message, remedy="check the network; it is asked again later by itself")
    return RequestRefused(message, remedy=f"try the command of {section} by hand")


def _words(run: Run) -> str:
    """Prefer what the program says of itself; else the end of its stderr, and a short output (an answer is longer)."""
    if run.said.error:
        return run.said.error
    output = run.said.text if len(run.said.text) <= 400 else ""
    return f"{output}\n{_tail(run.ended)}".strip()


def _tail(ended: Ended) -> str:
    return ended.stderr[-KEPT_ERROR_BYTES:].decode("utf-8", "replace").strip()
