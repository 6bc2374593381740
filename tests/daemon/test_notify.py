import socket
from pathlib import Path

import pytest

from memoryd.daemon.notify import notify

FULL = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text()) + 2


@pytest.mark.parametrize("abstract", [False, True])
def test_lines_arrive_as_one_datagram(tmp_path: Path, abstract: bool) -> None:
    address = f"@memoryd-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(f"\0{address[1:]}" if abstract else address)
        assert notify(address, "READY=1", "STATUS=well") is True
        assert server.recv(1024) == b"READY=1\nSTATUS=well"


def test_a_manager_that_takes_nothing_holds_nobody_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "notify"))
        assert False in [notify(str(tmp_path / "notify"), "WATCHDOG=1") for _ in range(FULL)]


def test_nobody_listening_is_no_error(tmp_path: Path) -> None:
    assert notify(None, "READY=1") is False
    assert notify(str(tmp_path / "nobody"), "READY=1") is False
