"""The checks of `doctor`: a table of small functions, each of which looks at one thing and returns what it found.

A check never repairs and never shows a key. What `status` knows of the ground (ledger, disk, clock, git, folders) is
taken from there; what is here is asked for only when a person wants to know. What needs no provider is looked at first.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from memoryd.config import STAGES, NamedProvider, ProviderKind, Settings, Stage
from memoryd.control import overview
from memoryd.control.checked import Checked, Repair
from memoryd.control.checks_home import check_folders, check_locks, check_modes, check_read_path
from memoryd.control.checks_machine import check_clock, check_disk, check_git, check_service, check_watcher
from memoryd.control.checks_memory import check_memory
from memoryd.control.connecting.selftest import try_agents
from memoryd.control.console import when
from memoryd.control.patient import Check, Patient
from memoryd.credentials import resolve_api_key
from memoryd.daemon.house import daemon_holds
from memoryd.errors import ConfigError, MemorydError
from memoryd.llm.question import Usage
from memoryd.llm.spend import cost_of
from memoryd.sections import Provider

SAFE_SQLITE: Final = (3, 51, 3)
"""Earlier ones may damage a WAL when two connections checkpoint; memoryd writes through one, so it is only named."""
REPAIRED: Final = {"folder_missing": Repair.REOPEN, "publication_pending": Repair.REOPEN}
"""Findings of `status` that opening the house puts right."""
LADDER: Final = {
    "json_schema": "enforces a JSON schema",
    "json_object_schema": "enforces JSON, and is told the schema in words",
    "json_object": "enforces JSON, and is told the schema in words",
    "prompt": "is asked for JSON in words alone",
}


async def examine(patient: Patient) -> list[Checked]:
    """Make every check, in the order of the table."""
    return [found for check in (*GROUND, *ASKING) for found in await check(patient)]


async def look_again(patient: Patient, before: Sequence[Checked]) -> list[Checked]:
    """Make the checks of the ground once more after a repair, and keep what those that ask somebody found `before`."""
    ground = [found for check in GROUND for found in await check(patient)]
    known = {each.id for each in ground}
    return [*ground, *(each for each in before if each.id not in known and each.repair is None and _was_asked(each))]


def _was_asked(found: Checked) -> bool:
    return found.id.startswith(("provider_", "agent"))


async def check_ground(patient: Patient) -> list[Checked]:
    """Take over what `status` finds wrong: configuration, folders, git, ledger, disk, clock, jobs."""
    try:
        report = await overview.status(patient.settings, patient.environ, patient.clock)
    except MemorydError as error:
        return [Checked("ledger", "error", error.message, error.remedy)]
    health = report["health"]
    assert isinstance(health, list)
    # keys, programs and git have checks of their own here, which say more
    found = [
        Checked(item["id"], item["severity"], item["message"], item["remedy"], REPAIRED.get(item["id"]))
        for item in health
        if not item["id"].startswith(("key_", "provider_extract", "provider_consolidate", "git_missing"))
    ]
    return found or [
        Checked("ground", "ok", "configuration, folders, git, ledger, disk and clock are as they should be")
    ]


async def check_sqlite(_patient: Patient) -> list[Checked]:
    """Name the version of SQLite."""
    version = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < SAFE_SQLITE:
        return [Checked("sqlite", "ok", f"{version}: write to the ledger through memoryd only, never beside it")]
    return [Checked("sqlite", "ok", version)]


async def check_caps(patient: Patient) -> list[Checked]:
    """Say which caps can never let a request pass, or never bind."""
    settings, found = patient.settings, []
    limits = settings.limits
    for stage in STAGES:
        named = _named(settings, stage)
        caps = settings.extract if stage == "extract" else settings.consolidate
        if caps.max_tokens > limits.tokens_per_day:
            found.append(
                Checked(
                    f"caps_{stage}",
                    "warning",
                    f"one run may take {caps.max_tokens:,} tokens ({stage}.max_tokens), a day only"
                    f" {limits.tokens_per_day:,} (limits.tokens_per_day): a long run is cut off by the day's cap",
                    f"raise limits.tokens_per_day or lower {stage}.max_tokens",
                )
            )
        if limits.cost_per_day and named and not _has_prices(named):
            found.append(
                Checked(
                    f"prices_{stage}",
                    "error",
                    f"limits.cost_per_day is set, but {named.name} has no prices: every request counts as free",
                    f"set providers.{named.name}.prices",
                )
            )
    return found or [Checked("caps", "ok", "the caps of [limits] and of each run fit together")]


async def check_keys(patient: Patient) -> list[Checked]:
    """Say whether each provider's key is there and private, never what it is."""
    found = []
    for name, provider in patient.settings.providers.items():
        try:
            key = resolve_api_key(provider, patient.environ)
        except ConfigError as error:
            if _daemon_has_its_own(patient, provider):
                evidence = (
                    f"providers.{name}: its key is not in this shell; the memoryd that runs was started with its own"
                )
                found.append(
                    Checked(f"key_{name}", "info", evidence, "nothing: that one asks, also for `memoryd sync`")
                )
            else:
                found.append(Checked(f"key_{name}", "error", f"providers.{name}: {error.message}", error.remedy))
        else:
            state = "its key is there" if key else "it needs no key"
            found.append(Checked(f"key_{name}", "ok", f"providers.{name}: {state}"))
    return found


async def check_providers(patient: Patient) -> list[Checked]:
    """Ask each provider that a stage uses for one word, once for each model."""
    found: list[Checked] = []
    asked: set[tuple[str, str]] = set()
    for stage in STAGES:
        try:
            named = patient.settings.provider_for(stage)
        except ConfigError as error:
            found.append(Checked(f"provider_{stage}", "error", error.message, error.remedy))
            continue
        if (named.name, named.model) not in asked:
            asked.add((named.name, named.model))
            found.append(await _check_provider(patient, stage, named))
    used = {name for name, _ in asked}
    found += [
        Checked(f"provider_{name}", "ok", f"providers.{name} is used by no stage, so it was not asked")
        for name in patient.settings.providers
        if name not in used
    ]
    return found


async def check_agents(patient: Patient) -> list[Checked]:
    """Start each connected agent's hook as the agent would, in this folder: what comes, why, and how fast."""
    return await try_agents(patient.home, patient.clock, patient.cwd, patient.given)


GROUND: Final[Sequence[Check]] = (
    check_ground,
    check_modes,
    check_folders,
    check_locks,
    check_git,
    check_sqlite,
    check_disk,
    check_clock,
    check_watcher,
    check_service,
    check_memory,
    check_read_path,
    check_caps,
    check_keys,
)
ASKING: Final[Sequence[Check]] = (check_agents, check_providers)
"""What starts agents' hooks and asks providers."""


async def _check_provider(patient: Patient, stage: Stage, named: NamedProvider) -> Checked:
    label = f"provider_{named.name}_{named.model}" if named.model else f"provider_{named.name}"
    if named.provider.kind is ProviderKind.OFFLINE:
        return Checked(label, "ok", "the offline writer asks nobody")
    whom = f"{named.name}, model {named.model}"
    if patient.ask is None:
        return Checked(label, "ok", f"{whom}: not asked (--offline)")
    probe = await patient.ask(stage)
    if probe.problem:
        now = patient.clock.now()
        until = "" if probe.retry_after is None else f"; it is asked again at {when(now + probe.retry_after, now)}"
        return Checked(label, "error", f"{whom}: {probe.problem} [{probe.kind}]{until}", probe.remedy)
    cost = cost_of(Usage(probe.tokens_in, probe.tokens_out), named.provider.prices)
    price = f"{cost:.6f} USD" if _has_prices(named) else "no prices are set"
    tokens = f"{probe.tokens_in} tokens in, {probe.tokens_out} out ({price})"
    manner = f"; it {LADDER[probe.structure]} ({probe.structure})" if probe.structure in LADDER else ""
    return Checked(label, "ok", f"{whom}: it answers; {tokens}{manner}")


def _daemon_has_its_own(patient: Patient, provider: Provider) -> bool:
    """Tell whether the key is missing here alone: a daemon that runs found it in its environment, as a service does."""
    if provider.api_key_file is not None or not daemon_holds(patient.home):
        return False
    try:
        resolve_api_key(provider, patient.environ)
    except ConfigError:
        return True
    return False


def _named(settings: Settings, stage: Stage) -> NamedProvider | None:
    try:
        return settings.provider_for(stage)
    except ConfigError:
        return None


def _has_prices(named: NamedProvider) -> bool:
    return named.provider.kind is ProviderKind.OFFLINE or any(named.provider.prices.model_dump().values())
