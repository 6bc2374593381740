import asyncio
import os
import signal
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from memoryd.control.commands.run import LOCKED_SECONDS, Waiting
from memoryd.daemon.starts import FILE, MOST
from memoryd.errors import LedgerLocked
from tests.control.conftest import Shell
from tests.support.clock import FakeClock


def signal_when(shell: Shell, number: signal.Signals) -> threading.Thread:
    """Send this process a signal once the daemon in it answers at its socket."""

    def send() -> None:
        ends_at = time.monotonic() + 30
        while not shell.home.socket.exists() and time.monotonic() < ends_at:
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_with_exit_0(shell: Shell, number: signal.Signals) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    sender = signal_when(shell, number)
    said = shell("run", "--log-level", "info", "--log-format", "json")
    sender.join()
    assert said.code == 0, said
    assert '"daemon.started"' in said.err
    assert '"daemon.stopped"' in said.err
    assert not shell.home.socket.exists()


def test_a_second_daemon_names_the_first_and_ends_well(shell: Shell) -> None:
    with shell.held("daemon"):
        said = shell("run")
    assert said.code == 0
    assert f"already running (pid {os.getpid()})" in said.out


def test_beside_a_command_that_holds_the_lock_it_waits_and_says_so(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, ExitStack() as holding:
        manager.bind(address)
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        holding.enter_context(shell.held("sync"))

        def let_go() -> None:
            said.append(manager.recv(4096).decode())
            holding.close()

        said: list[str] = []
        waiter = threading.Thread(target=let_go)
        waiter.start()
        sender = signal_when(shell, signal.SIGTERM)
        ended = shell("run")
        waiter.join()
        sender.join()
    assert ended.code == 0, ended
    assert said == [f"READY=1\nWATCHDOG=1\nSTATUS=waiting for pid {os.getpid()}"]


def test_under_launchd_a_start_that_fails_again_and_again_stays_down_with_exit_0(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """launchd has no limit on starts, and starts again whatever ended with anything but 0."""
    monkeypatch.setenv("XPC_SERVICE_NAME", "dev.memoryd")
    good = shell.home.config_file.read_text()
    shell.home.config_file.write_text("[discover]\nmin_idel = '1s'\n")
    assert [shell("run").code for _ in range(MOST)] == [78] * MOST
    said = shell("run")
    assert (said.code, said.err.count("start.abandoned")) == (0, 1)

    shell.home.config_file.write_text(good)
    (shell.codex / "sessions").mkdir(parents=True)
    sender = signal_when(shell, signal.SIGTERM)
    assert shell("run").code == 0
    sender.join()
    assert not (shell.home.path / FILE).exists()


def test_a_ledger_that_another_program_keeps_locked_is_said_once_and_waited_for(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    assert shell("sync").code == 0
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, ExitStack() as locking:
        manager.bind(address)
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        locking.enter_context(shell.locked())

        def let_go() -> None:
            said.extend(manager.recv(4096).decode() for _ in range(2))
            locking.close()

        said: list[str] = []
        waiter = threading.Thread(target=let_go)
        waiter.start()
        sender = signal_when(shell, signal.SIGTERM)
        ended = shell("run", "--log-format", "json")
        waiter.join()
        sender.join()
    assert ended.code == 0, ended
    assert said == ["READY=1\nWATCHDOG=1\nSTATUS=waiting for a program that keeps the ledger locked"] * 2
    (line,) = [line for line in ended.err.splitlines() if '"start.awaited"' in line]
    assert "database is locked (another program works on it: end it" in line


class Hasty(FakeClock):
    async def sleep(self, seconds: float) -> None:
        self.freeze(seconds)


async def test_who_gets_in_the_way_after_a_start_is_waited_for_like_the_first(tmp_path: Path) -> None:
    clock, locked = FakeClock(), LedgerLocked("database is locked", remedy="end the other program")
    stopped = asyncio.Event()
    stopped.set()
    waiting = Waiting(tmp_path, clock, None, stopped)
    assert await waiting.for_others(locked)
    waiting.end()
    clock.freeze(LOCKED_SECONDS)
    assert await waiting.for_others(locked)


async def test_in_the_foreground_it_gives_up_after_a_minute(tmp_path: Path) -> None:
    clock, locked = Hasty(), LedgerLocked("database is locked", remedy="end the other program")
    waiting = Waiting(tmp_path, clock, None, asyncio.Event())
    began = clock.monotonic()
    while clock.monotonic() - began < LOCKED_SECONDS:
        assert await waiting.for_others(locked)
    with pytest.raises(LedgerLocked, match="end the other program"):
        await waiting.for_others(locked)
