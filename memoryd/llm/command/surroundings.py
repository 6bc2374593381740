"""What a run finds around it: an environment of few variables, and a home of its own that holds only the login.

The login is linked, never copied: programs renew it, and a renewed copy would end the one that the user has. No
session, hook, memory or server of the user's is in that home, and no session of a run gets into a watched folder.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.config import user_home
from memoryd.errors import StorageError
from memoryd.llm.command.programs import Program

PASSED: Final = frozenset(
    (
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TZ", "USER"),
        *("SSL_CERT_DIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    )
)
MAX_LOGIN_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Login:
    """One file of a login: where it really lies, the link to it in the run's home, and what it was at the start."""

    real: Path
    link: Path
    state: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A run's environment, and what it may write besides its own folder: its login, which it renews."""

    environ: Mapping[str, str]
    logins: tuple[Login, ...]


@contextmanager
def surroundings(
    program: Program, run: Path, environ: Mapping[str, str], key: Mapping[str, str]
) -> Iterator[Surroundings]:
    """Furnish the folder `run` for one run; what the program renewed of its login goes back at the end.

    `key` is a variable that carries a configured key, or nothing. Raises StorageError.
    """
    try:
        passed = {**_passed(program, environ), **program.fixed, **key}
        variables, logins = _furnished(program, run, environ, passed)
    except OSError as error:
        raise StorageError(
            f"cannot prepare {run} for a program: {error.strerror}", remedy="check the disk and its permissions"
        ) from error
    try:
        yield Surroundings({**passed, **variables}, logins)
    finally:
        for login in logins:
            _give_back(login)


def _furnished(
    program: Program, run: Path, environ: Mapping[str, str], passed: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Login, ...]]:
    variables = {"TMPDIR": str(_made(run / "tmp")), "TERM": "dumb", "NO_COLOR": "1"}
    for name in program.private:
        variables[name] = str(_made(run / name.lower()))
    home = program.home
    if home is None:
        return variables, ()
    theirs = Path(environ.get(home.variable) or user_home(environ) / home.usual) / home.below
    found = [theirs / name for name in home.logins if (theirs / name).is_file()]
    if home.is_optional and not found and not any(name in passed for name in (*program.variables, *program.keys)):
        own_home = {home.variable: environ[home.variable]} if environ.get(home.variable) else {}
        return variables | own_home, ()
    own = _made(run / "agent") / home.below
    own.mkdir(mode=0o700, exist_ok=True)
    variables[home.variable] = str(run / "agent")
    for name, text in program.settings(passed).items():
        (own / name).write_text(text, encoding="utf-8")
    return variables, tuple(_linked(file, own / file.name) for file in found)


def _passed(program: Program, environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in PASSED or name.startswith("LC_") or name in program.variables
    }


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _linked(file: Path, link: Path) -> Login:
    real = file.resolve()
    link.symlink_to(real)
    return Login(real, link, _state(real))


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _give_back(login: Login) -> None:
    """A program that writes a new file in place of the link has renewed its login: the old one may be void by now.

    It goes back unless somebody else has changed the login meanwhile.
    """
    try:
        if login.link.is_symlink() or not login.link.is_file() or _state(login.real) != login.state:
            return
        renewed = login.link.read_bytes()
        if not 0 < len(renewed) <= MAX_LOGIN_BYTES:
            return
        temporary = login.real.with_name(f".{login.real.name}.{os.getpid()}.memoryd")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor, which Path cannot open)
            file.write(renewed)
            os.fsync(file.fileno())
        temporary.rename(login.real)
    except OSError:
        return
