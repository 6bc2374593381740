"""What was learned, written out for people and other programs: files as they are, rows as JSON lines (README: export).

Everything was redacted before it was kept, and is once more: the patterns may be newer than what they are applied to.
"""

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from memoryd.clock import rfc3339
from memoryd.errors import UsageError
from memoryd.ledger import claims, holds, outputs
from memoryd.ledger.claims import ClaimRow
from memoryd.ledger.outputs import SelectedOutput
from memoryd.redact import Redactor
from memoryd.trees import remove_tree
from memoryd.workspace.files import (
    fsync_folder,
    is_temporary,
    make_private_folder,
    temporary_beside,
    translated,
    write_durably,
)
from memoryd.workspace.folder import Folder, Odd
from memoryd.workspace.layout import Home

FORMAT: Final = "memoryd-export"
FORMAT_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
OUTPUTS: Final = "stage1_outputs.jsonl"
CLAIMS: Final = "claims.jsonl"
MEMORIES: Final = "memories"
BESIDE_OTHERS: Final = "beside_others"
"""In the manifest of one that is under way: files of somebody else lay there before."""
MAX_CLAIMS: Final = 1_000_000
MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024
"""It names what was left out; a larger one is none of ours."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The rows of a ledger that are exported: of sessions that may be remembered, and every claim, closed ones too."""

    outputs: tuple[SelectedOutput, ...] = ()
    claims: tuple[ClaimRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    folder: Path
    files: int
    outputs: int
    claims: int
    left_out: Mapping[str, str]


def learned(conn: Connection) -> Learned:
    """Read the rows to export."""
    rows = [outputs.get(conn, each.thread_id) for each in holds.remembered(conn)]
    ids = sorted(claim.id for claim in claims.every(conn, limit=MAX_CLAIMS))
    whole = [claims.get(conn, claim_id) for claim_id in ids]  # with their sessions
    return Learned(tuple(row for row in rows if row), tuple(claim for claim in whole if claim))


def check_place(target: Path, home: Home, *, force: bool) -> None:
    """Refuse a place where an export could harm something. Raises UsageError, StorageError."""
    real, ours = (Path(os.path.realpath(path)) for path in (target, home.path))  # raises nothing for links in a circle
    if real.is_relative_to(ours) or ours.is_relative_to(real):
        raise UsageError(
            f"cannot export to {target}: it holds memoryd's own folder, or lies in it", remedy="name another folder"
        )
    if os.path.lexists(target) and not target.is_dir():
        raise UsageError(
            f"cannot export to {target}: it is no folder", remedy="name a folder, or one that is not there"
        )
    with translated("list", target):
        is_empty = not target.is_dir() or _is_empty(target)
    if not is_empty and not force and not _is_cut_short(target):
        raise UsageError(
            f"cannot export to {target}: it is not empty",
            remedy="name an empty folder or a new one; --force replaces an export there, and leaves the rest",
        )


def export(home: Home, rows: Learned, target: Path, redactor: Redactor, *, now: float) -> Exported:
    """Write everything to `target` (blocking): folders 0700, files 0600; an earlier export there is replaced."""
    folder = Folder.read(home.memories) if home.memories.is_dir() else Folder()
    was_export = _is_export(target)
    if not was_export:
        _check_links(target / MEMORIES)
    with translated("make the folder", target):
        make_private_folder(target)
        beside_others = not was_export and not _is_empty(target)
    # before anything goes: what is cut short is told from a person's own folder, and from a whole export
    _write_manifest(target, {"complete": False, BESIDE_OTHERS: beside_others})
    if was_export:
        remove_tree(target / MEMORIES)
        _check_links(target / MEMORIES)
    files = {path: text for path, text in folder.files.items() if not redactor.contains_secret(path)}
    for path, text in files.items():
        _write(target / MEMORIES / path, redactor.clean(text).encode("utf-8", "replace"))
    _write(target / OUTPUTS, _lines((_output(row) for row in rows.outputs), redactor))
    _write(target / CLAIMS, _lines((asdict(row) for row in rows.claims), redactor))
    for place in {target, *((target / MEMORIES / path).parent for path in files)}:
        fsync_folder(place)
    odd = {**folder.odd, **dict.fromkeys(folder.files.keys() - files.keys(), Odd.SECRET_NAME)}
    left_out = {redactor.clean(path): reason.value for path, reason in odd.items() if not path.startswith(".")}
    done = Exported(target, len(files), len(rows.outputs), len(rows.claims), left_out)
    facts = {
        "complete": True,
        "exported_at": rfc3339(int(now)),
        "files": done.files,
        "stage1_outputs": done.outputs,
        "claims": done.claims,
        "left_out": dict(left_out),
    }
    _write_manifest(target, facts)
    return done


def _write_manifest(target: Path, facts: Mapping[str, object]) -> None:
    whole = {"format": FORMAT, "version": FORMAT_VERSION, "memoryd": version("memoryd"), **facts}
    temporary = temporary_beside(target / MANIFEST)
    with translated("write", target / MANIFEST):
        for left in [entry for entry in target.iterdir() if is_temporary(entry.name)]:  # by one that was cut short
            left.unlink(missing_ok=True)
        try:
            write_durably(temporary, (json.dumps(whole, indent=2) + "\n").encode())
            temporary.replace(target / MANIFEST)
        finally:
            temporary.unlink(missing_ok=True)
    fsync_folder(target)


def _write(path: Path, data: bytes) -> None:
    """Write a file that is on the disk before the manifest says so."""
    with translated("make the folder", path.parent):
        make_private_folder(path.parent)
    write_durably(path, data)


def _check_links(folder: Path) -> None:
    """Refuse to write through a link to somewhere else. Raises UsageError."""
    inner = (Path(place, name) for place, names, _ in os.walk(folder) for name in names)
    for each in (folder, *inner):
        if each.is_symlink():
            raise UsageError(f"{each} is a symlink", remedy="remove it, or name another folder")


def _output(row: SelectedOutput) -> dict[str, object]:
    """Return the published columns in their order, and what is known of the session."""
    return {
        "thread_id": row.thread_id,
        "source_updated_at": row.source_updated_at,
        "raw_memory": row.raw_memory,
        "rollout_summary": row.rollout_summary,
        "rollout_slug": row.rollout_slug,
        "generated_at": row.generated_at,
        "usage_count": row.usage_count,
        "last_usage": row.last_usage,
        "selected_for_phase2": row.selected_for_phase2,
        "selected_for_phase2_source_updated_at": row.selected_for_phase2_source_updated_at,
        "agent": row.agent,
        "cwd": row.cwd,
        "git_branch": row.git_branch,
        "rollout_path": row.rollout_path,
    }


def _lines(rows: Iterable[Mapping[str, object]], redactor: Redactor) -> bytes:
    def cleaned(value: object) -> object:
        return redactor.clean(value) if isinstance(value, str) else value

    texts = (json.dumps({name: cleaned(value) for name, value in row.items()}, ensure_ascii=False) for row in rows)
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "replace")


def _is_export(target: Path) -> bool:
    """Say whether a folder was written by `export` alone: only then what stands in it is ours to remove."""
    known = _known(target)
    return known.get("format") == FORMAT and not (known.get("complete") is False and known.get(BESIDE_OTHERS) is True)


def _is_empty(folder: Path) -> bool:
    return all(is_temporary(entry.name) for entry in folder.iterdir())


def _is_cut_short(target: Path) -> bool:
    return _is_export(target) and _known(target).get("complete") is False


def _known(target: Path) -> Mapping[str, object]:
    manifest = target / MANIFEST
    try:
        if not stat.S_ISREG(manifest.lstat().st_mode):  # a pipe would be waited for
            return {}
        with manifest.open("rb") as file:
            known = json.loads(file.read(MAX_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}
