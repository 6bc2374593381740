"""memoryd as a person meets it: real processes in a bare environment, with a house, sessions and a log to wait for.

    place = Place(tmp_path)
    place.configure(base_url=server.base_url)
    done = place.run("sync", "--now", "--backfill", "recent")
    assert done.code == 0, done
    with place.daemon() as daemon:
        daemon.wait_for_event("consolidation.published")

Nothing here sleeps: it waits for the log's events, for the end of a process, or for what the model server was asked.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.support.waiting import wait_on

REPOSITORY = Path(__file__).parents[2]
MEMORYD = (sys.executable, "-W", "error", "-m", "memoryd.control.main")
TRACES = ("Traceback (most recent call last)", "a fault in memoryd itself", "Exception ignored in")
CLOCK = ("LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "DYLD_FORCE_FLAT_NAMESPACE")
"""With these a whole run of the tests is put into another time (libfaketime); its children must live in it too."""
MEASURED = tuple(name for name in os.environ if name.startswith("COVERAGE_PROCESS"))
PATIENCE_SECONDS = 60.0
"""How long to wait for what must come; only a failing test waits that long."""

STAGE1_KIND = "memory_stage1"
GLOBAL_KIND = "memory_consolidate_global"


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What `--json` printed."""
        return json.loads(self.stdout)

    @property
    def complaint(self) -> str:
        """The one line on stderr with which a command refuses (log lines aside)."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("memoryd: ")]
        assert len(lines) == 1, f"expected one line of complaint: {self.stderr}"
        return lines[0]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The log lines on stderr."""
        return [json.loads(line) for line in self.stderr.splitlines() if line.startswith('{"schema"')]


@dataclass
class Place:
    """A folder with everything of one test: HOME, MEMORYD_HOME, a Codex home."""

    folder: Path
    extra: dict[str, str] = field(default_factory=dict)
    """Variables on top of the bare environment."""
    measured: bool = True
    """Whether coverage, where it runs, measures the processes too: their start then takes half as long again."""

    @property
    def home(self) -> Path:
        """MEMORYD_HOME."""
        return self.folder / "home"

    @property
    def codex(self) -> Path:
        """The agent's home, whose sessions are read."""
        return self.folder / "codex"

    @property
    def memories(self) -> Path:
        return self.home / "memories"

    @property
    def user_home(self) -> Path:
        path = self.folder / "user"
        path.mkdir(exist_ok=True)
        return path

    @property
    def environ(self) -> dict[str, str]:
        """PATH and a HOME of the test's own; what measures child processes, or sets their clock, passes."""
        measure = {name: os.environ[name] for name in MEASURED if self.measured and name in os.environ}
        clock = {name: value for name, value in os.environ.items() if name in CLOCK or name.startswith("FAKETIME")}
        return {"PATH": os.environ["PATH"], "HOME": str(self.user_home), **measure, **clock, **self.extra}

    def configure(
        self, *, base_url: str | None = None, kind: str = "openai", key: str | None = None, **changes: object
    ) -> None:
        """Write config.toml: a scripted provider (offline without `base_url`), short waits; a __ stands for a dot."""
        settings: dict[str, dict[str, object]] = {
            "sources": {"agents": ["codex"]},
            "sources.roots": {"codex": [str(self.codex)]},
            "consolidate": {"debounce": "0s", "min_interval": "0s"},
            "discover": {},
            "ledger": {"retry_base": "1s"},
        }
        if base_url is not None:
            settings["providers.scripted"] = {"kind": kind, "base_url": base_url, "timeout": "60s"}
            settings["extract"] = {"provider": "scripted", "model": "scripted-1"}
            settings["consolidate"] |= {"provider": "scripted", "model": "scripted-1"}
            if key is not None:
                settings["providers.scripted"]["api_key_env"] = "SCRIPTED_API_KEY"
                self.extra["SCRIPTED_API_KEY"] = key
        for name, value in changes.items():
            section, _, last = name.rpartition("__")
            settings.setdefault(section.replace("__", "."), {})[last] = value
        self.write_config("\n".join(_toml(section, keys) for section, keys in settings.items()))

    def write_config(self, text: str) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "config.toml").write_text(text, encoding="utf-8")

    def words(self, command: str, *arguments: str) -> list[str]:
        return [*MEMORYD, command, "--home", str(self.home), *arguments]

    def run(self, command: str, *arguments: str, wrapper: Sequence[str] = (), clean: bool = True) -> Finished:
        """Run one command to its end. Whatever happens, it must not die of an unforeseen error (`clean`)."""
        return self.execute([*wrapper, *self.words(command, *arguments)], clean=clean)

    def execute(self, words: Sequence[str], *, clean: bool = True) -> Finished:
        done = subprocess.run(
            words,
            check=False,
            env=self.environ,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS * 2,
        )
        finished = Finished(done.returncode, done.stdout, done.stderr)
        if clean:
            assert_no_traceback(finished.stderr)
        return finished

    def status(self) -> Any:
        return self.run("status", "--json").json

    def start(self, *words: str) -> "Process":
        """Start any command and look at it while it runs."""
        return Process(list(words), self.environ)

    @contextmanager
    def daemon(self) -> Iterator["Process"]:
        """Run the daemon while the block lasts, from its first scan on: what is recorded after it is no history.

        At the block's end SIGTERM must end it with 0, without a traceback.
        """
        with self.start(*self.words("run", "--log-level", "debug")) as process:
            process.wait_for_event("daemon.started")
            process.wait_for_event("scan.completed")
            yield process
            if process.is_running:
                assert process.terminate() == 0, process.output
            assert_no_traceback(process.output)

    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the ledger beside whoever writes it."""
        connection = sqlite3.connect(f"file:{self.home / 'ledger.sqlite3'}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    def requests_made(self) -> int:
        """How many requests the ledger accounts for."""
        return int(self.query("SELECT count(*) FROM requests")[0][0])

    def git(self, *arguments: str) -> str:
        """Ask the memory folder's history."""
        done = subprocess.run(
            ["git", "-C", str(self.memories), "-c", "safe.directory=*", *arguments],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.user_home),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_OPTIONAL_LOCKS": "0",
            },
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8", "replace").strip()

    def artefacts(self) -> dict[str, bytes]:
        """Every file of the memory folder but its history, by path."""
        return {
            str(path.relative_to(self.memories)): path.read_bytes()
            for path in sorted(self.memories.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.memories).parts
        }


class Process:
    """A running command, in a process group of its own.

    Its stderr is read as it comes; log lines become events that can be waited for.
    """

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            words,
            env=dict(environ),
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._stdout: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self._popen.stderr, self._keep), daemon=True),
            threading.Thread(target=self._read, args=(self._popen.stdout, self._stdout.append), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self.wait()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    @property
    def output(self) -> str:
        """Everything it said so far, both streams."""
        with self._changed:
            return "".join([*self._stdout, *self._lines])

    @property
    def stdout(self) -> str:
        return "".join(self._stdout)

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The log's events so far, of one name or all."""
        with self._changed:
            return [event for event in self._events if name in (None, event["event"])]

    def wait_for_event(
        self, name: str, count: int = 1, *, where: Callable[[dict[str, Any]], bool] = lambda _event: True
    ) -> dict[str, Any]:
        """Wait until so many events of a name (for which `where` holds) were logged, and return the last of them."""

        def found() -> list[dict[str, Any]]:
            return [event for event in self._events if event["event"] == name and where(event)]

        with self._changed:
            wait_on(self._changed, lambda: len(found()) >= count or self._over(), PATIENCE_SECONDS)
            events = found()
        assert len(events) >= count, f"{len(events)} of {count} events {name}; the log:\n{self.output}"
        return events[count - 1]

    def wait_for_lines(self, count: int, *, or_events: tuple[str, int]) -> None:
        """Wait until it has written so many lines on stderr, or so many events of a name, or has ended."""
        name, most = or_events

        def enough() -> bool:
            named = sum(event["event"] == name for event in self._events)
            return len(self._lines) >= count or named >= most or self._over()

        with self._changed:
            wait_on(self._changed, enough, PATIENCE_SECONDS)

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait_until_frozen(self) -> None:
        """Wait until SIGSTOP, whoever sent it, has stopped the process."""
        _pid, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"it ended instead:\n{self.output}"

    def freeze(self) -> None:
        """SIGSTOP: it runs no more, and knows nothing of it."""
        self.send(signal.SIGSTOP)
        self.wait_until_frozen()

    def thaw(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    def is_alone_in_its_group(self) -> bool:
        """Tell whether nothing that it started, and nothing that those started, is left."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def terminate(self, within: float = PATIENCE_SECONDS) -> int:
        """SIGTERM, and the exit code; subprocess.TimeoutExpired when it has not ended `within` so many seconds."""
        self.send(signal.SIGTERM)
        return self.wait(within)

    def kill(self) -> int:
        """kill -9, and the exit code."""
        self._popen.kill()
        return self.wait()

    def wait(self, within: float = PATIENCE_SECONDS) -> int:
        """Wait for its end, and return the exit code."""
        code = self._popen.wait(within)
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is not None:
                stream.close()
        return code

    def _over(self) -> bool:
        return self._popen.poll() is not None and not any(reader.is_alive() for reader in self._readers[:1])

    def _keep(self, line: str) -> None:
        with self._changed:
            self._lines.append(line)
            if line.startswith('{"schema"'):
                self._events.append(json.loads(line))
            self._changed.notify_all()

    def _read(self, stream: Any, keep: Callable[[str], object]) -> None:
        for line in stream:
            keep(line)
        with self._changed:
            self._changed.notify_all()


def assert_no_traceback(text: str) -> None:
    """Nothing unforeseen happened, neither on the way out nor in a log."""
    assert not any(trace in text for trace in TRACES), text
    assert '"event": "job.crashed"' not in text, text
    assert '"event": "service.crashed"' not in text, text


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Look again and again until something outside of our processes holds; fails after a long while."""
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < ends_at, f"waited in vain: {what}"
        time.sleep(0.02)


def _toml(section: str, keys: Mapping[str, object]) -> str:
    return "\n".join([f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()), ""])


THREAD_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def thread_id_of(path: Path) -> str:
    """The thread id in a rollout's name."""
    found = THREAD_ID.search(path.name)
    assert found is not None
    return found[0]
