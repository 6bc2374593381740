"""Strays of a run that was good otherwise, kept outside the memory folder for a person to look at.

They lie in MEMORYD_HOME/quarantine/<epoch seconds>-<run>/, under the paths that they had. Only texts are kept, few and
small ones, without what is a secret in them, of the newest runs; purging and resetting remove all of them.
"""

import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.errors import StorageError
from memoryd.redact import Redactor
from memoryd.workspace.files import translated, write_private
from memoryd.workspace.folder import Odd, decode_text
from memoryd.workspace.layout import Home

MAX_FILES: Final = 20
"""Of one run."""
MAX_FILE_BYTES: Final = 64 * 1024
MAX_RUNS: Final = 10


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Where the strays of one run go; `name` begins with the time of the run, so that names sort by age."""

    home: Home
    name: str
    redactor: Redactor

    def keep(self, work: Path, paths: Sequence[str]) -> int:
        """Copy those of the strays that can be kept; return how many. A full disk, say, is no reason to fail a run."""
        kept = 0
        with suppress(StorageError):
            if self.home.quarantine.is_symlink():
                return 0
            for path in paths[:MAX_FILES]:
                text = _text(work, path)
                if text is not None and not self.redactor.contains_secret(path):
                    with translated("make the folder", self.home.quarantine):
                        self.home.quarantine.mkdir(mode=0o700, exist_ok=True)
                    write_private(self.home.quarantine / self.name / path, self.redactor.clean(text).encode())
                    kept += 1
            _bound(self.home.quarantine)
        return kept


def empty_quarantine(home: Home) -> None:
    """Remove all that was kept. Raises StorageError."""
    with translated("empty", home.quarantine):
        if home.quarantine.is_symlink():
            home.quarantine.unlink()
        elif home.quarantine.exists():
            shutil.rmtree(home.quarantine)


def _text(work: Path, path: str) -> str | None:
    """Return a stray's text; None: no small regular file of text."""
    file = work / path
    with translated("read", file):
        facts = file.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_FILE_BYTES:
            return None
        text = decode_text(path, file.read_bytes())
    return None if isinstance(text, Odd) else text


def _bound(folder: Path) -> None:
    with translated("tidy", folder):
        runs = sorted(folder.iterdir()) if folder.is_dir() else []
        for run in runs[:-MAX_RUNS]:
            if run.is_dir() and not run.is_symlink():
                shutil.rmtree(run)
            else:
                run.unlink()
