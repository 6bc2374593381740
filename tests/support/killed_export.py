"""An export, killed with -9 before each change that it makes to the disk; each time the next one must be whole.

`python -m tests.support.killed_export HOME FOLDER` prints how many points there were, over nothing and over an export.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from memoryd.clock import SystemClock
from memoryd.control.exporting import Learned, check_place, export, learned
from memoryd.ledger.database import Ledger
from memoryd.redact import Redactor
from memoryd.workspace.files import is_temporary
from memoryd.workspace.layout import Home

CHANGES = frozenset({"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod"})


async def rows_of(home: Home) -> Learned:
    async with await Ledger.open(home.ledger_file, clock=SystemClock(), read_only=True) as ledger:
        return await ledger.read(learned)


def content(target: Path) -> dict[str, bytes]:
    files = (path for path in sorted(target.rglob("*")) if path.is_file() and path.name != "manifest.json")
    return {str(path.relative_to(target)): path.read_bytes() for path in files}


def main(home: Home, target: Path) -> None:
    rows, redactor = asyncio.run(rows_of(home)), Redactor()
    export(home, rows, target, redactor, now=1.0)
    whole = content(target)
    for over in (False, True):
        points = 0
        while True:
            shutil.rmtree(target, ignore_errors=True)
            if over:
                export(home, rows, target, redactor, now=1.0)
                (target / "memories" / "stale.md").write_text("of another day")
            if not _killed(home, rows, target, redactor, points):
                break
            manifest = target / "manifest.json"
            said = json.loads(manifest.read_text()) if manifest.exists() else {"complete": False}
            standing = {path: data for path, data in content(target).items() if not is_temporary(path)}
            assert not said["complete"] or standing in (whole, {**whole, "memories/stale.md": b"of another day"}), (
                points
            )
            check_place(target, home, force=bool(said["complete"]))
            export(home, rows, target, redactor, now=2.0)
            assert content(target) == whole, points
            points += 1
        print(points)


def _killed(home: Home, rows: Learned, target: Path, redactor: Redactor, point: int) -> bool:
    """Export in a child that dies at a point; tell whether it came to that."""
    child = os.fork()
    if child == 0:
        left = [point]

        def die(event: str, arguments: tuple[object, ...]) -> None:
            if event in CHANGES and str(arguments[0]).startswith(str(target)):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

        sys.addaudithook(die)
        export(home, rows, target, redactor, now=2.0)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main(Home(Path(sys.argv[1])), Path(sys.argv[2]))
