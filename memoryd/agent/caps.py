"""How much a run may use, what it has used, and the sentence that ends it: pure counting."""

from collections import Counter
from dataclasses import dataclass, field

from memoryd.agent.refusals import RefusalKind
from memoryd.llm.question import Usage


@dataclass(frozen=True, slots=True)
class AgentCaps:
    """Limits of one run (DESIGN.md section 7). Seconds are wall time; tokens are input and output of all requests.

    `max_context_bytes` is the size of the conversation from which old tool outputs are left out of the replay.
    """

    max_requests: int = 60
    max_seconds: float = 1200.0
    max_tokens: int = 2_000_000
    max_repairs: int = 2
    max_invalid: int = 5
    max_idle: int = 10
    max_context_bytes: int = 400_000
