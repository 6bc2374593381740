import os
import signal
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.control.conftest import Shell


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
    assert said == [f"READY=1\nSTATUS=waiting for pid {os.getpid()}"]
