"""Review: with consolidate.review = "manual" an accepted result waits as a proposal until a person has looked at it.

Acceptance is bound to what was shown: a proposal is one commit under one number, and it is published only on top of the
version that it was made from. What was refused stays out until its session grows.
"""

from collections.abc import Collection
from dataclasses import dataclass
from sqlite3 import Connection

from memoryd import logs
from memoryd.errors import UsageError
from memoryd.ledger import holds, outputs, proposals, publications
from memoryd.ledger.claims import Circumstances, replace_claims
from memoryd.ledger.holds import Because
from memoryd.ledger.proposals import Proposal, ProposalState
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.states import JobKind
from memoryd.ledger.takeover import revoke
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.undo import ask_again
from memoryd.workspace.authorship import person_lines
from memoryd.workspace.claims import claims_of_folder, not_forgotten, texts_of
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MEMORY_FILE
from memoryd.workspace.undoing import evidence_of, folder_of, states_of

log = logs.get()

LOOK_AGAIN = "`memoryd sync` makes a new one, `memoryd review list` names it"


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What became of a proposal, and the sessions that stay out since it was refused."""

    proposal: Proposal
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Offer:
    """A proposal as git holds it: whole, and the states in its evidence and in that of the accepted version."""

    folder: Folder
    stood: Folder
    persons: Collection[str]
    proposed: dict[str, int]
    accepted_id: str | None
    accepted: dict[str, int]


async def accept(context: Context, number: int, shown: str | None = None) -> Reviewed:
    """Publish a proposal; `shown`: the commit, or its beginning, that the person has seen.

    What a person edited meanwhile is merged, and wins. Raises UsageError when it does not wait any more, is not the one
    that was shown, or is out of date: then what it was made from is consolidated again.
    """
    async with context.forgetting:
        return await _accept(context, number, shown)


async def _accept(context: Context, number: int, shown: str | None) -> Reviewed:
    await publish_decided(context)
    proposal = await _waiting(context, number, shown)
    seen = await context.ledger.read(publications.latest)
    offer = await in_thread(_look, context.repository, proposal)
    if offer is None or not await context.ledger.write(_decide, context, proposal, offer, seen.id if seen else None):
        await context.ledger.write(_drop, context)
        await publish_decided(context)
        raise UsageError(
            f"proposal {number} is out of date: the memory, or what it rests on, has changed since it was made",
            remedy=LOOK_AGAIN,
        )
    context.reached("acceptance_decided")
    await publish_decided(context)
    log.info("proposal.accepted", number=number, commit=proposal.commit[:12])
    return Reviewed(await _now(context, number))


async def reject(context: Context, number: int, shown: str | None = None) -> Reviewed:
    """Refuse a proposal: what it took in stays out until its session grows. Raises UsageError as `accept` does."""
    async with context.forgetting:
        return await _reject(context, number, shown)


async def _reject(context: Context, number: int, shown: str | None) -> Reviewed:
    await publish_decided(context)
    proposal = await _waiting(context, number, shown)
    offer = await in_thread(_look, context.repository, proposal)
    held = await context.ledger.write(_refuse, context, proposal, offer)
    await publish_decided(context)
    log.info("proposal.rejected", number=number, commit=proposal.commit[:12], held=len(held))
    return Reviewed(await _now(context, number), held)


async def _waiting(context: Context, number: int, shown: str | None) -> Proposal:
    proposal = await context.ledger.read(proposals.get, number)
    if proposal is None:
        raise UsageError(f"there is no proposal {number}", remedy="`memoryd review list` names them")
    if proposal.state is not ProposalState.WAITING:
        raise UsageError(
            f"proposal {number} does not wait any more: it is {proposal.state.value}",
            remedy="`memoryd review list` names the one that waits",
        )
    if shown is not None and not proposal.commit.startswith(shown):
        raise UsageError(
            f"proposal {number} is commit {proposal.commit[:12]}, and not {shown}",
            remedy=f"look at it again: `memoryd review show {number}`",
        )
    return proposal


async def _now(context: Context, number: int) -> Proposal:
    proposal = await context.ledger.read(proposals.get, number)
    assert proposal is not None  # it has just been reviewed
    return proposal


def _look(repo: Repository, proposal: Proposal) -> _Offer | None:
    """Read a proposal from git (blocking); None when it is not there any more."""
    if repo.resolve(proposal.commit) is None:
        return None
    folder = folder_of(repo, proposal.commit)
    rows = folder.text(MEMORY_FILE).split("\n")
    persons = frozenset(rows[number - 1] for number in person_lines(repo, proposal.commit, MEMORY_FILE))
    accepted = repo.accepted()
    return _Offer(
        folder=folder,
        stood=folder_of(repo, proposal.base),
        persons=persons,
        proposed=states_of(evidence_of(repo, proposal.commit)),
        accepted_id=accepted,
        accepted=states_of(evidence_of(repo, accepted)),
    )


def _decide(conn: Connection, context: Context, proposal: Proposal, offer: _Offer, seen: int | None) -> bool:
    """Decide to publish a proposal, all or nothing; False when it is out of date."""
    latest, remembered = publications.latest(conn), holds.remembered(conn)
    is_current = (latest.id if latest else None) == seen and publications.pending(conn) is None
    if not is_current or offer.accepted_id != proposal.accepted:
        return False
    if not offer.proposed.keys() <= {row.thread_id for row in remembered}:
        return False
    now = context.clock.now()
    if proposals.end(conn, proposal.id, ProposalState.ACCEPTED, now=now) is None:
        return False
    revoke(conn, JobKind.CONSOLIDATE, now=now)
    publications.decide(conn, NewPublication(proposal.commit, proposal.base), attempt_id=proposal.attempt_id, now=now)
    outputs.mark_consumed(conn, [])
    holds.mark_standing(conn, offer.proposed)
    stood = not_forgotten(texts_of(claims_of_folder(offer.stood)), offer.folder)
    circumstances = Circumstances(live=offer.proposed.keys(), stood=stood)
    replace_claims(conn, claims_of_folder(offer.folder, offer.persons), now=now, circumstances=circumstances)
    return True


def _refuse(conn: Connection, context: Context, proposal: Proposal, offer: _Offer | None) -> tuple[str, ...]:
    """Record the refusal, and keep out what the proposal took in; one that git lost says nothing of that."""
    now = context.clock.now()
    if proposals.end(conn, proposal.id, ProposalState.REJECTED, now=now) is None or offer is None:
        return ()
    holding = holds.decide_holding(holds.remembered(conn), left=offer.proposed, restored=offer.accepted)
    holds.apply_holding(conn, holding, because=Because.REJECTED, now=now)
    return tuple(hold.thread_id for hold in holding.holds)


def _drop(conn: Connection, context: Context) -> None:
    if proposals.supersede(conn, now=context.clock.now()):
        ask_again(conn, context)
