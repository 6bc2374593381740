"""Carries a question into an agent's own program and its answer out: one confined run, of which nothing is left."""

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from memoryd.clock import Clock
from memoryd.errors import ConfigError, StorageError, Unreachable
from memoryd.llm.command.codec import KEY
from memoryd.llm.command.confinement import Bounds, Confiner, Mechanism
from memoryd.llm.command.failures import Run, failure
from memoryd.llm.command.process import Launch, run
from memoryd.llm.command.programs import MODEL, OWN_DEFAULT, Option, completed, program_of
from memoryd.llm.command.surroundings import Surroundings, surroundings
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.fields import object_at, text_at
from memoryd.llm.http import HttpReply
from memoryd.llm.question import JsonObject
from memoryd.llm.visible import Show
from memoryd.trees import remove_tree

RUN_PREFIX: Final = "command-"
SCHEMA_FILE: Final = "schema.json"


@dataclass(frozen=True, slots=True)
class Place:
    """Where runs take place: `runs` is a folder inside `hidden` (MEMORYD_HOME), `environ` is that of this process."""

    runs: Path
    hidden: Path
    environ: Mapping[str, str]


class CommandShell:
    """Runs one command of the user's; safe for several runs at once."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout_seconds: float,
        place: Place,
        confiner: Confiner,
        clock: Clock,
        key_variable: str = "",
    ) -> None:
        self._command = tuple(command)
        self._program = program_of(command)
        self._timeout_seconds = timeout_seconds
        self._place = place
        self._confiner = confiner
        self._clock = clock
        keys = self._program.keys
        self._key_variable = keys[0] if keys and key_variable not in keys else key_variable

    async def aclose(self) -> None:
        """Nothing is held open between two runs."""

    async def post(
        self,
        endpoint: Endpoint,
        path: str,
        payload: bytes,
        *,
        headers: Mapping[str, str],
        show: Show,
        stream: bool = False,
    ) -> HttpReply:
        """Run the program once. Raises the ModelError that a run without an answer stands for, StorageError, DiskFull.

        Cancelled, it ends the program and everything that it started first.
        """
        del path, stream
        asked: JsonObject = json.loads(payload)
        executable = found(self._command[0], self._place.environ)
        if executable is None:
            missing = FileNotFoundError(self._command[0])
            raise Unreachable(f"there is no program {self._command[0]} on PATH", remedy=_remedy(endpoint)) from missing
        key = {self._key_variable: headers[KEY]} if KEY in headers and self._key_variable else {}
        with (
            _run_folder(self._place.runs) as folder,
            surroundings(self._program, folder, self._place.environ, key) as around,
        ):
            return await self._answered(endpoint, asked, executable, folder, around, show)

    async def _answered(
        self,
        endpoint: Endpoint,
        asked: JsonObject,
        executable: str,
        folder: Path,
        around: Surroundings,
        show: Show,
    ) -> HttpReply:
        errand = text_at(asked, "folder")
        cwd = _real(Path(errand)) if errand else folder / "work"
        seconds = _seconds(asked, self._timeout_seconds)
        hidden = _real(self._place.hidden)
        mechanism = await self._confiner.mechanism(folder, hidden)
        words = completed(self._command, self._options(asked, folder, mechanism))
        environ = around.environ if errand else {**around.environ, **self._program.fixed_answering}
        launch = Launch((executable, *_with_model(words[1:], asked)), environ, cwd, folder)
        writable = (folder, *((cwd,) if errand else ()), *(login.real for login in around.logins))
        bounded = self._confiner.confined(mechanism, launch, Bounds(writable, hidden, seconds))
        ended = await run(bounded, text_at(asked, "prompt").encode("utf-8", "replace"), seconds=seconds)
        said = self._program.read(ended.stdout.decode("utf-8", "replace"))
        error = failure(Run(endpoint, ended, said, seconds, self._program.login), now=self._clock.now(), show=show)
        if error is not None:
            error.spent = (said.usage.input, said.usage.output) if said.usage else None
            raise error
        usage = asdict(said.usage) if said.usage else None
        return HttpReply(200, {}, json.dumps({"text": said.text, "usage": usage}))

    def _options(self, asked: JsonObject, folder: Path, mechanism: Mechanism) -> list[Option]:
        """Return the options of this run, of which the command keeps those that it has set itself."""
        program = self._program
        confined = program.confined if mechanism is not Mechanism.NONE else ()
        options = [*program.always, *((*confined, *program.working) if asked.get("folder") else program.answering)]
        model, effort = text_at(asked, "model"), text_at(asked, "effort")
        if model != OWN_DEFAULT:
            options += program.model(model)
        if effort:
            options += program.effort(effort)
        schema = object_at(asked, "schema")
        if schema and program.schema is not None:
            file = folder / SCHEMA_FILE
            file.write_text(json.dumps(schema), encoding="utf-8")
            options += program.schema(str(file))
        return options


def check_command(name: str, command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Raise ConfigError when a provider's program is not there."""
    if found(command[0], environ) is None:
        raise ConfigError(
            f"providers.{name}.command: there is no program {command[0]} on PATH",
            remedy="install it, or write its whole path; a service has another PATH than a shell",
        )


def found(program: str, environ: Mapping[str, str]) -> str | None:
    """Return where a program is, None when it is nowhere."""
    return shutil.which(program, path=environ.get("PATH", os.defpath))


@contextmanager
def _run_folder(runs: Path) -> Iterator[Path]:
    """Make a folder for one run, inside MEMORYD_HOME: a session recorded in it is known as memoryd's own by that."""
    folder = _real(runs) / f"{RUN_PREFIX}{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        (folder / "work").mkdir(mode=0o700)
    except OSError as error:
        raise StorageError(
            f"cannot make {folder} for a program: {error.strerror}", remedy="check the disk and its permissions"
        ) from error
    try:
        yield folder
    finally:
        remove_tree(folder)


def _real(path: Path) -> Path:
    """What confines knows paths as they really are, not by their links."""
    return Path(os.path.realpath(path))


def _with_model(words: Sequence[str], asked: JsonObject) -> tuple[str, ...]:
    return tuple(word.replace(MODEL, text_at(asked, "model")) for word in words)


def _seconds(asked: JsonObject, usual: float) -> float:
    seconds = asked.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else usual


def _remedy(endpoint: Endpoint) -> str:
    return f"install it, or correct command in {endpoint.section}"
