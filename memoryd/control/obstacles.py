"""What keeps memoryd as a whole from doing anything now: no process, a held lock, a full disk, a cap, a provider.

`status` and `explain` tell it in the same words. It reads; a single session's or job's own reasons stand in the ledger.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.clock import Clock
from memoryd.config import OFFLINE, STAGES, NamedProvider, Settings, Stage
from memoryd.daemon import lock
from memoryd.daemon.house import DAEMON, records_limits
from memoryd.daemon.spending import caps_per_day
from memoryd.errors import AuthRefused, BudgetSpent, ConfigError, ModelUnavailable, Overloaded, UnknownModel
from memoryd.ledger import facts, spend
from memoryd.ledger.database import Ledger
from memoryd.llm.gate_state import GateState, read_state
from memoryd.llm.limits import LimitSnapshot, RefusedUntil, may_ask
from memoryd.pipeline.agent_limits import recorded_limits
from memoryd.workspace.layout import Home

INIT: Final = "`memoryd init` does that; `memoryd demo` shows what it is for"
RUN: Final = "`memoryd run` starts it; `memoryd sync` makes one pass without it"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing that stands in the way of `stages`.

    `reason` names it, `since` and `until` are epoch seconds, None where nobody knows or only a person ends it.
    """

    reason: str
    message: str
    remedy: str
    since: float | None = None
    until: float | None = None
    stages: tuple[Stage, ...] = STAGES


def of_house(settings: Settings) -> list[Obstacle]:
    """Tell that nothing is set up, or that no daemon runs: nobody does, or a command holds the lock."""
    home = Home(settings.home)
    has_agents = bool(settings.sources.agents or settings.sources.roots)
    who = lock.holder(home.lock_file)
    if who is None and not has_agents and not home.config_file.exists():
        return [Obstacle("not_configured", "memoryd is not set up yet", INIT)]
    if who is None:
        return [Obstacle("not_running", "no memoryd runs", RUN)]
    if who.role == DAEMON:
        return []
    if not who.pid:  # it has just taken the lock, or is about to give it back
        return [Obstacle("lock", "another memoryd holds the lock", "look again")]
    message = f"process {who.pid} (`memoryd {who.role}`) holds the lock, and nobody else may write meanwhile"
    return [Obstacle("lock", message, f"wait for it to end, or end it: kill {who.pid}", since=who.since)]


async def of_models(ledger: Ledger, settings: Settings, clock: Clock) -> list[Obstacle]:
    """Tell which stages may not ask their model now: the day's caps are spent, or the provider is left alone."""
    asked = _stages_that_ask(settings)
    if not asked:
        return []
    found = []
    try:
        await ledger.read(spend.check_day, now=clock.now(), caps=caps_per_day(settings.limits))
    except BudgetSpent as error:
        stages = tuple(stage for stage, _ in asked)
        found.append(Obstacle("budget", error.message, error.remedy, until=error.retry_at, stages=stages))
    for name in dict.fromkeys(named.name for _, named in asked):
        (named, *_) = (each for _, each in asked if each.name == name)
        stages = tuple(stage for stage, each in asked if each.name == name)
        kept = await ledger.read(facts.get, name, "", facts.Fact.GATE)
        state = read_state(kept or "", clock, longest_pause=settings.ledger.retry_cap)
        program = records_limits(named.provider)
        recorded = await recorded_limits(ledger, program, clock.now()) if program else None
        limits = (state.snapshot, recorded)
        found += [*_of_limits(name, limits, stages, settings, clock.now()), *_of_gate(name, state, stages, clock)]
    return found


def _stages_that_ask(settings: Settings) -> list[tuple[Stage, NamedProvider]]:
    """Return the stages that ask a model, each with its provider; wrong settings are told elsewhere."""
    found = []
    for stage in STAGES:
        try:
            named = settings.provider_for(stage)
        except ConfigError:
            continue
        if named.provider.kind != OFFLINE:
            found.append((stage, named))
    return found


def _of_limits(
    name: str, limits: Sequence[LimitSnapshot | None], stages: tuple[Stage, ...], settings: Settings, now: float
) -> Iterator[Obstacle]:
    percent = settings.limits.min_remaining_percent
    refused = [said for each in limits if isinstance(said := may_ask(each, percent, now), RefusedUntil)]
    for said in sorted(refused, key=lambda each: each.until)[-1:]:
        yield Obstacle(
            "quota",
            f"the provider {name} is left alone: its {said.reason} (limits.min_remaining_percent = {percent:g})",
            "it is asked again by itself; lower limits.min_remaining_percent to use more of it",
            until=said.until,
            stages=stages,
        )


def _of_gate(name: str, state: GateState, stages: tuple[Stage, ...], clock: Clock) -> Iterator[Obstacle]:
    now, monotonic = clock.now(), clock.monotonic()
    if state.paused_until > monotonic:
        cause = state.paused_by
        yield Obstacle(
            "provider_overloaded" if isinstance(cause, Overloaded) else "quota",
            f"the provider {name} is left alone: {cause.message if cause else 'it wants a pause'}",
            "it is asked again by itself; `memoryd jobs retry KEY`, or a new key file, ends the pause",
            until=round(now + state.paused_until - monotonic),
            stages=stages,
        )
    for model, breaker in state.breakers.items():
        if breaker.is_open and breaker.failure is not None:
            yield Obstacle(
                _reason_of(breaker.failure),
                f"the provider {name} does not answer as it should for the model {model}: {breaker.failure.message}",
                breaker.failure.remedy or "`memoryd doctor` tests it; it is tried again by itself",
                until=max(now, round(now + breaker.next_probe_at - monotonic)),
                stages=stages,
            )


def _reason_of(failure: ModelUnavailable) -> str:
    match failure:
        case AuthRefused():
            return "key_refused"
        case UnknownModel():
            return "model_unknown"
        case _:
            return "provider_unreachable"
