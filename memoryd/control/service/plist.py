"""The property list of launchd: rendered from the one that is shipped, and read back. Pure.

It can be read by others: keys stay in their files, and CREDENTIALS_DIRECTORY names the folder, as systemd would.
"""

import plistlib
from pathlib import Path
from typing import Any, Final
from xml.parsers.expat import ExpatError

from memoryd.control.service.ground import Wish, words_of
from memoryd.control.service.placing import MARK
from memoryd.errors import UsageError

CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
LOG: Final = "daemon.log"
_COMMENT: Final = f"<!-- {MARK}, written by `memoryd service install`; each install writes it anew. -->\n"
_HEAD_LINES: Final = 2
"""The XML declaration and the document type come before any comment."""


def render_plist(template: str, wish: Wish, home: Path) -> str:
    """Return the property list for this machine. Raises UsageError for paths that XML cannot hold."""
    told: dict[str, Any] = plistlib.loads(template.encode("utf-8"))
    told["ProgramArguments"] = list(words_of(wish.interpreter))
    told["EnvironmentVariables"] = dict(wish.environment)
    folders = {str(path.parent) for path in wish.credentials.values()}
    if folders:
        told["EnvironmentVariables"][CREDENTIALS] = _only(folders)
    told["StandardOutPath"] = told["StandardErrorPath"] = str(home / LOG)
    try:
        text = plistlib.dumps(told, sort_keys=False).decode("utf-8")
    except (ValueError, UnicodeEncodeError):
        raise UsageError(
            "a path holds a character that a property list cannot hold", remedy="choose one of printable characters"
        ) from None
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:_HEAD_LINES], _COMMENT, *lines[_HEAD_LINES:]])


def read_plist(text: str) -> Wish | None:
    """Return what a property list of ours says; None where it is none."""
    try:
        told = plistlib.loads(text.encode("utf-8"))
        words = told["ProgramArguments"]
        environment = {str(name): str(value) for name, value in told.get("EnvironmentVariables", {}).items()}
        interpreter = Path(str(words[0]))
    except (plistlib.InvalidFileException, ExpatError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None
    folder = environment.pop(CREDENTIALS, None)
    files = sorted(Path(folder).iterdir()) if folder and Path(folder).is_dir() else []
    return Wish(interpreter, environment, {path.name: path for path in files if path.is_file()})


def log_of(text: str) -> Path | None:
    """Return where launchd writes the log, None where the text does not say."""
    try:
        named = plistlib.loads(text.encode("utf-8")).get("StandardErrorPath")
    except (plistlib.InvalidFileException, ExpatError, ValueError, AttributeError):
        return None
    return Path(named) if isinstance(named, str) else None


def _only(folders: set[str]) -> str:
    if len(folders) > 1:
        raise UsageError(
            "the keys lie in several folders, and launchd has no credentials: one folder is needed",
            remedy="use --store-keys with all of them set",
        )
    return folders.pop()
