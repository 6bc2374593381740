"""What connect keeps of each connected agent: MEMORYD_HOME/connect/<agent>.json, enough to undo it to the byte."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memoryd.control.connecting.files import backup_of
from memoryd.control.connecting.json_edit import Seam
from memoryd.errors import StorageError
from memoryd.workspace.files import fsync_folder, temporary_beside, translated, write_durably
from memoryd.workspace.layout import Home


@dataclass(frozen=True, slots=True)
class Record:
    """One connection: the file, the way, its SHA-256 before (None: there was none) and after, what was made."""

    agent: str
    via: str
    path: Path
    before: str | None
    after: str
    seam: Seam
    folders: list[Path] = field(default_factory=list)
    part: str = ""
    """What beside the memory itself was given: "" is the memory, else `mcp` or `skill`."""

    @property
    def backup(self) -> Path:
        """Where the file lies as it was before."""
        return backup_of(self.path, self.part)


def digest(data: bytes | None) -> str | None:
    """Return the SHA-256 of a file's content, None for none."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def file_of(home: Home, agent: str, part: str = "") -> Path:
    """Return where an agent's record lies."""
    return home.path / "connect" / (f"{agent}-{part}.json" if part else f"{agent}.json")


def recorded(home: Home, agent: str, part: str = "") -> Record | None:
    """Read an agent's record; None when it is not connected. Raises StorageError when it cannot be read."""
    path = file_of(home, agent, part)
    try:
        said: dict[str, Any] = json.loads(path.read_bytes())
        return Record(
            agent=agent,
            via=str(said["via"]),
            path=Path(said["path"]),
            before=said["before"],
            after=str(said["after"]),
            seam=Seam(**said["seam"]),
            folders=[Path(each) for each in said["folders"]],
            part=part,
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"cannot read {path}: {error}", remedy="remove it; `memoryd disconnect` then looks for our entry itself"
        ) from error


def keep(home: Home, record: Record) -> None:
    """Write the record, 0600, whole or not at all."""
    path = file_of(home, record.agent, record.part)
    with translated("make the folder", path.parent):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    said = {**asdict(record), "path": str(record.path), "folders": [str(each) for each in record.folders]}
    temporary = temporary_beside(path)
    write_durably(temporary, (json.dumps(said, indent=2) + "\n").encode())
    with translated("write", path):
        temporary.replace(path)
    fsync_folder(path.parent)


def forget(home: Home, record: Record) -> None:
    """Remove the record, and the folder of records with the last one."""
    path = file_of(home, record.agent, record.part)
    with translated("remove", path):
        path.unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:  # other agents are connected, or nothing ever was
        return
