"""The command line in this process: `shell("sync", "--now")` is what a person would type, on a home of its own."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoryd.clock import Clock, SystemClock
from memoryd.control.main import main
from memoryd.daemon import control_socket, lock
from memoryd.ledger.database import Ledger
from memoryd.workspace.layout import Home, prepare
from tests.support.sessions import Turn, a_rollout

THREAD = "0194f5a6-89ab-7cde-8123-456789abcdef"
WORDS = ("Always use tabs in the Makefile.", "Never deploy the shop on Fridays.")
CONFIG = """\
[sources]
agents = ["codex"]
roots = {{ codex = ["{codex}"] }}

[consolidate]
debounce = "0s"
min_interval = "0s"
"""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands on one home; every one of them, like a process, with the same bare environment."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.home = Home(folder / "home")
        self.codex = folder / "codex"
        self._capsys = capsys

    def __call__(self, *words: str) -> Said:
        self._capsys.readouterr()
        try:
            code = main([words[0], "--home", str(self.home.path), *words[1:]])
        except SystemExit as ended:  # argparse
            code = int(str(ended.code))
        out, err = self._capsys.readouterr()
        return Said(code, out, err)

    def configure(self, more: str = "") -> None:
        self.home.path.mkdir(mode=0o700, exist_ok=True)
        self.home.config_file.write_text(CONFIG.format(codex=self.codex) + more)

    def record(
        self, *turns: Turn | str, idle_hours: float = 7.0, thread_id: str | None = THREAD, **changes: Any
    ) -> Path:
        """Record one session that ended so many hours ago."""
        return a_rollout(
            self.codex,
            now=SystemClock().now(),
            idle_hours=idle_hours,
            thread_id=thread_id,
            turns=turns or WORDS,
            **changes,
        )

    def write(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Change the ledger as a daemon would."""

        async def change() -> Any:
            prepare(self.home)
            async with await Ledger.open(self.home.ledger_file, clock=SystemClock()) as ledger:
                return await ledger.write(fn, *args, **kwargs)

        return asyncio.run(change())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the ledger locked as another program would that writes to it: a database browser, say."""
        with closing(sqlite3.connect(self.home.ledger_file, isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def held(self, role: str = "daemon", answer: control_socket.Answer | None = None) -> Iterator[None]:
        """Hold the lock from another thread, and answer at the socket as a daemon would (None: nobody answers)."""
        ready, over = threading.Event(), threading.Event()

        async def hold() -> None:
            clock: Clock = SystemClock()
            prepare(self.home)
            with await lock.acquire(self.home.lock_file, clock=clock, role=role):
                if answer is None:
                    ready.set()
                    await asyncio.to_thread(over.wait)
                    return
                async with control_socket.serve(self.home.socket, answer):
                    ready.set()
                    await asyncio.to_thread(over.wait)

        thread = threading.Thread(target=lambda: asyncio.run(hold()))
        thread.start()
        try:
            assert ready.wait(30)
            yield
        finally:
            over.set()
            thread.join(30)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(tmp_path, capsys)
    shell.configure()
    return shell
