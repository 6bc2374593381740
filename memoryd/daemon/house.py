"""Opens the house: what the settings ask for, on its ground. Here the parts meet, for every command that writes."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Final

from memoryd import config, logs
from memoryd.clock import Clock
from memoryd.config import (
    AGENT_HOMES,
    STAGES,
    NamedProvider,
    Provider,
    ProviderKind,
    Settings,
    Stage,
    agent_home,
)
from memoryd.credentials import key_stamp, resolve_api_key
from memoryd.daemon import lock
from memoryd.daemon.ground import Ground, open_ground
from memoryd.daemon.identity import Identity
from memoryd.daemon.programs import programs_in
from memoryd.daemon.providers_watch import ProvidersWatch
from memoryd.daemon.recalling import keep_recall_ready, refresher
from memoryd.daemon.spending import Spending, caps_per_job
from memoryd.daemon.upkeep import judge_clock
from memoryd.errors import ConfigError
from memoryd.ledger import jobs
from memoryd.ledger.states import JobKind
from memoryd.llm.client import LadderMemory, ModelClient, Wiring
from memoryd.llm.command.shell import check_command
from memoryd.llm.providers import Programs, open_client
from memoryd.pipeline import prompting
from memoryd.pipeline.adopting import adopt_folder
from memoryd.pipeline.context import Agent, Context, StageModel
from memoryd.pipeline.forget import go_on_forgetting
from memoryd.pipeline.rescan import rescan
from memoryd.redact import Redactor
from memoryd.sources.readers import READERS
from memoryd.workspace.layout import Home

log = logs.get()

PROMPTS: Final = {
    "extract": ("stage1_system", "stage1_input"),
    "consolidate": ("consolidate_system", "consolidate_init", "consolidate_incremental", "consolidate_own_hands"),
}
PATIENCE_SECONDS: Final = 10.0
"""A person waits at the command for a ledger that another program keeps locked; scripts should not for long."""
DAEMON: Final = "daemon"
"""The lock's role of `memoryd run`; commands hold it under their own names."""


def passed(_point: str) -> None:
    """Do nothing at a named point: what the product does there; tests hand in something else."""


async def mend_clock_damage(context: Context) -> None:
    """Drop waits that a clock which was ahead has put into what is the future now."""
    for kind in JobKind:
        await context.ledger.write(jobs.mend_waits, kind=kind, now=context.clock.now())


async def reopen_outdated(context: Context) -> None:
    """Try anew what died under another version of memoryd, another model or another prompt."""
    reopened = 0
    for kind, model in ((JobKind.STAGE1, context.extract), (JobKind.CONSOLIDATE, context.consolidate)):
        reopened += await context.ledger.write(
            jobs.reopen_outdated,
            kind=kind,
            fingerprint=model.fingerprint,
            now=context.clock.now(),
            max_attempts=context.settings.ledger.max_attempts,
        )
    if reopened:
        log.info("job.reopened", count=reopened)


@asynccontextmanager
async def open_house(
    settings: Settings,
    *,
    clock: Clock,
    environ: Mapping[str, str],
    role: str,
    reached: Callable[[str], None] = passed,
    patience_seconds: float = PATIENCE_SECONDS,
) -> AsyncIterator[Context]:
    """Take the lock, open everything, and close it again in the opposite order: for commands.

    Raises what open_ground and furnish raise. `role` says who holds the lock.
    """
    for stage in STAGES:
        settings.provider_for(stage)  # wrong settings end here, before anything is made
    async with (
        open_ground(
            settings.home, clock=clock, environ=environ, role=role, patience_seconds=patience_seconds
        ) as ground,
        furnish(ground, settings, reached=reached) as context,
    ):
        yield context


@asynccontextmanager
async def furnish(
    ground: Ground, settings: Settings, *, reached: Callable[[str], None] = passed
) -> AsyncIterator[Context]:
    """Open what the settings ask for on ground that is open, bring what is stored in step with them, and close it.

    Several may be open at once over the same ground: whoever works by older settings ends under them. Raises
    ConfigError, also for settings of another home: lock and ledger cannot be changed under a running memoryd.
    """
    if settings.home != ground.home.path:
        raise ConfigError(
            f"the home cannot change from {ground.home.path} to {settings.home} while memoryd runs",
            remedy="stop it, and start it again for the other home",
        )
    asked = {stage: settings.provider_for(stage) for stage in STAGES}
    home, ledger, clock, environ = ground.home, ground.ledger, ground.clock, ground.environ
    async with AsyncExitStack() as stack:
        redactor = Redactor(settings.privacy.patterns)
        spending = Spending(ledger, clock, settings.limits, caps_per_job(settings))
        programs = programs_in(home, ledger, environ)
        clients = await _open_clients(stack, settings, asked, spending, redactor, clock, environ, programs)
        models = {stage: _stage_model(stage, named, clients[named.name], spending) for stage, named in asked.items()}
        gates = [client.gate for client in clients.values() if client is not None]
        context = Context(
            settings=settings,
            home=home,
            ledger=ledger,
            repository=ground.repository,
            clock=clock,
            rng=Random(os.urandom(16)),
            redactor=redactor,
            agents=configured_agents(settings, environ),
            extract=models["extract"],
            consolidate=models["consolidate"],
            refresh_recall=refresher(settings, home, ledger),
            still_ours=ground.still_ours,
            reached=reached,
            held=ground.held,
            placing=ground.placing,
            forgetting=ground.forgetting,
            nudges=ground.nudges,
            look_at_providers=ProvidersWatch(gates, spending).look,
        )
        await settle_in(context)
        yield context


async def settle_in(context: Context) -> None:
    """Bring the stores in step with this program and these settings: what was left, redacted, taken over, reopened."""
    await judge_clock(context)
    await go_on_forgetting(context)  # before anything is read back from a folder that holds what is forgotten
    await adopt_folder(context)
    await rescan(context)
    await mend_clock_damage(context)
    await take_over(context)
    await reopen_outdated(context)
    await keep_recall_ready(context)


def check_settings(settings: Settings, environ: Mapping[str, str]) -> None:
    """Refuse settings that cannot work before anything is made or claimed. Raises ConfigError.

    What is checked: agents that have folders, programs and keys that are there, values it
    can honour.
    """
    for agent in settings.sources.agents:
        if not agent_home(agent, settings, environ):
            raise ConfigError(
                f"sources.agents: {agent} has no folder of its own, and sources.roots names none for it",
                remedy=f'set sources.roots.{agent} to the folders, such as ["~/sessions"]',
            )
    for stage in STAGES:
        named = settings.provider_for(stage)
        if named.provider.kind != config.OFFLINE:
            if named.provider.kind is ProviderKind.COMMAND:
                check_command(named.name, named.provider.command, environ)
            resolve_api_key(named.provider, environ)


def configured_agents(settings: Settings, environ: Mapping[str, str]) -> dict[str, Agent]:
    """Return the agents whose sessions are read: those named, or those that have roots of their own."""
    names = settings.sources.agents or sorted(settings.sources.roots)
    return {name: Agent(READERS[name], tuple(agent_home(name, settings, environ))) for name in names}


def daemon_holds(home: Home) -> bool:
    """Tell whether the lock is held by a daemon, which can be asked, and not by a command, which cannot."""
    who = lock.holder(home.lock_file)
    return who is not None and who.role == DAEMON


def worker_name(role: str) -> str:
    """Name this process for the ledger's rows."""
    return str(Identity.of_this_process(role))


def is_ours(worker_id: str | None) -> bool:
    """Tell whether a worker of this process has that name."""
    identity = Identity.read(worker_id or "")
    return identity is not None and identity.is_this_process


def is_dead(worker_id: str) -> bool:
    """Tell whether the process of that worker is gone for certain; a name that is none of ours says nothing."""
    identity = Identity.read(worker_id)
    return identity is not None and identity.is_dead


async def take_over(context: Context) -> None:
    """Take back at once what a killed memoryd held: we hold the lock, and that process is gone."""
    taken = await context.ledger.write(
        jobs.take_back_from_the_dead,
        is_dead=is_dead,
        now=context.clock.now(),
        retry_cap=context.settings.ledger.retry_cap,
    )
    if taken:
        log.warning("job.reclaimed", count=taken)


async def _open_clients(
    stack: AsyncExitStack,
    settings: Settings,
    asked: Mapping[Stage, NamedProvider],
    spending: Spending,
    redactor: Redactor,
    clock: Clock,
    environ: Mapping[str, str],
    programs: Programs,
) -> dict[str, ModelClient | None]:
    """Open one client for each provider in use: stages that share a provider share its limits and its breaker."""
    wiring = Wiring(
        clock=clock,
        redactor=redactor,
        reserve=spending.reserve,
        settle=spending.settle,
        min_remaining_percent=settings.limits.min_remaining_percent,
        ladder=LadderMemory(load=spending.known_manner, store=spending.keep_manner),
        gates=spending.gates(),
    )
    clients: dict[str, ModelClient | None] = {}
    for named in asked.values():
        if named.name not in clients:
            program = records_limits(named.provider)
            client = open_client(
                named.name,
                named.provider,
                api_key=partial(resolve_api_key, named.provider, environ),
                wiring=replace(wiring, recorded=spending.recorded_by(program) if program else None),
                stamp=partial(key_stamp, named.provider),
                programs=programs,
            )
            clients[named.name] = client and await stack.enter_async_context(client)
    return clients


def _stage_model(stage: str, named: NamedProvider, client: ModelClient | None, spending: Spending) -> StageModel:
    return StageModel(
        named.name,
        named.model,
        named.effort,
        client,
        named.provider.context_window,
        "/".join((version("memoryd"), named.name, named.model, prompting.fingerprint(*PROMPTS[stage]))),
        partial(_admitted, client, named.model, spending) if client else None,
        works_alone=named.provider.kind is ProviderKind.COMMAND,
    )


async def _admitted(client: ModelClient, model: str, spending: Spending) -> None:
    await client.gate.check(model)
    await spending.check_day()


def records_limits(provider: Provider) -> str | None:
    """Return the agent that a `command` provider runs, whose own sessions tell of its limits; None: no such agent."""
    program = Path(provider.command[0]).name if provider.command else ""
    return program if program in AGENT_HOMES else None
