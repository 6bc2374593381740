"""How much a run may use, what it has used, and the sentence that ends it: pure counting."""

from collections import Counter
from dataclasses import dataclass, field

from memoryd.llm.question import Usage


@dataclass(frozen=True, slots=True)
class AgentCaps:
    """Limits of one run of the consolidation agent. Seconds are wall time; tokens are input and output of all requests.

    Wall time is looked at between requests; one request in flight is bounded by the provider's own time-out.
    `max_context_bytes` is the size of the conversation from which old tool outputs are left out of the replay:
    400,000 bytes are about 130,000 tokens, which the windows of current models hold.
    """

    max_requests: int = 60
    max_seconds: float = 1200.0
    max_tokens: int = 2_000_000
    max_repairs: int = 2
    max_invalid: int = 5
    max_idle: int = 10
    max_context_bytes: int = 400_000


@dataclass(slots=True)
class Tally:
    """What one run has used so far."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    invalid_in_a_row: int = 0
    idle_in_a_row: int = 0
    rejections: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    def count_reply(self, *, valid: bool, progress: bool) -> None:
        """Count one reply: `valid` with at least one valid call, `progress` with a change or a new read."""
        self.invalid_in_a_row = 0 if valid else self.invalid_in_a_row + 1
        self.idle_in_a_row = 0 if progress else self.idle_in_a_row + 1

    def reason_to_stop(self, caps: AgentCaps, *, elapsed_seconds: float, next_tokens: int) -> str | None:
        """Say which cap forbids the next request, None when it may be sent."""
        used = self.usage.input + self.usage.output
        if self.invalid_in_a_row >= caps.max_invalid:
            return f"{caps.max_invalid} replies in a row held no valid call"
        if self.idle_in_a_row >= caps.max_idle:
            return f"{caps.max_idle} replies in a row changed nothing and read nothing new"
        if self.requests >= caps.max_requests:
            return f"all {caps.max_requests} requests of a run (max_requests) were used"
        if elapsed_seconds >= caps.max_seconds:
            return f"the run took longer than {caps.max_seconds:g} seconds (max_duration)"
        if used + next_tokens > caps.max_tokens:
            return f"the next request would pass max_tokens, {caps.max_tokens} ({used} used)"
        return None


def total(one: Usage, other: Usage) -> Usage:
    """Add up what two requests used."""
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cached=one.cached + other.cached,
        reasoning=one.reasoning + other.reasoning,
        measured=one.measured and other.measured,
    )
