"""Runs systemctl, loginctl, journalctl and launchctl: bounded in time, and always in plain English."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.errors import NoServiceManager, ServiceError

ANSWER_SECONDS: Final = 30.0
_PLAIN: Final = {"LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", "SYSTEMD_URLIFY": "0", "PAGER": "cat"}
"""What makes their answers the same on every machine, so that they can be read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a program ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Its complaint as one line."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return lines[0] if lines else f"exit {self.code}"


def call(words: Sequence[str], environ: Mapping[str, str], *, seconds: float = ANSWER_SECONDS) -> Answer:
    """Run a program to its end. Raises NoServiceManager where there is none, ServiceError without an answer in time."""
    try:
        done = subprocess.run(
            [_found(words[0], environ), *words[1:]],
            env={**environ, **_PLAIN},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServiceError(
            f"`{' '.join(words)}` gave no answer within {seconds:g} s", remedy="look whether the service manager hangs"
        ) from None
    except OSError as error:
        raise ServiceError(f"cannot run {words[0]}: {error.strerror}", remedy="look at the program") from None
    return Answer(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def show(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a program that talks to the person itself, until it ends or ^C; return its exit code."""
    try:
        return subprocess.run([_found(words[0], environ), *words[1:]], env=dict(environ), check=False).returncode
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        raise ServiceError(f"cannot run {words[0]}: {error.strerror}", remedy="look at the program") from None


def _found(program: str, environ: Mapping[str, str]) -> str:
    place = shutil.which(program, path=environ.get("PATH", ""))
    if place is None:
        raise NoServiceManager(f"there is no program {program} on PATH", remedy="start `memoryd run` yourself")
    return place
