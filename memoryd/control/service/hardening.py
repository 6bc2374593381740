"""The drop-in that lets the daemon write to its own folder alone; opt-in, since it needs user namespaces.

Left out although they look right: MemoryDenyWriteExecute crashes Node, SystemCallFilter and RestrictNamespaces break
bubblewrap, PrivateTmp hides sessions below /tmp, and ProtectKernelTunables keeps bubblewrap from mounting /proc.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from memoryd.config import Settings, user_home
from memoryd.control.service.unit import quoted
from memoryd.llm.command.programs import program_of

DROP_IN: Final = "50-hardening.conf"
CANNOT: Final = {217: "USER", 218: "CAPABILITIES", 226: "NAMESPACE"}
"""Exit codes by which systemd says that the machine does not allow it (systemd.exec(5))."""
_TEXT: Final = """\
# memoryd as a service of one user: hardening, written by `memoryd service install --harden`.
# A user's systemd ignores the second line without the first.
[Service]
PrivateUsers=yes
ProtectSystem=strict
ReadWritePaths={writable}
"""


def render_hardening(writable: Iterable[Path]) -> str:
    """Return the drop-in; what is `writable` need not exist, but for the first."""
    first, *more = map(str, writable)
    return _TEXT.format(writable=" ".join([quoted(first), *(quoted(f"-{path}") for path in more)]))


def writable_places(settings: Settings, environ: Mapping[str, str]) -> list[Path]:
    """Return memoryd's home, the folders for temporary files, and the logins that agents' programs renew."""
    return list(dict.fromkeys([settings.home, Path("/tmp"), Path("/var/tmp"), *_logins(settings, environ)]))  # noqa: S108 - the folders themselves


def _logins(settings: Settings, environ: Mapping[str, str]) -> Iterator[Path]:
    for provider in settings.providers.values():
        login = program_of(provider.command).home if provider.command else None
        if login is not None:
            yield Path(environ.get(login.variable) or user_home(environ) / login.usual) / login.below
