import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.clock import SystemClock
from memoryd.daemon import lock
from memoryd.errors import LeaseLost, LedgerBusy, StorageError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memoryd.lock"


async def test_the_holder_is_told_to_whoever_comes_second(path: Path) -> None:
    with await lock.acquire(path, clock=SystemClock(), role="daemon"):
        who = lock.holder(path)
        assert who is not None
        assert (who.pid, who.role) == (os.getpid(), "daemon")
        with pytest.raises(LedgerBusy, match=f"process {os.getpid()}") as caught:
            await lock.acquire(path, clock=SystemClock(), role="sync")
        assert caught.value.pid == os.getpid()


async def test_a_released_lock_is_free_and_releasing_twice_is_harmless(path: Path) -> None:
    held = await lock.acquire(path, clock=SystemClock(), role="daemon")
    held.release()
    held.release()
    assert lock.holder(path) is None
    (await lock.acquire(path, clock=SystemClock(), role="sync")).release()


def test_nobody_holds_a_lock_that_was_never_taken(path: Path) -> None:
    assert lock.holder(path) is None


async def test_a_killed_holder_leaves_the_lock_free_whatever_its_file_says(path: Path) -> None:
    program = (
        "import asyncio, os, signal, sys; from pathlib import Path; from memoryd.clock import SystemClock;"
        "from memoryd.daemon import lock;"
        "held = asyncio.run(lock.acquire(Path(sys.argv[1]), clock=SystemClock(), role='daemon'));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert json.loads(path.read_text())["role"] == "daemon"
    assert lock.holder(path) is None
    (await lock.acquire(path, clock=SystemClock(), role="daemon")).release()


@pytest.mark.parametrize("replace", [False, True])
async def test_a_holder_whose_lock_file_was_removed_or_replaced_has_to_stop(path: Path, replace: bool) -> None:
    with await lock.acquire(path, clock=SystemClock(), role="daemon") as held:
        held.still_ours()
        path.unlink()
        if replace:
            path.touch()
        with pytest.raises(LeaseLost, match="removed or replaced"):
            held.still_ours()


async def test_a_folder_in_place_of_the_lock_is_a_clear_error(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageError, match="cannot open"):
        await lock.acquire(path, clock=SystemClock(), role="daemon")


async def test_rubbish_in_the_lock_file_of_a_live_holder_is_an_unknown_holder(path: Path) -> None:
    with await lock.acquire(path, clock=SystemClock(), role="daemon"):
        path.write_text("rubbish")
        assert lock.holder(path) == lock.Holder(0, 0, "unknown")
