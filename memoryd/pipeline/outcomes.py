"""How a run of a job can end: a closed union, and the one place that turns errors into it.

Attempts are spent by outcomes that a retry of the same input cannot excuse (`Failed`); everything that is the world's
fault (`Deferred`) costs none and says until when and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.errors import (
    AuthRefused,
    BudgetSpent,
    ConfigError,
    DiskFull,
    GitMissing,
    MemorydError,
    ModelUnavailable,
    Overloaded,
    RateLimited,
    ResultRejected,
    UnknownModel,
    Unreachable,
)
from memoryd.ledger.claims import NewClaim
from memoryd.ledger.outputs import NewOutput, Snapshot
from memoryd.ledger.proposals import NewProposal
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.sessions import Covered

# A full disk or a missing git is not cured by hurry: look again once a minute.
ENVIRONMENT_RETRY_SECONDS = 60.0
# A refused key or an unknown model needs a person; a probe every ten minutes notices that one came by.
PERSON_RETRY_SECONDS = 600.0

# However long errors make a job wait: a network that is back is used within two minutes.
NETWORK_RETRY_SECONDS = 60.0

DISK_FULL = "disk_full"
"""The reason under which a job waits for room; a read-only disk counts as full."""

PERSON_WORKING = "person_working"
"""The reason under which consolidation waits for a person's merge or rebase in the memory folder."""

REASON_OF_UNAVAILABLE: dict[type[ModelUnavailable], str] = {
    RateLimited: "rate_limited",
    Overloaded: "provider_overloaded",
    Unreachable: "provider_unreachable",
    AuthRefused: "key_refused",
    UnknownModel: "model_unknown",
}
NEEDS_A_PERSON = (AuthRefused, UnknownModel)


@dataclass(frozen=True, slots=True)
class Extracted:
    """Stage 1 found something: the row to keep, and what of the session it covers."""

    output: NewOutput
    covered: Covered


@dataclass(frozen=True, slots=True)
class NothingToRemember:
    """The model said so in a schema-valid empty reply: a previous row goes. No other outcome deletes a memory."""

    covered: Covered


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nobody was asked, and a previous row stays; `why` is `no_human_message` or a rule that leaves sessions out.

    `covered` is None where nothing was read: the session is due again once the rule is lifted.
    """

    covered: Covered | None
    why: str


@dataclass(frozen=True, slots=True)
class Consolidated:
    """Stage 2 has an accepted result as git objects (`publication`), or found nothing to change (None).

    A proposal waits for a person's word. `consumed` None: what the folder is made of has not changed yet. `stood` are
    section and text of what the handbook claimed before the run, a person's edits included.
    """

    consumed: Sequence[Snapshot] | None
    publication: NewPublication | NewProposal | None
    claims: Sequence[NewClaim]
    removed_strays: int = 0
    stood: frozenset[tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not this job's fault: wait until `until` (epoch seconds) because of `reason`; no attempt is spent."""

    until: float
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """This input failed; an attempt is spent."""

    error_class: str
    message: str


Outcome = Extracted | NothingToRemember | Skipped | Consolidated | Deferred | Failed


def outcome_of_error(error: MemorydError, *, now: float, retry_base: float, retry_cap: float) -> Deferred | Failed:
    """Decide what an error means for the job that met it (all times in seconds)."""
    match error:
        case BudgetSpent():
            until = error.retry_at if error.retry_at is not None else now + retry_cap
            return Deferred(until, "budget", str(error))
        case ModelUnavailable():
            return Deferred(now + _pause(error, retry_base, retry_cap), reason_of(error), str(error))
        case DiskFull():
            return Deferred(now + ENVIRONMENT_RETRY_SECONDS, DISK_FULL, str(error))
        case GitMissing():
            return Deferred(now + ENVIRONMENT_RETRY_SECONDS, "git_missing", str(error))
        case ConfigError():
            return Deferred(now + PERSON_RETRY_SECONDS, "misconfigured", str(error))
        case ResultRejected():
            return Failed("ResultRejected", "; ".join([error.message, *error.complaints]))
        case _:
            return Failed(type(error).__name__, str(error))


def reason_of(error: ModelUnavailable) -> str:
    """Name the reason under which a job waits for an endpoint."""
    return REASON_OF_UNAVAILABLE.get(type(error), "provider_unavailable")


def _pause(error: ModelUnavailable, retry_base: float, retry_cap: float) -> float:
    """Seconds to wait: what the server asked for, at least our own, at most the cap."""
    own = PERSON_RETRY_SECONDS if isinstance(error, NEEDS_A_PERSON) else retry_base
    if isinstance(error, Unreachable):
        own = min(own, NETWORK_RETRY_SECONDS)
    return min(max(error.retry_after or 0.0, own), max(retry_cap, own))
