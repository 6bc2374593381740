"""What `status` says of how memoryd is set up: agents, their folders, git, providers with keys and programs."""

import shutil
from collections.abc import Iterator, Mapping

from memoryd.config import STAGES, NamedProvider, ProviderKind, Settings
from memoryd.control.health import Finding
from memoryd.credentials import resolve_api_key
from memoryd.daemon.house import configured_agents
from memoryd.errors import ConfigError
from memoryd.llm.command.shell import check_command
from memoryd.workspace.layout import MISFIT_REMEDY, Home, link_remedy


def of_setup(settings: Settings, environ: Mapping[str, str], home: Home, *, daemon_runs: bool) -> list[Finding]:
    """Tell what is missing before anything can be done. `daemon_runs`: its environment may hold what ours does not."""
    findings = []
    if not home.config_file.exists():
        findings.append(Finding("not_configured", "warning", f"there is no {home.config_file}", "run `memoryd init`"))
    findings += [*_of_home(home), *_of_agents(settings, environ)]
    if shutil.which("git", path=environ.get("PATH")) is None:
        findings.append(
            Finding("git_missing", "error", "there is no git program, so nothing can be consolidated", "install git")
        )
    return [*findings, *of_providers(settings, environ, daemon_runs=daemon_runs)]


def _of_home(home: Home) -> Iterator[Finding]:
    for path in home.links():
        yield Finding(f"link_{path.name}", "error", f"{path} is a symlink: memoryd does not start", link_remedy(home))
    for path, is_not in home.misfits().items():
        yield Finding(f"misfit_{path.name}", "error", f"{path} is {is_not}: memoryd does not start", MISFIT_REMEDY)


def _of_agents(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    agents = configured_agents(settings, environ)
    if not agents:
        yield Finding("no_agents", "warning", "no agent is configured, so nothing is read", "run `memoryd init`")
    for name, agent in agents.items():
        for root in agent.reader.missing_roots(agent.homes):
            message = f"{name}: there is no sessions folder in {root}"
            yield Finding("root_missing", "warning", message, f"start {name} once, or set sources.roots.{name}")


def of_providers(settings: Settings, environ: Mapping[str, str], *, daemon_runs: bool) -> Iterator[Finding]:
    """Tell which stage cannot ask its model: nothing chosen, no key, no program. Each provider is told once."""
    seen: set[str] = set()
    for stage in STAGES:
        try:
            named = settings.provider_for(stage)
        except ConfigError as error:
            yield Finding(f"provider_{stage}", "error", error.message, error.remedy)
            continue
        if named.name in seen or (daemon_runs and _is_its_own_affair(named)):
            continue
        seen.add(named.name)
        yield from _of_provider(named, environ)


def _is_its_own_affair(named: NamedProvider) -> bool:
    """Tell whether a daemon that runs found what it needs in its own environment, and not in the caller's."""
    return named.provider.api_key_file is None


def _of_provider(named: NamedProvider, environ: Mapping[str, str]) -> Iterator[Finding]:
    provider = named.provider
    if provider.kind is ProviderKind.OFFLINE:
        return
    try:
        if provider.kind is ProviderKind.COMMAND:
            check_command(named.name, provider.command, environ)
    except ConfigError as error:
        yield Finding(f"program_{named.name}", "error", error.message, error.remedy)
    try:
        resolve_api_key(provider, environ)
    except ConfigError as error:
        yield Finding(f"key_{named.name}", "error", f"providers.{named.name}: {error.message}", error.remedy)
