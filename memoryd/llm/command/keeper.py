"""A small process between memoryd and the program that it runs: when either ends, nothing of the program is left.

It runs alone (standard library only, `python -I -S`). Its standard input is a pipe from memoryd: one line of JSON that
says what to start, then silence; the end of it means that memoryd wants the end or is gone, also by kill -9. On Linux
it is the parent of everything that the program leaves behind, daemons included, and kills them all before it ends.
"""

import json
import os
import select
import signal
import subprocess
import sys
from typing import Final, NoReturn, NotRequired, TypedDict

from memoryd.llm.command import landlock

LIFELINE: Final = 0
CANNOT_START: Final = 127
KILL_ROUNDS: Final = 500
KILL_PAUSE_SECONDS: Final = 0.01
STOP_SECONDS: Final = 10
DEATH_SIGNAL, NO_NEW_PRIVILEGES, CHILD_SUBREAPER = 1, 38, 36  # PR_SET_*, linux/prctl.h


class Spec(TypedDict):
    """What to start. `stop` is a command that ends what runs elsewhere (systemd's unit); `writable` is for Landlock."""

    argv: list[str]
    environ: dict[str, str]
    cwd: str
    stop: list[str]
    writable: NotRequired[list[str]]


def main(prompt: int) -> NoReturn:
    """Start what the first line on the lifeline says with descriptor `prompt` as its input, and see to its end.

    Ends with the program's status, 128 + n when signal n ended it, CANNOT_START (and a word on stderr) without it.
    """
    landlock.prctl(CHILD_SUBREAPER, 1)
    bell = _bell()
    line = _first_line()
    if line is None:
        os._exit(CANNOT_START)
    spec: Spec = json.loads(line)
    child = os.fork()
    if child == 0:
        _become(spec, prompt)
    os.close(prompt)
    status = None
    while status is None:
        ready, _, _ = select.select([LIFELINE, bell], [], [])
        if LIFELINE in ready and not os.read(LIFELINE, 4096):
            break
        if bell in ready:
            os.read(bell, 4096)
            status = _reaped(child)
    _kill_all(child, spec["stop"])
    os._exit(CANNOT_START if status is None else status)


def _bell() -> int:
    """Return a descriptor that can be read whenever a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reading


def _first_line() -> bytes | None:
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(LIFELINE, 65_536)
        if not piece:
            return None
        line += piece
    return bytes(line)


def _become(spec: Spec, prompt: int) -> NoReturn:
    """Turn the forked child into the program: a session of its own, no descriptor but three, no terminal, no core."""
    try:
        os.setsid()
        landlock.prctl(DEATH_SIGNAL, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.umask(0o077)
        os.dup2(prompt, 0)
        os.closerange(3, 4096)
        os.chdir(spec["cwd"])
        if "writable" in spec:
            landlock.prctl(NO_NEW_PRIVILEGES, 1)
            landlock.restrict(spec["writable"])
        os.execvpe(spec["argv"][0], spec["argv"], spec["environ"])  # noqa: S606 - a program of the user's choice
    except OSError as error:
        os.write(2, f"memoryd: cannot start {spec['argv'][0]}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_START)


def _reaped(child: int) -> int | None:
    """Take in all children that have ended; return the status of the program once it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else 128 - code


def _kill_all(child: int, stop: list[str]) -> None:
    """Kill the program and everything that came of it, and take in their ends."""
    if stop:
        _run_to_its_end(stop)
    for _ in range(KILL_ROUNDS):
        left = _descendants()
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: what forks for ever is faster than one look
            for pid in left:
                _send(pid, number)
        _send(-child, signal.SIGKILL)
        _reaped(child)
        if not left:
            return
        select.select([], [], [], KILL_PAUSE_SECONDS)


def _run_to_its_end(words: list[str]) -> None:
    silent = subprocess.DEVNULL
    try:
        subprocess.run(words, check=False, stdin=silent, stdout=silent, stderr=silent, timeout=STOP_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _descendants() -> list[int]:
    """Return the processes below this one; none where the system does not tell (then the process group is all)."""
    children: dict[int, list[int]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - pathlib is slow to import
    except OSError:
        return []
    for name in names:
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    level = [os.getpid()]
    while level:
        level = [pid for parent in level for pid in children.get(parent, ())]
        found += level
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
