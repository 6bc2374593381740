"""What every way in which a model server can answer means for a stage-1 job: one literal table, shown in README.md.

Recognising is done where the words are (classify.py, http_reply.py, the codecs, reply.py), the move where it is made
(outcomes.py, gate.py, breaker.py, the ledger). Here stands what they agree on, and each row is tested against what the
ledger holds afterwards.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memoryd.errors import (
    AuthRefused,
    ContextOverflow,
    MalformedReply,
    ModelError,
    Overloaded,
    RateLimited,
    RefusedReply,
    RequestRefused,
    TruncatedReply,
    UnknownModel,
    Unreachable,
)


class Memory(StrEnum):
    """What becomes of the memory of the session."""

    WRITTEN = "written"
    DELETED = "deleted"
    UNTOUCHED = "untouched"


class Breaker(StrEnum):
    """What further requests to the provider have to wait for."""

    NONE = "go on"
    PAUSE = "the provider pauses"
    PAUSE_IF_ASKED = "the provider pauses if it asks for it"
    AT_ONCE = "opens; one probe a minute"
    AT_SECOND = "opens at the second in a row; one probe a minute"


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of reply.

    `error` is the class that it is raised as, None for an answer. `most_requests` are those of one attempt, without
    the ones that a server refuses for a parameter. `spends_attempt` None: the job is done. `reason` is why the job
    waits, where it costs no attempt.
    """

    reply: str
    recognised: str
    error: type[ModelError] | None
    most_requests: int
    spends_attempt: bool | None
    reason: str
    wait: str
    breaker: Breaker
    memory: Memory


BACKOFF: Final = "retry_base, doubled each time, up to retry_cap"
AS_ASKED: Final = "what the server asks for, retry_base at least, up to retry_cap"
FOR_A_PERSON: Final = "10 minutes"

REPLY_TABLE: Final = (
    Row("answer", "a JSON object of the schema; also fenced, among words, after thoughts, in a string, with more keys",
        None, 1, None, "", "", Breaker.NONE, Memory.WRITTEN),
    Row("nothing to remember", "the same, alone, with exactly the keys of the schema and both texts empty",
        None, 1, None, "", "", Breaker.NONE, Memory.DELETED),
    Row("usage-limit text", "a short sentence about a limit instead of an answer, in a 200 or in a stream",
        RateLimited, 1, False, "rate_limited", AS_ASKED, Breaker.PAUSE, Memory.UNTOUCHED),
    Row("rate limit", "402, 429, or an error that says so in a 200 or in a stream; no credit left",
        RateLimited, 1, False, "rate_limited", AS_ASKED, Breaker.PAUSE, Memory.UNTOUCHED),
    Row("refusal", "a reason to stop, or a part of the reply, that says that the model declined",
        RefusedReply, 1, True, "", BACKOFF, Breaker.NONE, Memory.UNTOUCHED),
    Row("malformed",
        "a text that is not the schema, or a placeholder, a loop or the instructions in it, also after one repair"
        " request; a body that is no JSON at all",
        MalformedReply, 2, True, "", BACKOFF, Breaker.NONE, Memory.UNTOUCHED),
    Row("truncated", "cut at the limit of the answer that was sent",
        TruncatedReply, 1, True, "", BACKOFF, Breaker.NONE, Memory.UNTOUCHED),
    Row("overflow", "413, a refusal that names the length of the input, or an answer cut early; asked again with half",
        ContextOverflow, 4, True, "", BACKOFF, Breaker.NONE, Memory.UNTOUCHED),
    Row("overloaded", "408, 409, 425, 5xx, or an error that says so in a 200 or in a stream",
        Overloaded, 1, False, "provider_overloaded", AS_ASKED, Breaker.PAUSE_IF_ASKED, Memory.UNTOUCHED),
    Row("key refused", "401, 403, or an error that names the key",
        AuthRefused, 1, False, "key_refused", FOR_A_PERSON, Breaker.AT_ONCE, Memory.UNTOUCHED),
    Row("unknown model", "404, or an error that names the model",
        UnknownModel, 1, False, "model_unknown", FOR_A_PERSON, Breaker.AT_ONCE, Memory.UNTOUCHED),
    Row("no connection", "no address, no answer in time, a transfer or a stream that ended before its end",
        Unreachable, 1, False, "provider_unreachable", AS_ASKED, Breaker.AT_SECOND, Memory.UNTOUCHED),
    Row("refused request", "any other 3xx or 4xx; one that names a parameter is asked again without it first",
        RequestRefused, 1, True, "", BACKOFF, Breaker.NONE, Memory.UNTOUCHED),
)  # fmt: skip


def table_in_markdown() -> str:
    """Return the table as README.md shows it."""
    head = ("reply", "recognised by", "requests", "attempts", "the job waits", "other requests", "memory")
    rows = [head, ("---",) * len(head), *(_cells(row) for row in REPLY_TABLE)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _cells(row: Row) -> tuple[str, ...]:
    attempts = {None: "done", True: "one spent", False: "none spent"}[row.spends_attempt]
    waits = f"{row.wait} (`{row.reason}`)" if row.reason else row.wait
    requests = "1" if row.most_requests == 1 else f"up to {row.most_requests}"
    return (row.reply, row.recognised, requests, attempts, waits, row.breaker.value, row.memory.value)
