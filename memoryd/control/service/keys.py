"""The keys of a service: it does not see the variables of a shell, and its own file can be read by others.

A key lies in a file of mode 0600 below MEMORYD_HOME; systemd hands it over as a credential (LoadCredential), under
launchd the folder is named in place of systemd's. Both are found under the name in `api_key_env`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.config import STAGES, Settings
from memoryd.control.service import placing
from memoryd.control.service.ground import Wish
from memoryd.credentials import resolve_api_key
from memoryd.errors import ConfigError, UsageError
from memoryd.workspace.files import is_temporary, temporary_beside, translated, write_durably
from memoryd.workspace.layout import Home

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Keys:
    """Where the keys lie, by the name of their variable, and those that this command has to write there."""

    files: Mapping[str, Path]
    to_write: Mapping[str, str]


def keys_folder(home: Home) -> Path:
    """Return the folder of the service's keys."""
    return home.path / "credentials"


def variables_needed(settings: Settings) -> list[str]:
    """Return the variables in which the providers of the stages expect their keys. Raises ConfigError."""
    asked = [settings.provider_for(stage).provider for stage in STAGES]
    return list(dict.fromkeys(each.api_key_env for each in asked if each.api_key_env and each.api_key_file is None))


def plan_keys(settings: Settings, environ: Mapping[str, str], before: Wish | None, *, store: bool) -> Keys:
    """Say where each key lies; `store`: what this shell holds is to be kept. Raises UsageError for one that is nowhere.

    An unusable key in the shell is a ConfigError, as it would be for the daemon.
    """
    files: dict[str, Path] = {}
    to_write: dict[str, str] = {}
    for name in variables_needed(settings):
        place = before.credentials.get(name) if before else None
        files[name] = place if place and place.is_file() else keys_folder(Home(settings.home)) / name
        if store and environ.get(name):
            files[name] = keys_folder(Home(settings.home)) / name
            to_write[name] = _checked(settings, name, environ)
        elif not files[name].is_file():
            raise UsageError(
                f"the provider's key is expected in {name}, a variable that a service does not see",
                remedy=f"set {name} and use `memoryd service install --store-keys`, which keeps it in {files[name]}"
                " (0600), or write it into a file of your own and name that in api_key_file",
            )
    return Keys(files, to_write)


def as_seen(keys: Keys) -> dict[str, str]:
    """Return the keys as the daemon will find them, by their names. Raises StorageError for a file it cannot read."""
    found = dict(keys.to_write)
    for name in keys.files.keys() - keys.to_write.keys():
        with translated("read", keys.files[name]):
            found[name] = keys.files[name].read_text(encoding="latin-1").strip()
    return found


def take_away_keys(folder: Path) -> list[Path]:
    """Remove the keys in a folder of ours, and it, if nothing else lies there; return what went.

    What has no name of a variable, or is no file, is somebody else's, wherever MEMORYD_HOME points.
    """
    if folder.is_symlink() or not folder.is_dir():
        return []
    with translated("list", folder):
        entries = sorted(folder.iterdir())
    ours = [each for each in entries if (_VARIABLE.fullmatch(each.name) or is_temporary(each.name)) and _is_file(each)]
    removed = [gone for each in ours for gone in placing.take_away(each)]
    placing.take_away_empty(folder)
    return removed


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def write_keys(keys: Keys) -> list[Path]:
    """Write the keys that are new, 0600 in a folder of 0700; return their files, never what is in them."""
    written = []
    for name, key in keys.to_write.items():
        path = keys.files[name]
        with translated("write", path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = temporary_beside(path)
            write_durably(temporary, key.encode("ascii"), mode=0o600)
            temporary.replace(path)
        written.append(path)
    return written


def _checked(settings: Settings, name: str, environ: Mapping[str, str]) -> str:
    provider = next(each for each in settings.providers.values() if each.api_key_env == name)
    key = resolve_api_key(provider, {name: environ[name]})
    if key is None:
        raise ConfigError(f"the provider of {name} needs no key", remedy="run `memoryd config check`")
    return key
