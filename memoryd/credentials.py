"""Finds the key of a provider: in its own file, in a credential of the service, or in a variable.

What is wrong with one becomes a ConfigError that says where it should stand; a key itself stands in no message.
"""

import os
import re
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from memoryd.errors import ConfigError
from memoryd.sections import Provider

_LARGEST_KEY_FILE = 16_384


def resolve_api_key(provider: Provider, environ: Mapping[str, str]) -> str | None:
    """Return the provider's key, None when it needs none. Raises ConfigError; the key stands in no message."""
    if provider.api_key_file is not None:
        return _checked_key(_read_key_file(provider.api_key_file), f"the key file {provider.api_key_file}")
    if provider.api_key_env is None:
        return None
    if credential := _credential(provider.api_key_env, environ):
        return _checked_key(_read_credential(credential), f"the credential {provider.api_key_env} of the service")
    if not environ.get(provider.api_key_env):
        raise ConfigError(
            f"the environment variable {provider.api_key_env}, which should hold the provider's key, is not set",
            remedy=f"set {provider.api_key_env}, or write the key into a file and name it in api_key_file",
        )
    return _checked_key(environ[provider.api_key_env], f"the environment variable {provider.api_key_env}")


def key_stamp(provider: Provider) -> str:
    """Return what changes when the provider's key file does: its time, size and place; empty without one."""
    if provider.api_key_file is None:
        return ""
    try:
        status = provider.api_key_file.stat()
    except OSError:
        return "missing"
    return f"{status.st_mtime_ns} {status.st_size} {status.st_ino} {status.st_mode & 0o777:o}"


def _credential(name: str, environ: Mapping[str, str]) -> Path | None:
    """Return systemd's credential of that name (LoadCredential=NAME:PATH), None when the service has none."""
    folder = environ.get("CREDENTIALS_DIRECTORY")
    path = Path(folder, name) if folder else None
    return path if path is not None and path.is_file() else None


def _read_key_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(f"cannot read the key file {path}: {error.strerror}", remedy="correct api_key_file") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"the key file {path} is not a regular file", remedy="correct api_key_file")
        if status.st_mode & 0o077:
            raise ConfigError(
                f"the key file {path} can be read by others", remedy=f"chmod 600 {shlex.quote(str(path))}"
            )
        return file.read(_LARGEST_KEY_FILE).decode("latin-1")


def _read_credential(path: Path) -> str:
    """Read what the service manager laid there for this service alone; its modes are the manager's business."""
    try:
        return path.read_bytes()[:_LARGEST_KEY_FILE].decode("latin-1")
    except OSError as error:
        raise ConfigError(f"cannot read the credential {path}: {error.strerror}", remedy="look at the unit") from None


def _checked_key(text: str, place: str) -> str:
    key = text.strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise ConfigError(
            f"{place} does not hold one key: it is empty, or has spaces or odd characters", remedy="correct it"
        )
    return key
