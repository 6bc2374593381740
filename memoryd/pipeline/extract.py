"""Stage 1: one session, one question, one row. What the session taught, or that it taught nothing.

load the session -> gather its evidence (dropped, redacted, budgeted) -> ask -> judge the reply -> redact again. The row
is written by whoever runs the job, in the same transaction that ends it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from memoryd import logs
from memoryd.errors import (
    ContextOverflow,
    MalformedReply,
    RefusedReply,
    SessionUnreadable,
    SessionVanished,
    SessionWithoutItems,
    TruncatedReply,
)
from memoryd.ledger import discovery, facts, forgetting, outputs, sessions
from memoryd.ledger.jobs import Lease
from memoryd.ledger.lineage import older_relatives
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.sessions import Covered, SessionRow, UserMode
from memoryd.llm.question import Answer, Question, Schema, Stop, UserTurn
from memoryd.llm.spend import Purpose
from memoryd.pipeline import prompting
from memoryd.pipeline.agent_limits import remember_limits
from memoryd.pipeline.context import Client, Context, StageModel, in_thread
from memoryd.pipeline.discover import enqueueing, exclusion_of_row
from memoryd.pipeline.eligibility import Exclusion, ReadingFound
from memoryd.pipeline.loading import Loaded, cut_off, find_relatives, load
from memoryd.pipeline.offline_extract import extract_offline
from memoryd.pipeline.outcomes import Extracted, NothingToRemember, Outcome, Skipped
from memoryd.pipeline.prompting import QuestionParts
from memoryd.pipeline.reply import STAGE1_SCHEMA, Stage1Reply, parse_reply
from memoryd.pipeline.reply_sense import refuse_nonsense
from memoryd.pipeline.sayings import who_said
from memoryd.pipeline.session_facts import SessionFacts
from memoryd.sources.items import CitationSeen, ItemKind, MemoryMode
from memoryd.text import plain
from memoryd.workspace.stems import session_stem

log = logs.get()

BYTES_PER_TOKEN: Final = 3.0
"""Cautious until the model's own usage has taught us better."""
LEAST_TOKENS_TO_LEARN_FROM: Final = 100
LEAST_RATIO: Final = 1.0
GREATEST_RATIO: Final = 8.0
"""A server that reports nonsense must not make the next request ten times too large or too small."""
WINDOW_SHARE: Final = 0.7
"""Share of a model's context window that the evidence may fill."""
DEFAULT_INPUT_TOKENS: Final = 150_000
"""When neither the window nor a limit of the user's is known."""
SHRINK: Final = 0.5
"""After an overflow the evidence is halved: two steps reach a quarter, which fits whatever the estimate got wrong."""
MAX_REQUESTS: Final = 4
"""Requests of one attempt: the first, smaller ones after overflows, and one repair."""
MAX_OUTPUT_TOKENS: Final = 16_384
"""Several times the longest honest memory with what a model thinks before it; sent with each request, so that what is
reserved for an answer bounds it."""
OUTPUT_SHARE: Final = 0.2
"""Share of a known context window that the answer may fill; beside the evidence it leaves room for instructions."""
LEAST_OUTPUT_TOKENS: Final = 1_024
SCHEMA: Final = Schema(name="session_memory", schema=STAGE1_SCHEMA)


async def extract(context: Context, lease: Lease) -> Outcome:
    """Run one stage-1 job. Raises ModelError, SourceError, BudgetSpent or LeaseLost for the worker to classify."""
    session = await context.ledger.read(sessions.get_exact, lease.job_key)
    if session is None:
        raise SessionVanished(f"session {lease.job_key} is no longer known", remedy="it was forgotten while it waited")
    if reason := _excluded(context, session):
        log.info("session.excluded", reason=reason)
        return Skipped(None, reason)
    model = context.extract
    tokens = input_budget(context.settings.extract.max_input_tokens, model.context_window)
    ratio = await _learned_ratio(context, model)
    older = await context.ledger.read(older_relatives, session)
    since = await context.ledger.read(forgetting.reset_at)
    loaded = await _gathered(context, session, older, since, budget_tokens=tokens, bytes_per_token=ratio)
    if isinstance(loaded, Skipped):
        return loaded
    if model.client is None:
        reply = await in_thread(extract_offline, session=facts_of(session, loaded), items=loaded.evidence.items)
    else:
        again = partial(load_session, context, session, older, since, bytes_per_token=ratio)
        reply = await _Interview(context, lease, session, again, model.client, ratio).hold(loaded, tokens)
    context.reached("reply_received")
    await _credit(context, loaded.citations)
    context.reached("usage_credited")
    if reply.is_empty:
        return NothingToRemember(loaded.covered)
    output = await in_thread(redacted_output, context, session, loaded, reply)
    return Extracted(output, loaded.covered)


async def _gathered(
    context: Context,
    session: SessionRow,
    older: Sequence[SessionRow],
    since: int | None,
    *,
    budget_tokens: int,
    bytes_per_token: float,
) -> Loaded | Skipped:
    """Read a session beside the event loop, and judge by what it holds whether anybody is asked about it.

    Bytes without items are an error, never nothing to remember; a file that is gone is read when it is back.
    """
    known = Covered(session.updated_at, session.record_bytes)
    try:
        loaded = await in_thread(
            load_session, context, session, older, since, budget_tokens=budget_tokens, bytes_per_token=bytes_per_token
        )
    except SessionWithoutItems:
        await _note(context, session, known, ReadingFound.NO_ITEMS)
        raise
    except SessionVanished:
        await _note(context, session, known, ReadingFound.VANISHED)
        return Skipped(None, ReadingFound.VANISHED.value)
    context.reached("session_loaded")
    if loaded.bad_lines:
        log.warning("reading.degraded", bad_lines=loaded.bad_lines)
    await remember_limits(context, session.agent, loaded.rate_limits)
    if reason := _left_out(context, session, loaded):
        word = None if loaded.memory_mode is MemoryMode.ENABLED else loaded.memory_mode
        await context.ledger.write(discovery.leave_out, session.thread_id, reason, word, **enqueueing(context))
        log.info("session.excluded", reason=reason)
        return Skipped(None, reason)
    if (loaded.covered.updated_at, loaded.covered.record_bytes) == (session.covered_updated_at, session.covered_bytes):
        # It was enqueued by what a scan knew of the file before this very state was extracted.
        return Skipped(loaded.covered, "already_covered")
    if loaded.evidence.human_messages == 0:
        await _note(context, session, loaded.covered, ReadingFound.NO_HUMAN_MESSAGE)
        return Skipped(loaded.covered, ReadingFound.NO_HUMAN_MESSAGE.value)
    await _note(context, session, loaded.covered, None)
    return loaded


def load_session(
    context: Context,
    session: SessionRow,
    older: Sequence[SessionRow] = (),
    since: int | None = None,
    *,
    budget_tokens: int,
    bytes_per_token: float,
) -> Loaded:
    """Read a known session into evidence, without the rows that are its `older` relatives' (blocking).

    `since` (epoch seconds): what was recorded up to then is nobody's, as a reset demands.
    """
    if session.agent not in context.agents:
        raise SessionUnreadable(
            f"the session {session.thread_id} belongs to {session.agent}, which is not configured",
            remedy=f"add {session.agent!r} to sources.agents",
        )
    reader = context.agents[session.agent].reader
    loaded = load(
        reader,
        reader.locate(Path(session.path)),
        settings=context.settings,
        redactor=context.redactor,
        home=context.home.path,
        budget_tokens=budget_tokens,
        bytes_per_token=bytes_per_token,
        relatives=cut_off(find_relatives(reader, older), session, since),
    )
    if loaded.timed or loaded.covered.record_bytes != session.record_bytes:
        return loaded
    # Without times in the format the same bytes are what discovery saw, though the file was touched since.
    return replace(loaded, covered=replace(loaded.covered, updated_at=session.updated_at))


def input_budget(max_input_tokens: int | None, context_window: int | None) -> int:
    """Return the evidence's budget in tokens: the user's limit, else a share of the window, else the default."""
    if max_input_tokens:
        return max_input_tokens
    return int(context_window * WINDOW_SHARE) if context_window else DEFAULT_INPUT_TOKENS


def output_budget(context_window: int | None) -> int:
    """Return the limit of the answer in tokens, thoughts included."""
    if not context_window:
        return MAX_OUTPUT_TOKENS
    return max(LEAST_OUTPUT_TOKENS, min(MAX_OUTPUT_TOKENS, int(context_window * OUTPUT_SHARE)))


def facts_of(session: SessionRow, loaded: Loaded) -> SessionFacts:
    """Return what a writer is told of a session besides its evidence."""
    return SessionFacts(
        thread_id=session.thread_id,
        agent=session.agent,
        cwd=session.cwd,
        git_branch=session.git_branch,
        started_at=session.started_at,
        updated_at=loaded.covered.updated_at,
    )


def redacted_output(context: Context, session: SessionRow, loaded: Loaded, reply: Stage1Reply) -> NewOutput:
    """Turn a reply into the row to keep; a model may repeat what it should not, so everything is redacted again."""

    def clean(text: str) -> str:
        return context.redactor.clean(plain(text))

    slug = clean(reply.rollout_slug) if reply.rollout_slug else None
    raw_memory, rollout_summary = clean(reply.raw_memory), clean(reply.rollout_summary)
    return NewOutput(
        thread_id=session.thread_id,
        source_updated_at=loaded.covered.updated_at,
        raw_memory=raw_memory,
        rollout_summary=rollout_summary,
        rollout_slug=slug,
        stem=session_stem(session.thread_id, session.started_at or session.updated_at, slug),
        said=who_said((raw_memory, rollout_summary), loaded.evidence),
    )


def _excluded(context: Context, session: SessionRow) -> str | None:
    """The settings or the person may have left it out while its job waited: nothing is sent then."""
    return session.excluded if session.excluded == sessions.FORGOTTEN else exclusion_of_row(context, session)


def _left_out(context: Context, session: SessionRow, loaded: Loaded) -> str | None:
    """The agent may have switched memory off after discovery looked: its last word counts, before anything is sent.

    The person's own choice wins over it.
    """
    if session.user_mode is UserMode.ENABLED:
        return None
    if loaded.memory_mode is MemoryMode.DISABLED:
        return Exclusion.MEMORY_DISABLED.value
    guard = context.settings.extract.disable_on_external_context
    if loaded.memory_mode is MemoryMode.POLLUTED or (guard and loaded.evidence.external):
        return Exclusion.POLLUTED.value
    return None


async def _note(context: Context, session: SessionRow, read: Covered, found: ReadingFound | None) -> None:
    """Keep why reading gave nothing to ask about, so that it is counted; what was kept before may hold no more."""
    if found is not None or session.finding is not None:
        await context.ledger.write(sessions.set_finding, session.thread_id, read, found)


class _Interview:
    """The requests of one attempt: at most four, smaller after an overflow, one repair of a reply that was no reply.

    `again` reads the session as it was read before, within another budget.
    """

    def __init__(
        self,
        context: Context,
        lease: Lease,
        session: SessionRow,
        again: Callable[..., Loaded],
        client: Client,
        ratio: float,
    ) -> None:
        self._context = context
        self._session = session
        self._again = again
        self._client = client
        self._ratio = ratio
        self._requests = 0
        self._repaired = False
        self._output_tokens = output_budget(context.extract.context_window)
        self._purpose = Purpose(lease.kind.value, lease.job_key, lease.attempt_id, reference=session.path)

    async def hold(self, loaded: Loaded, tokens: int) -> Stage1Reply:
        """Ask until there is a reply. Raises the ModelError family."""
        while True:
            if not any(item.kind is ItemKind.HUMAN for item in loaded.evidence.items):
                # An answer about what is left would be about nothing, and an empty one would delete a memory.
                raise ContextOverflow(
                    "nothing that the person said fits into the model's input",
                    remedy="look at extract.max_input_tokens",
                )
            parts = prompting.stage1_question_parts(facts_of(self._session, loaded), loaded.evidence.text)
            try:
                return await self._answered(parts, loaded.evidence.text)
            except ContextOverflow:
                if self._requests >= MAX_REQUESTS - 1:
                    raise
                sent = len(loaded.evidence.text.encode()) / self._ratio
                tokens = int(min(tokens, sent) * SHRINK)
                # Many servers count the room for the answer as part of what is too long.
                self._output_tokens = max(LEAST_OUTPUT_TOKENS, int(self._output_tokens * SHRINK))
                loaded = await in_thread(self._again, budget_tokens=tokens)

    async def _answered(self, parts: QuestionParts, evidence: str) -> Stage1Reply:
        answer = await self._ask(parts.instructions, UserTurn(parts.opening))
        await _learn_ratio(self._context, self._context.extract, parts.instructions + parts.opening, answer)
        try:
            return refuse_nonsense(read_reply(answer), parts, evidence)
        except MalformedReply as error:
            if self._repaired or self._requests >= MAX_REQUESTS:
                raise
            self._repaired = True
            log.info("reply.repaired", error=error.message)
            # From a clean context: what the model said is data of no use, and might be instructions. Only our own words
            # about it are added, to the same message, since not every model takes two messages of one speaker.
            repair = UserTurn(f"{parts.opening}\n\n{prompting.stage1_repair(error.message)}")
            return refuse_nonsense(read_reply(await self._ask(parts.instructions, repair)), parts, evidence)

    async def _ask(self, instructions: str, opening: UserTurn) -> Answer:
        self._requests += 1
        model = self._context.extract
        question = Question(
            model=model.model,
            effort=model.effort,
            instructions=instructions,
            turns=(opening,),
            schema=SCHEMA,
            max_output_tokens=self._output_tokens,
        )
        return await self._client.ask(question, self._purpose)


def read_reply(answer: Answer) -> Stage1Reply:
    """Classify an answer: a reply, or MalformedReply, TruncatedReply, RefusedReply (none of which touches a memory)."""
    match answer.stop:
        case Stop.REFUSAL:
            raise RefusedReply("the model declined to read this session", remedy="it is tried again later")
        case Stop.LENGTH:
            raise TruncatedReply(
                "the model's reply was cut at its output limit",
                remedy="raise the model's output limit, or choose another",
            )
        case _:
            return parse_reply(answer.text)


async def _learned_ratio(context: Context, model: StageModel) -> float:
    learned = await context.ledger.read(facts.bytes_per_token, model.provider, model.model)
    return learned or BYTES_PER_TOKEN


async def _learn_ratio(context: Context, model: StageModel, sent: str, answer: Answer) -> None:
    """Keep how many bytes this model counts as a token, from what it said it was sent."""
    if not answer.usage.measured or answer.usage.input < LEAST_TOKENS_TO_LEARN_FROM:
        return
    ratio = max(LEAST_RATIO, min(GREATEST_RATIO, len(sent.encode()) / answer.usage.input))
    await context.ledger.write(
        facts.put_bytes_per_token, model.provider, model.model, round(ratio, 3), now=context.clock.now()
    )


async def _credit(context: Context, citations: tuple[CitationSeen, ...]) -> None:
    """Count what this session cited; a message counts once, however often a resumed file repeats it."""
    counted = 0
    for seen in citations:
        if seen.thread_ids:
            counted += await context.ledger.write(outputs.cite, seen.thread_ids, seen.message_key, context.clock.now())
    if counted:
        log.info("usage.credited", count=counted)
