"""Guards for the whole test session: nothing is written under the real HOME, nothing is sent off this machine.

They hang on the interpreter's audit events, so that they also see what the standard library and extensions do. A hook
cannot be taken out again; `install` adds it once per process.
"""

import ipaddress
import os
import pwd
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

REAL_HOME = Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
REPOSITORY = Path(__file__).parents[2]
PERSONAL = re.compile(
    r"MEMORYD_.*|CODEX_HOME|CLAUDE_CONFIG_DIR|COPILOT_HOME|GEMINI_CLI_HOME|QWEN_HOME|QWEN_RUNTIME_DIR|XDG_.*"
    r"|NOTIFY_SOCKET|WATCHDOG_.*|DBUS_.*|.*_API_KEY|.*_proxy|GIT_.*",
    re.IGNORECASE,
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING = {  # event: which of its arguments are the paths that it changes
    "os.mkdir": slice(0, 1),
    "os.remove": slice(0, 1),
    "os.rmdir": slice(0, 1),
    "os.chmod": slice(0, 1),
    "os.truncate": slice(0, 1),
    "os.rename": slice(0, 2),
    "os.link": slice(1, 2),
    "os.symlink": slice(1, 2),
}
SENDING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
RESOLVING = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
OURS = tuple(
    Path(os.path.realpath(folder)) for folder in (REPOSITORY, sys.prefix, sys.base_prefix, tempfile.gettempdir())
)


class Forbidden(BaseException):
    """A test reached outside. Derives from BaseException so that no `except Exception` hides it."""


def is_personal(name: str) -> bool:
    """Say whether an environment variable belongs to the person at this machine rather than to the test."""
    return PERSONAL.fullmatch(name) is not None


def is_protected(path: object, *, follow: bool = True) -> bool:
    """Say whether a path lies in the real HOME (this checkout, this Python and temporary folders do not count).

    `follow` is for opening, which goes through a symbolic link; renaming or removing means the link itself.
    """
    if not isinstance(path, str | bytes | os.PathLike) or Path("/") == REAL_HOME:
        return False
    named = Path(os.fsdecode(path))
    real = Path(os.path.realpath(named)) if follow else Path(os.path.realpath(named.parent)) / named.name
    return real.is_relative_to(REAL_HOME) and not any(real.is_relative_to(folder) for folder in OURS)


def is_local(address: object) -> bool:
    """Say whether a socket address stays on this machine: a unix socket, or a loopback address."""
    if not isinstance(address, tuple):
        return True
    return is_local_host(address[0])


def is_local_host(host: object) -> bool:
    """Say whether a host name or address means this machine."""
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def judge(event: str, args: tuple[Any, ...]) -> None:
    """Raise Forbidden when an audit event writes under the real HOME or leaves this machine."""
    if event == "open" and isinstance(args[2], int) and args[2] & WRITING and is_protected(args[0]):
        raise Forbidden(f"a test opened {args[0]!r} for writing, in the real HOME")
    if event in CHANGING and any(is_protected(path, follow=False) for path in args[CHANGING[event]]):
        raise Forbidden(f"a test changed the real HOME: {event} {args[:2]!r}")
    if event in SENDING and not is_local(args[1]):
        raise Forbidden(f"a test sent to {args[1]!r}: only loopback and unix sockets are allowed")
    if event in RESOLVING and not is_local_host(args[0]):
        raise Forbidden(f"a test looked up {args[0]!r}: only loopback and unix sockets are allowed")


def install() -> None:
    """Add the hook to this process. It cannot be removed, so call this once."""
    sys.addaudithook(judge)
