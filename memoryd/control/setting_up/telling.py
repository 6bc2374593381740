"""What `init` explains before anybody agrees to anything: what leaves the machine, and what the history would take."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from memoryd.config import Prices, Provider, ProviderKind, Settings
from memoryd.control.history import Bound, bound, history_in_folders, sentence
from memoryd.control.setting_up.choosing import ADDRESSES, OFFLINE, command_of, prices_of
from memoryd.control.setting_up.found import FoundAgent
from memoryd.llm.http import is_loopback
from memoryd.pipeline.context import Agent
from memoryd.pipeline.extract import BYTES_PER_TOKEN
from memoryd.sources.readers import READERS
from memoryd.workspace.layout import Home

STAYS: Final = "Nothing leaves this machine"


def what_leaves(args: argparse.Namespace, provider: str) -> list[str]:
    """Say what is sent where, and what never is."""
    if provider == OFFLINE:
        return [f"{STAYS}: the offline writer asks nobody."]
    if provider == "command":
        to = f"the program {command_of(args)[0]}, which sends them where it sends your sessions"
    else:
        to = str(args.base_url or ADDRESSES[provider])
        if is_loopback(to):
            return [f"{STAYS}: idle sessions are sent to {to}, within the caps of [limits]."]
    return [
        f"Idle sessions are sent to {to}: what you and the agent said, commands and their output.",
        "Secrets are taken out before, and what stands in <private>; folders of sources.exclude_cwd are never read.",
        "`memoryd explain THREAD --show-input` shows word by word what would be sent of one session.",
    ]


def bounds(args: argparse.Namespace, settings: Settings, found: Sequence[FoundAgent]) -> dict[str, Bound]:
    """Work out what sending the sessions that lie here would take at the most, by consent."""
    homes: dict[str, list[Path]] = {}
    for agent in found:
        homes.setdefault(agent.name, []).append(agent.home)
    there = history_in_folders(settings, {name: Agent(READERS[name], tuple(each)) for name, each in homes.items()})
    provider = Provider(kind=ProviderKind.OFFLINE, prices=Prices(**prices_of(args)))
    return {backfill: bound(settings, provider, provider, sizes, BYTES_PER_TOKEN) for backfill, sizes in there.items()}


def estimate_lines(there: dict[str, Bound], settings: Settings) -> list[str]:
    """Tell it to a person."""
    limits = settings.limits
    return [
        *(f"history, {backfill}: {sentence(each)}" for backfill, each in there.items()),
        f"limits: {limits.requests_per_day:,} requests and {limits.tokens_per_day:,} tokens a day; see [limits]",
    ]


def estimates_as_json(there: dict[str, Bound]) -> dict[str, object]:
    """Return the bounds with the requests that they stand for."""
    return {backfill: {"requests": each.sessions, **asdict(each)} for backfill, each in there.items()}


def farewell(home: Home, provider: str, history: str, leaves: Sequence[str]) -> list[str]:
    """Tell what was written, what leaves, what waits, and what comes next."""
    waits = "Sessions recorded before now wait for your consent: `memoryd sync --backfill recent`, or limits.backfill."
    return [
        f"wrote {home.config_file}",
        *leaves,
        *([waits] if provider != OFFLINE and history == "ask" else []),
    ]
