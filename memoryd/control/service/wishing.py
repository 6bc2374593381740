"""Makes the wish of a service out of the settings, this command's environment and what was installed before.

What this command does not say stays as it was installed: an upgrade brings a new interpreter and nothing else.
"""

from collections.abc import Mapping
from pathlib import Path

from memoryd.config import AGENT_HOMES, HOME_VARIABLE, Settings
from memoryd.control.service.ground import Ground, Wish
from memoryd.control.service.search_path import search_path
from memoryd.origins import PREFIX

USUAL_HOME = ".memoryd"


def home_of(given: Path | None, environ: Mapping[str, str], before: Wish | None) -> Path | None:
    """Return the home that was named, else the installed service's; None: as the environment says."""
    if given is not None or environ.get(HOME_VARIABLE) or before is None:
        return given
    named = before.environment.get(HOME_VARIABLE)
    return Path(named) if named else None


def wish_of(
    settings: Settings, ground: Ground, interpreter: Path, credentials: Mapping[str, Path], before: Wish | None
) -> Wish:
    """Return what is to be installed."""
    earlier = before.environment if before else {}
    environment = {"PATH": search_path(settings, ground.environ, earlier.get("PATH", ""))}
    if ground.is_elsewhere:  # what this command sees below HOME, the service is to see as well
        environment["HOME"] = str(ground.home)
    if ground.is_elsewhere or settings.home != ground.home / USUAL_HOME:
        environment[HOME_VARIABLE] = str(settings.home)
    for variable in moving_variables():
        value = _absolute(ground.environ.get(variable), ground.home) or earlier.get(variable)
        if value:
            environment[variable] = value
    return Wish(interpreter, environment, credentials)


def moving_variables() -> list[str]:
    """Return the variables that move agents' sessions; a service does not see them in a shell's profile."""
    return list(dict.fromkeys(name for names, _, _ in AGENT_HOMES.values() for name in names))


def unseen(environ: Mapping[str, str]) -> list[str]:
    """Return the settings that stand in this command's environment alone: the service will not have them."""
    return sorted(
        name for name, value in environ.items() if name.startswith(PREFIX) and value and name != HOME_VARIABLE
    )


def _absolute(value: str | None, home: Path) -> str | None:
    if not value:
        return None
    return str(home / value[2:]) if value.startswith("~/") else str(Path(value).absolute())
