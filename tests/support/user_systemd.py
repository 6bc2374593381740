"""A real `systemd --user` with its journal, on a machine whose PID 1 is whatever it is; needs root, and no package.

    with UserSystemd(folder) as user:
        user.run("systemctl", "--user", "is-system-running")

The user exists in private namespaces alone: a line of a passwd that is laid over the machine's, a cgroup, a runtime
folder, a PID namespace that takes everything with it when it ends. Nothing of the machine changes.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tests.support.process import CLOCK, PATIENCE_SECONDS, Finished, wait_until

SYSTEMD: Final = Path("/lib/systemd/systemd")
JOURNALD: Final = Path("/lib/systemd/systemd-journald")
NAME: Final = "tester"
UID: Final = 4321
"""An ordinary user's: the journal keeps no files of their own for system users."""
RUNTIME: Final = f"/run/user/{UID}"
CGROUPS: Final = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup")
USER_CGROUP: Final = f"user.slice/user-{UID}.slice/user@{UID}.service"
"""The journal tells from these names which user and which unit a line is of."""
UNSHARE: Final = ("unshare", "--mount", "--pid", "--fork")
PROGRAMS: Final = ("unshare", "nsenter", "setpriv", "mount", "systemctl", "journalctl")


def why_not() -> str:
    """Say why there can be no such systemd here; empty when there can."""
    if sys.platform != "linux":
        return "systemd is a thing of Linux"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    missing += [str(path) for path in (SYSTEMD, JOURNALD) if not path.exists()]
    if missing:
        return f"a systemd of the test's own needs {', '.join(missing)}"
    if any(name in os.environ for name in CLOCK):
        return "a systemd of the test's own lives in the machine's time, and this run in another"
    if os.geteuid() != 0:
        return "a systemd of the test's own needs root"
    if os.nice(0) > 0:
        return "what runs under nice may not choose how it is scheduled (CPUSchedulingPolicy)"
    if not any(os.access(f"{root}/cgroup.procs", os.W_OK) for root in CGROUPS):
        return "no cgroup can be made here"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "no namespaces can be made here"


class UserSystemd:
    """One user's systemd, from `with` to its end."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "user"
        self._folder = folder
        self._cgroups = [Path(root, f"memoryd-test-{os.getpid()}-{id(self):x}") for root in _cgroup_roots()]
        self._log = folder / "systemd.log"

    def __enter__(self) -> Self:
        self.home.mkdir(exist_ok=True)
        self.own()
        for cgroup in self._cgroups:
            leaf = cgroup / USER_CGROUP
            leaf.mkdir(parents=True)
            for path in (leaf, *leaf.iterdir()):
                os.chown(path, UID, UID)
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*UNSHARE, "--kill-child", "--mount-proc", "--propagation", "private", "bash", "-c", self._script()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        try:
            wait_until(self._is_up, "the user's systemd to start")
        except AssertionError:
            self.__exit__()
            raise AssertionError(f"the user's systemd did not start:\n{self._log.read_text()}") from None
        return self

    def __exit__(self, *_: object) -> None:
        init = self._init()
        if init is not None:
            os.kill(init, signal.SIGTERM)  # bash, the first process in there, asks systemd to stop all units
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for cgroup in self._cgroups:
            wait_until(lambda cgroup=cgroup: _is_removed(cgroup), f"{cgroup} to become empty")  # type: ignore[misc]  # bound early

    @property
    def environ(self) -> dict[str, str]:
        """What a login gives."""
        return {
            "HOME": str(self.home),
            "USER": NAME,
            "LOGNAME": NAME,
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "XDG_RUNTIME_DIR": RUNTIME,
        }

    def own(self) -> None:
        """Give the user all that the test has laid into the folder."""
        self._folder.chmod(0o755)
        for path in (self._folder, *self._folder.rglob("*")):
            os.chown(path, UID, UID, follow_symlinks=False)

    def run(self, *words: str, **variables: str) -> Finished:
        """Run one command as the user, with their environment and `variables`."""
        done = subprocess.run(
            [*self._as_user(), "env", "-i", f"--chdir={self.home}", *_assigned({**self.environ, **variables}), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS * 4,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def refuses(self, pid: str, *words: str) -> str:
        """Run a command as root in the mounts of one of the user's processes; return what it complains of."""
        into = ["nsenter", "--target", str(self._init()), "--mount", "--pid", "nsenter", "--target", pid, "--mount"]
        done = subprocess.run([*into, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        return done.stderr

    def systemctl(self, *words: str) -> Finished:
        return self.run("systemctl", "--user", *words)

    def told(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.systemctl("show", unit, f"--property={name}", "--value").stdout.strip()

    def wait_for(self, unit: str, name: str, value: str) -> None:
        """Wait until a property of a unit is this."""
        wait_until(lambda: self.told(unit, name) == value, f"{name}={value} of {unit}")

    def journal(self, unit: str) -> list[str]:
        """What a unit itself has said so far; systemd's own lines about it are left out."""
        done = self.run("journalctl", "--user", f"--unit={unit}", "--output=json", "--no-pager", "--quiet")
        entries = [json.loads(line) for line in done.stdout.splitlines()]
        return [entry["MESSAGE"] for entry in entries if entry.get("_SYSTEMD_USER_UNIT") == unit]

    def _is_up(self) -> bool:
        assert self._process.poll() is None
        if self._init() is None:
            return False
        return self.systemctl("is-system-running").stdout.strip() in {"running", "degraded"}

    def _init(self) -> int | None:
        try:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def _as_user(self) -> list[str]:
        into = ["nsenter", "--target", str(self._init()), "--mount", "--pid"]
        return [*into, "setpriv", f"--reuid={UID}", f"--regid={UID}", "--init-groups", "--inh-caps=-all"]

    def _script(self) -> str:
        """What the first process in the namespaces does; systemd itself refuses to be that one for a user."""
        laid_over = []
        for name, line in (("passwd", f"{NAME}:x:{UID}:{UID}::{self.home}:/bin/sh"), ("group", f"{NAME}:x:{UID}:")):
            file = self._folder / name
            file.write_text(Path("/etc", name).read_text() + line + "\n")
            laid_over.append(f"mount --bind {shlex.quote(str(file))} /etc/{name}")
        join = "\n".join(f"echo $BASHPID > {cgroup}/{{}}/cgroup.procs" for cgroup in self._cgroups)
        return f"""set -e
{join.format(*["."] * len(self._cgroups))}
{chr(10).join([*laid_over, *_reachable([Path(sys.base_prefix), Path(sysconfig.get_path("purelib")), self._folder])])}
mount -t tmpfs tmpfs /run/systemd
mkdir -p /run/systemd/system /run/systemd/journal /run/log /run/user
touch /run/systemd/journal/flushed
mount -t tmpfs tmpfs /var/log && mkdir /var/log/journal
mount -t tmpfs tmpfs /run/log
mount -t tmpfs -o mode=755 tmpfs /run/user
install --directory --mode=700 --owner={UID} --group={UID} {RUNTIME}
{JOURNALD} & journal=$!
({join.format(*[USER_CGROUP] * len(self._cgroups))}
exec setpriv --reuid={UID} --regid={UID} --init-groups --inh-caps=-all \
  env -i {shlex.join(_assigned(self.environ))} {SYSTEMD} --user) & systemd=$!
trap 'kill -RTMIN+24 $systemd' TERM
wait $systemd || wait $systemd || true
kill $journal
"""


def _assigned(variables: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]


def _cgroup_roots() -> list[str]:
    return [root for root in CGROUPS if Path(root, "cgroup.procs").exists()]


def _is_removed(cgroup: Path) -> bool:
    for path in sorted((path for path in cgroup.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts)):
        try:
            path.rmdir()
        except OSError:
            return False
    try:
        cgroup.rmdir()
    except OSError:
        return not cgroup.exists()
    return True


def _reachable(wanted: Sequence[Path]) -> list[str]:
    """Return the commands that make folders reachable for everybody where one above them is closed (as /root is).

    That one is covered, in here alone, by an empty folder in which nothing but the wanted ones appear.
    """
    closed: dict[Path, list[Path]] = {}
    for path in wanted:
        above = next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)
        if above is not None:
            closed.setdefault(above, []).append(path)
    lines = []
    for number, (above, paths) in enumerate(closed.items()):
        spare = f"/mnt/memoryd-{number}"
        lines += ["mount -t tmpfs tmpfs /mnt"] if number == 0 else []
        for index, path in enumerate(paths):
            lines += [f"mkdir -p {spare}-{index}", f"mount --rbind {path} {spare}-{index}"]
        lines.append(f"mount -t tmpfs -o mode=755 tmpfs {above}")
        for index, path in enumerate(paths):
            lines += [f"mkdir -p {path}", f"mount --rbind {spare}-{index} {path}"]
    return lines
