"""Stage 2: the selected outputs become the memory folder, rewritten by a confined agent and judged before it counts.

select -> stage a copy -> materialise the evidence -> diff against the last accepted commit -> nothing changed: done
without a model -> otherwise write (agent, offline writer, or code when no evidence is left) -> accept -> git objects.
The deciding transaction is the worker's acknowledgement; `publish_decided` then puts files and refs in place, and does
so again after a crash.
"""

from pathlib import Path

from memoryd import logs
from memoryd.agent.loop import AgentRun
from memoryd.errors import ResultRejected
from memoryd.ledger import outputs, proposals, publications
from memoryd.ledger.jobs import Lease
from memoryd.ledger.proposals import NewProposal
from memoryd.ledger.publications import NewPublication, Publication
from memoryd.llm.shield import to_its_end
from memoryd.pipeline.asking import ask_agent
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.edits import remember_folder, restore_folder
from memoryd.pipeline.gathering import Evidence, gather
from memoryd.pipeline.judging import judge
from memoryd.pipeline.offline_write import write_offline
from memoryd.pipeline.outcomes import ENVIRONMENT_RETRY_SECONDS, PERSON_WORKING, Consolidated, Deferred, Outcome
from memoryd.pipeline.run_message import Asked, run_message
from memoryd.workspace import acceptance, mending, protection, publish, staging
from memoryd.workspace.claims import claims_of_folder, not_forgotten, texts_of
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import DIFF_FILE, EXTENSIONS, MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.proposals import keep_proposals
from memoryd.workspace.summary import summary_budget
from memoryd.workspace.unfinished import find_unfinished

log = logs.get()


async def consolidate(context: Context, lease: Lease) -> Outcome:
    """Run the consolidation job up to its git objects. Raises ResultRejected, ModelError, GitError, LeaseLost."""
    await publish_decided(context)
    if (waits := await _for_a_person(context)) is not None:
        return waits
    evidence = await gather(context, lease)
    context.reached("evidence_staged")
    try:
        if not evidence.diff.changes and evidence.untidy is None and await in_thread(_stands, evidence):
            log.info("consolidation.unchanged", selected=len(evidence.selected))
            return Consolidated(_snapshots(evidence), None, ())
        if await _was_proposed(context, evidence):
            log.info("consolidation.unchanged", selected=len(evidence.selected))
            return Consolidated(None, None, ())
        evidence.protected = await in_thread(protection.read_protection, context.repository, evidence.staged)
        run = await _write(context, lease, evidence)
        context.reached("agent_finished")
        return await _as_objects(context, lease, evidence, run)
    except ResultRejected as rejection:
        log.warning("consolidation.rejected", count=len(rejection.complaints))
        raise
    finally:
        await in_thread(staging.discard, evidence.staged)


async def publish_decided(context: Context) -> None:
    """Put a decided publication in place, if there is one, after the folder if that was deleted; idempotent."""
    async with context.placing:
        await restore_folder(context)
        decided = await context.ledger.read(publications.pending)
        if decided is not None:
            await to_its_end(_put_in_place(context, decided))
        proposal = await context.ledger.read(proposals.waiting)
        await in_thread(keep_proposals, context.repository, {proposal.id: proposal.commit} if proposal else {})


async def _for_a_person(context: Context) -> Deferred | None:
    """Wait while a person is in the middle of a merge: what they have not decided yet is no memory."""
    now = context.clock.now()
    unfinished = await in_thread(find_unfinished, context.home, now)
    if unfinished is None:
        return None
    message = f"{unfinished.what}: it is waited for until it is finished, or was left alone for an hour"
    return Deferred(min(now + ENVIRONMENT_RETRY_SECONDS, unfinished.until), PERSON_WORKING, message)


async def _put_in_place(context: Context, decided: Publication) -> None:
    placed = await in_thread(
        publish.put_in_place,
        context.home,
        context.repository,
        decided.commit,
        decided.base,
        reached=context.reached,
        still_ours=context.still_ours,
    )
    if placed.aside:
        log.warning("folder.cleared", names=list(placed.aside))
    context.still_ours()
    await in_thread(context.refresh_recall, decided.commit)
    context.reached("recall_refreshed")
    log.info("recall.refreshed", commit=decided.commit[:12])
    await remember_folder(context)
    await context.ledger.write(publications.mark_published, decided.id, now=context.clock.now())
    log.info("consolidation.published", commit=decided.commit[:12])


async def _was_proposed(context: Context, evidence: Evidence) -> bool:
    """Tell whether a person has been shown, or has refused, what comes of these very inputs: that is not paid twice."""
    if context.settings.consolidate.review != "manual":
        return False
    return await context.ledger.read(proposals.is_answered, evidence.inputs)


def _stands(evidence: Evidence) -> bool:
    """Both artefacts exist and are valid, so that an unchanged folder needs no model."""
    return not acceptance.artefacts_stand(Folder.read(evidence.staged.work))


async def _write(context: Context, lease: Lease, evidence: Evidence) -> AgentRun | None:
    """Have MEMORY.md and memory_summary.md written: by code, by the offline writer, or by the agent."""
    work = evidence.staged.work
    if not evidence.selected and not await in_thread(_has_notes, work):
        await in_thread(mending.empty_folder, work)
    elif context.consolidate.client is None:
        await in_thread(
            write_offline,
            work,
            evidence.selected,
            now=context.clock.now(),
            max_summary_bytes=summary_budget(context.settings.recall.max_tokens)
            - evidence.protected.size(SUMMARY_FILE),
        )
    else:
        run = await ask_agent(context, lease, evidence, context.consolidate.client)
        _note_refusals(run)
        return run
    complaints = await in_thread(judge, context, evidence)
    if complaints:
        raise ResultRejected(
            "the folder written without a model was not accepted, and the memory stands as it was",
            remedy="if a model wrote the memory so far, configure its provider again",
            complaints=tuple(complaints),
        )
    return None


def _note_refusals(run: AgentRun) -> None:
    """Count what the agent was refused, by kind: a model that keeps trying doors is worth knowing."""
    if run.refusals:
        log.info("consolidation.refused", count=run.refusals.total(), kinds=dict(sorted(run.refusals.items())))


async def _as_objects(context: Context, lease: Lease, evidence: Evidence, run: AgentRun | None) -> Outcome:
    """Write the accepted folder as a commit that no ref names yet; what it claims goes into the ledger with it."""
    work = evidence.staged.work
    (work / DIFF_FILE).unlink(missing_ok=True)
    persons = evidence.persons.get(MEMORY_FILE, frozenset())
    after = await in_thread(Folder.read, work)
    claims = await in_thread(claims_of_folder, after, persons)
    stood = await in_thread(lambda: not_forgotten(texts_of(claims_of_folder(evidence.before)), after))
    context.still_ours()
    commit = await in_thread(
        publish.prepare_commit,
        context.repository,
        evidence.staged,
        _message(context, lease, evidence, run),
        now=context.clock.now(),
        persons=evidence.persons,
    )
    context.reached("objects_written")
    if evidence.cleaned:
        log.info("memory.cleaned", commit=commit[:12], removed=evidence.cleaned)
    if context.settings.consolidate.review == "manual":
        staged = evidence.staged
        return Consolidated(None, NewProposal(commit, staged.parent, staged.accepted, evidence.inputs), ())
    return Consolidated(
        consumed=_snapshots(evidence),
        publication=NewPublication(commit=commit, base=evidence.staged.parent),
        claims=claims,
        removed_strays=evidence.strays,
        stood=stood,
    )


def _message(context: Context, lease: Lease, evidence: Evidence, run: AgentRun | None) -> str:
    asked = Asked(
        context.consolidate.provider,
        context.consolidate.model if run else None,
        run.requests if run else 0,
        run.usage if run else None,
        cleaned=evidence.cleaned,
        strays=evidence.strays,
    )
    work = Folder.read(evidence.staged.work)
    return run_message(lease, len(evidence.selected), evidence.diff, evidence.before, work, asked)


def _has_notes(work: Path) -> bool:
    """Notes and extension resources are evidence too."""
    return any(work.glob(f"{EXTENSIONS}/*/notes/*.md")) or any(work.glob(f"{EXTENSIONS}/*/resources/*.md"))


def _snapshots(evidence: Evidence) -> tuple[outputs.Snapshot, ...]:
    return tuple(row.snapshot for row in evidence.selected)
