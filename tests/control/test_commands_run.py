import os
import signal
import threading
import time

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
