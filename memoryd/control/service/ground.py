"""Whose service it is and on what it stands: the user, the environment of this command, and the program to start."""

import pwd
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd import clock
from memoryd.config import user_home
from memoryd.control.service.calling import call
from memoryd.errors import ServiceError

STANDARD_PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""What a service manager searches by itself; on macOS Homebrew's folders come from the PATH of the installer."""

_FLEETING: Final = frozenset((".cache", "Caches", "tmp"))


@dataclass(frozen=True, slots=True)
class Ground:
    """The user who installs, for whom the service runs; `pause` holds this command up for some seconds.

    `home` is what HOME says here; `account_home` what a service manager takes for it, None: the same.
    """

    environ: Mapping[str, str]
    uid: int
    user: str
    home: Path
    pause: Callable[[float], None] = clock.pause
    account_home: Path | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str], uid: int) -> "Ground":
        """Look the user up."""
        home = user_home(environ).absolute()
        try:
            user = pwd.getpwuid(uid)
        except KeyError:  # a container that knows no user of that number
            return cls(environ, uid, str(uid), home)
        return cls(environ, uid, user.pw_name, home, account_home=Path(user.pw_dir))

    @property
    def is_elsewhere(self) -> bool:
        """Tell whether HOME was set to another folder than a service would see."""
        return self.account_home is not None and self.account_home != self.home


@dataclass(frozen=True, slots=True)
class Wish:
    """What the service is to be. `environment` is all that it sees besides what the manager gives; no secret is in it.

    `credentials`: files with one key each, by the name of the variable that `api_key_env` names.
    """

    interpreter: Path
    environment: Mapping[str, str]
    credentials: Mapping[str, Path]


def words_of(interpreter: Path) -> tuple[str, ...]:
    """Return the command of the daemon; -P: what lies in the folder it starts in must not be taken for a module."""
    return (str(interpreter), "-P", "-m", "memoryd.control.main", "run")


def is_fleeting(interpreter: Path) -> bool:
    """Tell whether an interpreter lies in a cache or among temporary files, as that of `uvx` or `pipx run` does."""
    return bool(_FLEETING & set(interpreter.parts))


def refuse_unable(wish: Wish, ground: Ground) -> None:
    """Raise ServiceError when the interpreter does not start memoryd with what the service will see."""
    asked: Sequence[str] = (*words_of(wish.interpreter)[:-1], "--version")
    answer = call(asked, {"HOME": str(ground.home), **wish.environment})
    if answer.code != 0 or "memoryd" not in answer.out:
        last = (answer.err.strip().splitlines() or [f"exit {answer.code}"])[-1]
        raise ServiceError(
            f"{wish.interpreter} does not start memoryd for a service, which sees no variables of your shell: {last}",
            remedy="install memoryd, for instance with pipx, and call that one",
        )
