"""The guards of the test session work: nothing leaves this machine, nothing is written under the real HOME."""

import os
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.support import guards
from tests.support.guards import REAL_HOME, Forbidden

STRANGER = "192.0.2.1"  # reserved for documentation: nobody answers there (RFC 5737)


def outside() -> Path:
    """Return a path below the real HOME that no test may write."""
    path = REAL_HOME / "memoryd-guard-check"
    if not guards.is_protected(path):
        pytest.skip(f"the real HOME {REAL_HOME} lies where tests may write")
    return path


def test_writing_a_file_under_the_real_home_is_refused() -> None:
    path = outside()
    for attempt in (
        lambda: path.write_text("x"),
        lambda: path.open("a"),
        lambda: os.open(path, os.O_RDWR | os.O_CREAT),
    ):
        with pytest.raises(Forbidden, match="in the real HOME"):
            attempt()
    assert not path.exists()


def test_changing_a_folder_under_the_real_home_is_refused(tmp_path: Path) -> None:
    path = outside()
    (tmp_path / "file").write_text("x")
    with pytest.raises(Forbidden, match=r"os\.mkdir"):
        path.mkdir()
    with pytest.raises(Forbidden, match=r"os\.rename"):
        (tmp_path / "file").rename(path)
    with pytest.raises(Forbidden, match=r"os\.remove"):
        path.unlink()
    assert not path.exists()


def test_the_real_home_cannot_be_reached_by_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(outside().parent)
    with pytest.raises(Forbidden):
        (tmp_path / "home" / "memoryd-guard-check").write_text("x")


def test_reading_under_the_real_home_and_writing_elsewhere_are_allowed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        outside().read_text()
    (tmp_path / "file").write_text("x")
    Path(os.devnull).write_text("x")


def test_connecting_to_another_machine_is_refused() -> None:
    with socket.socket() as tcp, pytest.raises(Forbidden, match=STRANGER):
        tcp.connect((STRANGER, 80))
    with socket.socket(type=socket.SOCK_DGRAM) as udp, pytest.raises(Forbidden, match=STRANGER):
        udp.sendto(b"x", (STRANGER, 53))


def test_looking_up_another_machine_is_refused() -> None:
    with pytest.raises(Forbidden, match=r"api\.example"):
        socket.getaddrinfo("api.example", 443)


def test_a_model_cannot_be_asked_for_real() -> None:
    with pytest.raises(Forbidden):
        urllib.request.urlopen("http://api.openai.com/v1/models")


def test_loopback_and_unix_sockets_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
    monkeypatch.chdir(tmp_path)  # the address of a unix socket is short
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("s")
        server.listen()
        client.connect("s")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", None, ""])
def test_the_names_of_this_machine_are_local(host: str | None) -> None:
    assert guards.is_local_host(host)


def test_the_environment_of_a_test_is_bare(bare_environment: Path) -> None:
    assert Path.home() == bare_environment
    assert list(bare_environment.iterdir()) == []
    assert [name for name in os.environ if guards.is_personal(name)] == []


@pytest.mark.parametrize("name", ["MEMORYD_HOME", "CODEX_HOME", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NOTIFY_SOCKET"])
def test_personal_variables_are_known(name: str) -> None:
    assert guards.is_personal(name)
    assert not guards.is_personal("PATH")
