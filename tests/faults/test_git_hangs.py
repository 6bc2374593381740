"""A git that hangs in the middle of a publication: SIGTERM ends the daemon all the same, and nothing is lost."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.faults.test_shutdown import LONGEST_END_SECONDS, processes_about
from tests.support.checks import assert_accepted
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import a_rollout

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
HANGS_AT = "update-ref"
"""With the result decided, and the files in place."""


def hanging_git(folder: Path, command: str) -> Path:
    """A git that hangs at one command, with a child of its own that holds its output, until the file is removed."""
    real = shutil.which("git")
    assert real is not None
    folder.mkdir()
    (folder / "hang").touch()
    script = f"""\
#!/bin/sh
case " $* " in *" {command} "*) if [ -e {folder}/hang ]; then touch {folder}/hung; sleep 600 & wait; fi;; esac
exec {real} "$@"
"""
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    return folder


def test_sigterm_ends_a_daemon_whose_git_hangs(place: Place, server: ModelServer, tmp_path: Path) -> None:
    """I1: what was decided is put in place by the next start, and the lease is given back."""
    programs = hanging_git(tmp_path / "programs", HANGS_AT)
    place.configure(base_url=server.base_url, limits__backfill="recent", ledger__lease="1h", consolidate__debounce="0s")
    a_rollout(place.codex, now=time.time(), turns=["Keep the changelog short."])
    place.extra["PATH"] = f"{programs}:{os.environ['PATH']}"
    with place.daemon() as daemon:
        deadline = time.monotonic() + 60
        while not (programs / "hung").exists():
            assert time.monotonic() < deadline, daemon.output
            time.sleep(0.02)
        assert daemon.terminate(within=LONGEST_END_SECONDS) == 0
        assert daemon.events("daemon.stopped")
    assert processes_about(place.folder) == []
    (programs / "hang").unlink()

    done = place.run("sync")

    assert done.code == 0, done
    assert_accepted(place, sessions=1)
