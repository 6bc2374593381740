"""Put the bundled sessions into a Codex home, as if they had been recorded during the last weeks.

One of them is more than 30 days old, which the demo reads as too old.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from memoryd.control.demo_sessions.records import session_lines, thread_id_of
from memoryd.control.demo_sessions.scripts import Script, parse_script
from memoryd.errors import StorageError


def install(into_codex_home: Path, *, now: float) -> int:
    """Write the bundled sessions under `into_codex_home`/sessions, shifted to `now` (epoch seconds); return how many.

    The same `now` writes the same bytes. Raises StorageError when a file cannot be written.
    """
    return len(record(bundled_scripts(), into_codex_home, now=now))


def bundled_scripts() -> list[Script]:
    """Return the scripts of the bundled sessions in the order of their names."""
    folder = resources.files("memoryd.control.demo_sessions") / "bundled"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".jsonl")), key=lambda entry: entry.name)
    return [parse_script(entry.name.removesuffix(".jsonl"), entry.read_text(encoding="utf-8")) for entry in files]


def record(scripts: Iterable[Script], into_codex_home: Path, *, now: float) -> list[Path]:
    """Write each script as a session file of its own; a sub-agent's parent is looked for among the scripts."""
    scripts = list(scripts)
    ids = {script.name: thread_id_of(script.name, now + script.starts) for script in scripts}
    return [_write(script, ids, into_codex_home, now) for script in scripts]


def _write(script: Script, ids: dict[str, str], home: Path, now: float) -> Path:
    started_at = now + script.starts
    start = datetime.fromtimestamp(started_at, UTC)
    path = home / "sessions" / f"{start:%Y/%m/%d}" / f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{ids[script.name]}.jsonl"
    parent_id = ids[script.subagent_of] if script.subagent_of else None
    lines = session_lines(script, started_at=started_at, parent_id=parent_id)
    ended_at = started_at + max((row.at for row in script.rows), default=0.0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.utime(path, (ended_at, ended_at))
    except OSError as error:
        raise StorageError(
            f"cannot write the demo session {path}: {error.strerror}",
            remedy="choose another folder, or free some space",
        ) from error
    return path
