"""A whole boot of this machine's own system, as a container: systemd as PID 1, logind, journald, users that linger.

Needs root and the program systemd-nspawn (Debian: systemd-container). The root file system is read-only below; what is
written goes to memory and is gone with the container.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support import user_systemd

NSPAWN: Final = "systemd-nspawn"
INSIDE: Final = "/mnt/test"
LIMIT_SECONDS: Final = 180
_SERVICE: Final = f"""\
[Unit]
After=dbus.service systemd-logind.service systemd-user-sessions.service
Wants=dbus.service systemd-logind.service systemd-user-sessions.service
[Service]
Type=oneshot
TimeoutStartSec={LIMIT_SECONDS - 20}
ExecStart=/bin/bash -c '/bin/bash {INSIDE}/script > {INSIDE}/output 2>&1'
ExecStopPost=/bin/systemctl poweroff --no-block
"""
_TARGET: Final = """\
[Unit]
Requires=basic.target
Wants=memoryd-test.service
After=basic.target
AllowIsolate=yes
"""


def why_not() -> str:
    """Say why nothing can be booted here; empty when it can."""
    if sys.platform == "linux" and shutil.which(NSPAWN) is None:
        return f"there is no {NSPAWN}: on Debian it comes with the package systemd-container"
    return user_systemd.why_not()


def boot(script: str, folder: Path, binds: Sequence[Path]) -> str:
    """Boot, run a script as root, power off; return what it said. `folder` is for this, `binds` appear as they are."""
    files = {"script": script, "memoryd-test.service": _SERVICE, "memoryd-test.target": _TARGET}
    for name, text in files.items():
        (folder / name).write_text(text)
    root = folder / "root"
    root.mkdir()
    system = "/etc/systemd/system"
    words = [
        *(NSPAWN, "--quiet", f"--directory={root}", "--volatile=overlay", "--boot", "--register=no", "--keep-unit"),
        *("--private-network", f"--machine=memoryd-test-{os.getpid()}", "--link-journal=no", "--resolv-conf=off"),
        *("--timezone=off", "--console=pipe", f"--bind={folder}:{INSIDE}"),
        *(f"--bind-ro={path}" for path in binds),
        *(f"--bind-ro={folder / name}:{system}/{name}" for name in list(files)[1:]),
        *("--", "systemd.unit=memoryd-test.target"),
    ]
    mounted = f"mount --bind / {shlex.quote(str(root))} && exec {shlex.join(words)}"
    console = folder / "console"
    with console.open("w") as said:
        subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", mounted],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    output = folder / "output"
    assert output.exists(), f"it did not come up:\n{console.read_text(errors='replace')[-3000:]}"
    return output.read_text()
