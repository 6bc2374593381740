"""Stage 2: the selected outputs become the memory folder, rewritten by a confined agent and judged before it counts.

select -> stage a copy -> materialise the evidence -> diff against the last accepted commit -> nothing changed: done
without a model -> otherwise write (agent, offline writer, or code when no evidence is left) -> accept -> git objects.
The deciding transaction is the worker's acknowledgement; `publish_decided` then puts files and refs in place, and does
so again after a crash (DESIGN.md section 7).
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memoryd import logs
from memoryd.agent.caps import AgentCaps
from memoryd.agent.errand import Workplace, run_errand
from memoryd.agent.loop import AgentRun, Brief, run_agent
from memoryd.errors import Overloaded, RateLimited, ResultRejected
from memoryd.ledger import outputs, proposals, publications, sayings
from memoryd.ledger.forgetting import untidy
from memoryd.ledger.jobs import Lease
from memoryd.ledger.outputs import SelectedOutput
from memoryd.ledger.proposals import NewProposal
from memoryd.ledger.publications import NewPublication, Publication
from memoryd.ledger.sayings import Said
from memoryd.llm.question import Answer, Question
from memoryd.llm.shield import to_its_end
from memoryd.llm.spend import Purpose
from memoryd.pipeline import prompting
from memoryd.pipeline.context import Client, Context, in_thread
from memoryd.pipeline.edits import remember_folder, restore_folder
from memoryd.pipeline.forget_judging import leftovers, take_out
from memoryd.pipeline.offline_write import write_offline
from memoryd.pipeline.outcomes import Consolidated, Outcome
from memoryd.pipeline.plausibility import Standing, clock_standing
from memoryd.pipeline.run_message import Asked, run_message
from memoryd.workspace import acceptance, mending, protection, publish, staging
from memoryd.workspace.claims import claims_of_folder, texts_of
from memoryd.workspace.diff import WorkspaceDiff, workspace_diff
from memoryd.workspace.extensions import expire_extension_resources
from memoryd.workspace.files import ensure_room, write_private
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import (
    AD_HOC_NOTES,
    ALWAYS_THERE,
    DIFF_FILE,
    EXTENSIONS,
    MEMORY_FILE,
    ROLLOUT_SUMMARIES,
    SUMMARY_FILE,
)
from memoryd.workspace.materialise import materialise
from memoryd.workspace.proposals import digest_of, keep_proposals
from memoryd.workspace.protection import Kept, Protection
from memoryd.workspace.staging import Staging
from memoryd.workspace.stems import stem_of
from memoryd.workspace.summary import summary_budget
from memoryd.workspace.undoing import with_standing

log = logs.get()

LONGEST_SHORT_PAUSE_SECONDS = 65.0
"""Limits per minute are over within one."""
MAX_SHORT_PAUSES = 5
LEAST_ROOM_BYTES = 64 * 1024
COPY = "copy"
"""Beside the staged folder: where an agent's own program works, if one does."""
COPIES_WRITTEN = 2
"""What a result takes once it is paid for: its git objects, and the files in place. No model is asked without room."""
CONTEXT_BYTES_PER_TOKEN = 2.0
"""Of a known window two bytes a token may be conversation: the rest is for instructions, answers and dense text."""


@dataclass(slots=True)
class Evidence:
    """What a consolidation works from, and what it compares with."""

    selected: Sequence[SelectedOutput]
    removed_threads: frozenset[str]
    staged: Staging
    before: Folder
    diff: WorkspaceDiff
    protected: Protection = field(default_factory=Protection)
    persons: Mapping[str, frozenset[str]] = field(default_factory=dict)
    said: Mapping[str, Said] = field(default_factory=dict)
    complained: set[str] = field(default_factory=set)
    has_named_persons: bool = False
    has_finished: bool = False
    cleaned: int = 0
    untidy: tuple[str, ...] | None = None
    """Sessions to look at anew although nothing else changed, since code alone has cleaned up; None: no need."""
    strays: int = 0
    inputs: str = ""
    """A digest of what was staged, before anything was written."""

    def new_notes(self) -> str:
        """Return the text of the notes that came or changed since the last accepted commit."""
        paths = [change.path for change in self.diff.changes if change.path.startswith(f"{AD_HOC_NOTES}/")]
        work = Folder.read(self.staged.work)
        return "\n".join(work.text(path) for path in paths)


async def consolidate(context: Context, lease: Lease) -> Outcome:
    """Run the consolidation job up to its git objects. Raises ResultRejected, ModelError, GitError, LeaseLost."""
    await publish_decided(context)
    evidence = await _gather(context, lease)
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


async def _gather(context: Context, lease: Lease) -> Evidence:
    """Select the outputs, stage a copy of the folder, put the evidence in it, and see what changed.

    While the clock is in doubt nothing is left out for its age.
    """
    settings = context.settings.consolidate
    clock = await clock_standing(context.ledger, context.clock)
    selected = await context.ledger.read(
        outputs.select_for_consolidation,
        now=clock.judged_at,
        max_raw_memories=settings.max_raw_memories,
        max_unused=settings.max_unused,
    )
    before = await context.ledger.read(outputs.previously_selected)
    context.still_ours()
    evidence = await in_thread(_stage, context, lease.token, selected, {row.thread_id for row in before}, clock)
    evidence.said = await context.ledger.read(sayings.of_threads, [row.thread_id for row in evidence.selected])
    evidence.untidy = await context.ledger.read(untidy)
    return evidence


def _cleaned(context: Context, row: SelectedOutput) -> SelectedOutput:
    """Redact once more what goes into the folder: the patterns may be newer than the row, and match its file's path."""
    clean = context.redactor.clean
    return replace(
        row,
        raw_memory=clean(row.raw_memory),
        rollout_summary=clean(row.rollout_summary),
        cwd=clean(row.cwd or "") or None,
        git_branch=clean(row.git_branch or "") or None,
        rollout_path=clean(row.rollout_path or "") or None,
    )


def _stage(
    context: Context, token: str, rows: Sequence[SelectedOutput], earlier: Collection[str], clock: Standing
) -> Evidence:
    now = clock.last.wall
    staged = staging.stage(context.home, context.repository, token, now=now, redactor=context.redactor)
    before = Folder.read(staged.base)
    selected = [_cleaned(context, row) for row in with_standing(rows, before)]
    removed = frozenset(earlier) - {row.thread_id for row in selected}
    materialise(staged.work, selected)
    if clock.doubt is None:
        expire_extension_resources(staged.work, now, context.settings.consolidate.extension_retention)
    diff = workspace_diff(context.repository, staged.accepted, staged.work)
    write_private(staged.work / DIFF_FILE, diff.text.encode("utf-8", "replace"))
    return Evidence(selected, removed, staged, before, diff, inputs=digest_of(Folder.read(staged.work)))


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
        run = await _run_agent(context, lease, evidence, context.consolidate.client)
        _note_refusals(run)
        return run
    complaints = await in_thread(_judge, context, evidence)
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


async def _run_agent(context: Context, lease: Lease, evidence: Evidence, client: Client) -> AgentRun:
    settings, model = context.settings.consolidate, context.consolidate
    before = sum(len(text) for text in evidence.before.files.values())
    ensure_room(context.home.path, LEAST_ROOM_BYTES + COPIES_WRITTEN * before)
    mode = prompting.Mode.INCREMENTAL if evidence.before.text(MEMORY_FILE).strip() else prompting.Mode.INIT
    parts = prompting.consolidation_question_parts(
        mode,
        prompting.FolderFacts(
            sessions=len(evidence.selected),
            changes=[f"{change.status} {change.path}" for change in evidence.diff.changes] + _second_look(evidence),
            removed_threads=sorted(evidence.removed_threads),
            max_summary_bytes=summary_budget(context.settings.recall.max_tokens),
            now=context.clock.now(),
        ),
        own_hands=model.works_alone,
    )
    purpose = Purpose(lease.kind.value, lease.job_key, lease.attempt_id, reference="consolidation")

    brief = Brief(model.model, model.effort, parts.instructions, parts.opening)

    async def ask(question: Question) -> Answer:
        return await _asked_patiently(context, client, question, purpose)

    async def finish(_summary: str) -> tuple[str, ...]:
        return await in_thread(_judge_model, context, evidence)

    caps = AgentCaps(
        max_requests=settings.max_requests, max_seconds=settings.max_duration, max_tokens=settings.max_tokens
    )
    if model.context_window:
        caps = replace(caps, max_context_bytes=int(model.context_window * CONTEXT_BYTES_PER_TOKEN))
    try:
        # The loop counts between requests; this ends a request that outlasts the whole run.
        async with asyncio.timeout(settings.max_duration):
            if model.works_alone:
                return await run_errand(
                    brief,
                    ask=ask,
                    place=Workplace(evidence.staged.work, evidence.staged.root / COPY),
                    finish=finish,
                    repair=prompting.consolidation_repair,
                    caps=caps,
                    clock=context.clock,
                )
            return await run_agent(
                brief,
                ask=ask,
                root=evidence.staged.work,
                finish=finish,
                caps=caps,
                clock=context.clock,
            )
    except TimeoutError:
        raise ResultRejected(
            "the consolidation agent was stopped",
            complaints=(f"it did not finish within consolidate.max_duration ({settings.max_duration:g} s)",),
        ) from None


def _second_look(evidence: Evidence) -> list[str]:
    """Name what a clean-up by code has left to be written well again, as changes."""
    if evidence.untidy is None:
        return []
    stems = [stem_of(row) for row in evidence.selected if row.thread_id in evidence.untidy]
    return [f"M {path}" for path in (*ALWAYS_THERE, *(f"{ROLLOUT_SUMMARIES}/{stem}.md" for stem in stems))]


async def _asked_patiently(context: Context, client: Client, question: Question, purpose: Purpose) -> Answer:
    """Ask, and wait out a pause of seconds: deferring would throw the run's work away, and pay for it again.

    Longer pauses, and a provider that keeps pausing, defer the run; its wall time bounds the waiting in any case.
    """
    for _ in range(MAX_SHORT_PAUSES):
        try:
            return await client.ask(question, purpose)
        except (RateLimited, Overloaded) as error:
            if error.retry_after is None or error.retry_after > LONGEST_SHORT_PAUSE_SECONDS:
                raise
            await context.clock.sleep(error.retry_after)
    return await client.ask(question, purpose)


def _judge(context: Context, evidence: Evidence) -> list[str]:
    """Accept or complain (blocking): put a person's lines right, mend what code can, judge what the run changed."""
    _keep(evidence, protection.keep_lines(evidence.protected, Folder.read(evidence.staged.work), may_move=False))
    _take_out(context, evidence)
    return _judge_kept(context, evidence)


def _judge_model(context: Context, evidence: Evidence) -> tuple[str, ...]:
    """Judge a model's work: what it may lose once it was told so is a complaint too, once (blocking).

    That is a claim with live evidence that vanished; a person's line, which code then puts back, unless a new note
    speaks of it; and what a person deleted, which code then leaves out.
    """
    notes = evidence.new_notes() if evidence.has_named_persons else ""
    folder = Folder.read(evidence.staged.work)
    kept = protection.keep_lines(evidence.protected, folder, may_move=True, notes=notes)
    complaints = [] if evidence.has_named_persons else list(kept.complaints)
    evidence.has_named_persons = evidence.has_named_persons or bool(complaints)
    _keep(evidence, replace(kept, texts={}) if complaints else kept)
    if evidence.has_finished:
        _take_out(context, evidence)
    else:
        complaints += leftovers(
            evidence.staged.work,
            evidence.before,
            persons=evidence.persons,
            max_summary_bytes=summary_budget(context.settings.recall.max_tokens),
        )
    evidence.has_finished = True
    complaints += _judge_kept(context, evidence)
    vanished = acceptance.vanished_claims(
        before=evidence.before, after=Folder.read(evidence.staged.work), removed_threads=evidence.removed_threads
    )
    complaints += [complaint for complaint in vanished if complaint not in evidence.complained]
    evidence.complained.update(vanished)
    return tuple(complaints)


def _take_out(context: Context, evidence: Evidence) -> None:
    """Remove what no evidence supports any more, and what notes ask to forget, if the writer did not."""
    evidence.cleaned += take_out(
        evidence.staged.work,
        evidence.before,
        removed_threads=evidence.removed_threads,
        persons=evidence.persons,
        max_summary_bytes=summary_budget(context.settings.recall.max_tokens),
    )


def _keep(evidence: Evidence, kept: Kept) -> None:
    for path, text in kept.texts.items():
        write_private(evidence.staged.work / path, text.encode())
    evidence.persons = kept.lines


def _judge_kept(context: Context, evidence: Evidence) -> list[str]:
    work = evidence.staged.work
    strays = mending.clean_strays(work, evidence.before)
    evidence.strays += len(strays)
    if strays:
        log.warning("consolidation.tidied", count=len(strays))
    mending.rewrite_provenance(work)
    after = Folder.read(work)
    return list(
        acceptance.judge(
            before=evidence.before,
            after=after,
            removed_threads=evidence.removed_threads,
            max_summary_bytes=summary_budget(context.settings.recall.max_tokens),
            redactor=context.redactor,
            persons=evidence.persons,
            said=evidence.said,
        ).complaints
    )


async def _as_objects(context: Context, lease: Lease, evidence: Evidence, run: AgentRun | None) -> Outcome:
    """Write the accepted folder as a commit that no ref names yet; what it claims goes into the ledger with it."""
    work = evidence.staged.work
    (work / DIFF_FILE).unlink(missing_ok=True)
    persons = evidence.persons.get(MEMORY_FILE, frozenset())
    claims = await in_thread(lambda: claims_of_folder(Folder.read(work), persons))
    stood = await in_thread(lambda: texts_of(claims_of_folder(evidence.before)))
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
    )
    work = Folder.read(evidence.staged.work)
    return run_message(lease, len(evidence.selected), evidence.diff, evidence.before, work, asked)


def _has_notes(work: Path) -> bool:
    """Notes and extension resources are evidence too."""
    return any(work.glob(f"{EXTENSIONS}/*/notes/*.md")) or any(work.glob(f"{EXTENSIONS}/*/resources/*.md"))


def _snapshots(evidence: Evidence) -> tuple[outputs.Snapshot, ...]:
    return tuple(row.snapshot for row in evidence.selected)
