"""What agents start, at paths that upgrades keep: MEMORYD_HOME/bin/hook, a shell script that fails open by itself.

It starts the interpreter that memoryd runs with on a copy of hook.py beside it, so that neither a package that is being
replaced nor its imports stand between an agent and its session. MEMORYD_HOME/bin/memoryd is the command for this home.
"""

import shlex
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from memoryd.workspace.files import fsync_folder, temporary_beside, translated, write_durably
from memoryd.workspace.layout import Home, refuse_links

RUNNER: Final = "hook"
PROGRAM: Final = "hook.py"
COMMAND: Final = "memoryd"
_SCRIPT: Final = """\
#!/bin/sh
# Written by memoryd, and rewritten when it starts. Called as `hook AGENT EVENT` by agents; says nothing when it cannot.
here={folder}
for python in {interpreters}; do
  if [ -x "$python" ]; then
    "$python" -I -S -B "$here/{program}" "$@" 2>/dev/null
    break
  fi
done
exit 0
"""

_COMMAND_SCRIPT: Final = """\
#!/bin/sh
# Written by memoryd, and rewritten when it starts. The command `memoryd` for this home, at a path that upgrades keep.
python={interpreter}
if [ -x "$python" ]; then
  exec "$python" -P -m memoryd.control.main --home {home} "$@"
fi
echo "memoryd: the Python that it was installed with is gone: $python" >&2
exit 1
"""


def install_runner(home: Home, interpreters: Sequence[str] = ()) -> Path:
    """Write both where they are missing or are not what they should be; return the hook's. Raises StorageError.

    `interpreters`: absolute paths, the first that exists is taken; by default the running one and the one below it.
    """
    refuse_links(home)
    known = interpreters or [sys.executable, getattr(sys, "_base_executable", "")]
    names = " ".join(dict.fromkeys(shlex.quote(name) for name in known if name))
    script = _SCRIPT.format(folder=shlex.quote(str(home.bin.absolute())), interpreters=names, program=PROGRAM)
    program = files("memoryd.recall").joinpath(PROGRAM).read_bytes()
    _write(home.bin / PROGRAM, program, 0o600)
    _write(home.bin / RUNNER, script.encode("utf-8", "surrogateescape"), 0o700)
    command = _COMMAND_SCRIPT.format(
        interpreter=shlex.quote(sys.executable), home=shlex.quote(str(home.path.absolute()))
    )
    _write(home.bin / COMMAND, command.encode("utf-8", "surrogateescape"), 0o700)
    return home.bin / RUNNER


def is_current(home: Home) -> bool:
    """Tell whether the runner is there, may be run, and starts this version's program."""
    program = files("memoryd.recall").joinpath(PROGRAM).read_bytes()
    try:
        script, found = home.bin / RUNNER, (home.bin / PROGRAM).read_bytes()
        return found == program and bool(script.stat().st_mode & 0o100) and script.read_bytes().startswith(b"#!/bin/sh")
    except OSError:
        return False


def _write(path: Path, data: bytes, mode: int) -> None:
    with translated("write", path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (
            not path.is_symlink()
            and path.is_file()
            and path.stat().st_mode & 0o777 == mode
            and path.read_bytes() == data
        ):
            return
        temporary = temporary_beside(path)
        write_durably(temporary, data, mode=mode)
        temporary.replace(path)
    fsync_folder(path.parent)
