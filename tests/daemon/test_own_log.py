import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd import logs
from memoryd.daemon.own_log import KEPT, OwnLog


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[int]:
    """A descriptor that leads to a log file, as launchd opens one."""
    descriptor = os.open(tmp_path / "daemon.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    yield descriptor
    os.close(descriptor)


def test_a_log_that_is_large_is_begun_anew_and_few_older_ones_are_kept(tmp_path: Path, stream: int) -> None:
    log = OwnLog(tmp_path / "daemon.log", limit_bytes=100, streams=(stream,))
    for number in range(KEPT + 3):
        assert log.rotate_if_large() is False
        os.write(stream, f"{number}".encode() * 100)
        assert log.rotate_if_large() is True
    os.write(stream, b"now")
    kept = {path.name: path.read_text()[:3] for path in tmp_path.iterdir()}
    assert kept == {"daemon.log": "now", "daemon.log.1": "555", "daemon.log.2": "444", "daemon.log.3": "333"}
    assert (tmp_path / "daemon.log").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_rotated_is_written_on(tmp_path: Path, stream: int) -> None:
    (tmp_path / "daemon.log.new").symlink_to(tmp_path / "elsewhere")
    os.write(stream, b"1" * 100)
    assert OwnLog(tmp_path / "daemon.log", limit_bytes=100, streams=(stream,)).rotate_if_large() is False
    os.write(stream, b"2")
    assert (tmp_path / "daemon.log").read_text().endswith("12")
    assert not (tmp_path / "elsewhere").exists()


def test_only_a_log_file_of_our_own_folder_is_ours(tmp_path: Path, stream: int) -> None:
    assert OwnLog.found_in(tmp_path, stream) is not None
    (tmp_path / "other").mkdir()
    assert OwnLog.found_in(tmp_path / "other", stream) is None
    assert OwnLog.found_in(tmp_path / "missing", stream) is None
    reading, writing = os.pipe()
    assert OwnLog.found_in(tmp_path, writing) is None
    os.close(reading)
    os.close(writing)


def test_lines_go_on_in_the_new_file(tmp_path: Path) -> None:
    """In a process of its own, since the standard streams are concerned."""
    script = (
        "import sys; from pathlib import Path; from memoryd import logs; from memoryd.daemon.own_log import OwnLog\n"
        "folder = Path(sys.argv[1]); logs.configure('json', 'info'); log = OwnLog.found_in(folder)\n"
        "log._limit_bytes = 1; logs.get().info('daemon.started'); log.rotate_if_large(); print('said', flush=True)"
    )
    path = tmp_path / "daemon.log"
    with path.open("ab") as opened:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", script, str(tmp_path)],
            {"PYTHONPATH": str(Path(logs.__file__).parents[1])},
            file_actions=[(os.POSIX_SPAWN_DUP2, opened.fileno(), 1), (os.POSIX_SPAWN_DUP2, opened.fileno(), 2)],
        )
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert "daemon.started" in (tmp_path / "daemon.log.1").read_text()
    assert "log.rotated" in path.read_text()
    assert "said" in path.read_text()
