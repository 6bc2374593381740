"""Running a program with bounds: whatever it does, its end is the end of everything that it started."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.llm.command.keeper import CANNOT_START
from memoryd.llm.command.process import Ended, Launch, run

PATIENCE_SECONDS = 30.0


def a_launch(folder: Path, script: str, **environ: str) -> Launch:
    return Launch(("/bin/sh", "-c", script), {"PATH": os.environ["PATH"], **environ}, folder, folder)


async def ran(folder: Path, script: str, prompt: bytes = b"", seconds: float = PATIENCE_SECONDS) -> Ended:
    return await run(a_launch(folder, script), prompt, seconds=seconds)


def processes_with(mark: str) -> list[int]:
    """The living processes whose command line holds a mark that is in no other."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in words and state != "Z" and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """Seconds to sleep that nobody else sleeps: they name our processes."""
    return f"98765.{abs(hash(str(tmp_path))) % 10**9:09d}"


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look at")


async def test_the_question_goes_in_and_both_streams_come_out(tmp_path: Path) -> None:
    ended = await ran(tmp_path, "cat; echo oops >&2; exit 3", b"what is asked")
    assert ended == Ended(3, b"what is asked", b"oops\n")


async def test_a_question_of_megabytes_that_nobody_reads_blocks_nobody(tmp_path: Path) -> None:
    assert (await ran(tmp_path, "exit 0", b"x" * (8 << 20))).code == 0


async def test_a_program_that_reads_slowly_gets_all(tmp_path: Path) -> None:
    script = "i=0; while [ $i -lt 5 ]; do dd bs=1000 count=1 2>/dev/null | wc -c; sleep 0.01; i=$((i+1)); done"
    ended = await ran(tmp_path, script, b"x" * 5_000)
    assert ended.stdout.split() == [b"1000"] * 5


async def test_the_question_stands_in_no_folder_and_no_command_line(tmp_path: Path) -> None:
    ended = await ran(tmp_path, "ls -A; tr '\\0' ' ' < /proc/$$/cmdline", b"a-secret-question")
    assert b"a-secret-question" not in ended.stdout


async def test_nothing_of_the_environment_passes_but_what_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-others")
    ended = await run(a_launch(tmp_path, "env", ONLY="this"), b"", seconds=PATIENCE_SECONDS)
    names = {line.partition(b"=")[0] for line in ended.stdout.splitlines()}
    assert names - {b"PWD", b"SHLVL", b"_", b"OLDPWD"} == {b"PATH", b"ONLY"}


async def test_it_has_no_terminal_and_no_descriptor_of_ours(tmp_path: Path) -> None:
    ended = await ran(tmp_path, "(echo x > /dev/tty) 2>/dev/null && echo terminal; ls /proc/self/fd | wc -l")
    assert ended.stdout.split() == [b"4"]  # the three, and the folder that ls reads


@needs_proc
async def test_a_program_that_hangs_is_ended_in_time_with_its_children(tmp_path: Path, mark: str) -> None:
    ended = await ran(tmp_path, f"sleep {mark} & echo begun; sleep {mark}", seconds=0.3)
    assert (ended.timed_out, ended.code, ended.stdout) == (True, None, b"begun\n")
    assert processes_with(mark) == []


@needs_proc
@pytest.mark.parametrize("end", ["exit 0", "sleep 0.2"], ids=["at once", "later"])
async def test_daemons_that_a_program_leaves_behind_end_with_it(tmp_path: Path, mark: str, end: str) -> None:
    leave = f"setsid sh -c 'setsid sleep {mark} </dev/null >/dev/null 2>&1 &'"
    ended = await ran(tmp_path, f"{leave}; {leave}; echo done; {end}")
    assert (ended.code, ended.stdout) == (0, b"done\n")
    assert processes_with(mark) == []


@needs_proc
async def test_what_ignores_signals_and_forks_for_ever_ends_too(tmp_path: Path, mark: str) -> None:
    fork = f"trap '' TERM HUP INT; while :; do (trap '' TERM; setsid sleep {mark} &) ; sleep 0.005; done"
    ended = await ran(tmp_path, fork, seconds=0.5)
    assert ended.timed_out
    assert processes_with(mark) == []


@needs_proc
async def test_what_prints_a_hundred_megabytes_is_cut_and_ended(tmp_path: Path, mark: str) -> None:
    ended = await run(a_launch(tmp_path, f"head -c 100000000 /dev/zero; sleep {mark}"), b"", seconds=PATIENCE_SECONDS)
    assert ended.overflowed
    assert len(ended.stdout) <= 16 << 20
    assert processes_with(mark) == []


async def test_of_much_that_is_said_on_stderr_the_end_is_kept(tmp_path: Path) -> None:
    ended = await ran(tmp_path, "head -c 1000000 /dev/zero >&2; echo the end >&2")
    assert ended.stderr.endswith(b"the end\n")
    assert len(ended.stderr) <= 16 << 10


async def test_a_program_that_is_not_there_says_so(tmp_path: Path) -> None:
    ended = await run(Launch(("no-such-program",), {"PATH": "/bin"}, tmp_path, tmp_path), b"", seconds=5)
    assert ended.code == CANNOT_START
    assert ended.stderr == b"memoryd: cannot start no-such-program: No such file or directory\n"


async def test_a_signal_that_ends_it_shows_in_its_status(tmp_path: Path) -> None:
    assert (await ran(tmp_path, "kill -SEGV $$")).code == 128 + signal.SIGSEGV


@needs_proc
async def test_cancelled_it_ends_the_program_first(tmp_path: Path, mark: str) -> None:
    task = asyncio.create_task(ran(tmp_path, f"setsid sleep {mark} & sleep {mark}"))
    while not processes_with(mark):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(mark) == []


RUN_ALONE = """
import asyncio, sys
from pathlib import Path
from memoryd.llm.command.process import Launch, run
folder = Path(sys.argv[1])
launch = Launch(("/bin/sh", "-c", sys.argv[2]), {"PATH": "/usr/bin:/bin"}, folder, folder)
asyncio.run(run(launch, b"", seconds=600))
"""


@needs_proc
def test_when_memoryd_is_killed_the_program_and_its_daemons_end(tmp_path: Path, mark: str) -> None:
    script = f"setsid sh -c 'setsid sleep {mark} &'; sleep {mark}"
    ours = subprocess.Popen([sys.executable, "-c", RUN_ALONE, str(tmp_path), script])
    wait_until(lambda: len(processes_with(f"sleep\0{mark}")) >= 2)
    ours.kill()
    ours.wait()
    wait_until(lambda: not processes_with(mark))


@needs_proc
async def test_when_its_keeper_is_killed_the_program_ends(tmp_path: Path, mark: str) -> None:
    task = asyncio.create_task(ran(tmp_path, f"exec sleep {mark}"))
    while not (found := processes_with(f"sleep\0{mark}")):
        await asyncio.sleep(0.01)
    parent = int((Path("/proc") / str(found[0]) / "stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    ended = await task
    assert ended.code == -signal.SIGKILL
    while processes_with(mark):
        await asyncio.sleep(0.01)
