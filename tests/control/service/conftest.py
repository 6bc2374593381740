"""Service managers that a test can bend: programs of that name on PATH, which note what they were asked."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memoryd.control.service.ground import Ground, Wish

Answer = tuple[int, str, str]
"""An exit code, what goes to stdout, what goes to stderr."""


@dataclass
class Programs:
    """Programs that answer by pattern: the first pattern that fits, its answers one after the other, the last for good.

    What fits none succeeds and says nothing.
    """

    folder: Path
    answers: list[tuple[str, tuple[Answer, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._write()

    def add(self, name: str) -> None:
        """Put a program on PATH."""
        program = self.folder / name
        program.write_text(f"#!/bin/sh\n. {self._script}\n")
        program.chmod(0o700)

    def when(self, pattern: str, *answers: Answer) -> None:
        """Answer a command line, such as `systemctl --user enable *`; what is said last goes before what was said."""
        self.answers.append((pattern, answers))
        self._write()

    @property
    def calls(self) -> list[str]:
        """The command lines so far."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def _script(self) -> str:
        return shlex.quote(str(self.folder / "answers.sh"))

    def _write(self) -> None:
        """Write what all programs do as one shell script, which starts ten times as fast as Python."""
        here = shlex.quote(str(self.folder))
        lines = [f"here={here}", 'line="${0##*/} $*"', 'printf "%s\\n" "$line" >> "$here/calls"', 'case "$line" in']
        for number, (pattern, answers) in reversed(list(enumerate(self.answers))):
            lines.append("*".join(shlex.quote(part) if part else "" for part in pattern.split("*")) + ")")
            lines += [
                f'n=0; [ -f "$here/{number}" ] && read -r n < "$here/{number}"',
                f'echo $((n + 1)) > "$here/{number}"',
            ]
            lines.append("case $n in")
            for count, (code, out, err) in enumerate(answers):
                label = str(count) if count + 1 < len(answers) else "*"
                said = f"printf %s {shlex.quote(out)}; printf %s {shlex.quote(err)} >&2"
                lines.append(f"{label}) {said}; exit {code};;")
            lines.append("esac;;")
        (self.folder / "answers.sh").write_text("\n".join([*lines, "esac", ""]))


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "programs")


@pytest.fixture
def ground(tmp_path: Path, programs: Programs) -> Ground:
    """A user whose PATH holds the programs of the test and nothing else."""
    home = tmp_path / "user"
    home.mkdir()
    environ = {"HOME": str(home), "PATH": str(programs.folder), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    return Ground(environ, os.getuid(), "mika", home)


def a_wish(
    interpreter: str = "/opt/venv/bin/python",
    environment: Mapping[str, str] | None = None,
    credentials: Mapping[str, Path] | None = None,
) -> Wish:
    return Wish(Path(interpreter), environment or {"PATH": "/usr/bin:/bin"}, credentials or {})


def shown(**properties: object) -> tuple[int, str, str]:
    """What `systemctl show` prints."""
    told: dict[str, Any] = {
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "Result": "success",
        "ExecMainCode": 0,
        "ExecMainStatus": 0,
        "MainPID": 4711,
        "StatusText": "watching",
        "NRestarts": 0,
        "UnitFileState": "enabled",
        **properties,
    }
    return 0, "".join(f"{name}={value}\n" for name, value in told.items()), ""
