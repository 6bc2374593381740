"""Has a model rewrite the staged folder: what it is told, how long it may take, and what waits out a short pause."""

import asyncio
from dataclasses import replace

from memoryd.agent.caps import AgentCaps
from memoryd.agent.errand import Workplace, run_errand
from memoryd.agent.loop import AgentRun, Brief, run_agent
from memoryd.errors import Overloaded, RateLimited, ResultRejected
from memoryd.ledger.jobs import Lease
from memoryd.llm.question import Answer, Question
from memoryd.llm.spend import Purpose
from memoryd.pipeline import prompting
from memoryd.pipeline.context import Client, Context, in_thread
from memoryd.pipeline.gathering import Evidence
from memoryd.pipeline.judging import judge_model
from memoryd.workspace.files import ensure_room
from memoryd.workspace.layout import ALWAYS_THERE, MEMORY_FILE, ROLLOUT_SUMMARIES
from memoryd.workspace.stems import stem_of
from memoryd.workspace.summary import summary_budget

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


async def ask_agent(context: Context, lease: Lease, evidence: Evidence, client: Client) -> AgentRun:
    """Run the agent over the staged folder. Raises ResultRejected, ModelError, DiskFull, LeaseLost."""
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
        return await in_thread(judge_model, context, evidence)

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
