"""Write the golden files: what a second reader, that shares no code with memoryd, makes of every recorded session.

    python -m tests.golden.extract tests/fixtures tests/golden/expected

Each was looked at by eye when it was written; test_golden.py compares memoryd's own reading with them.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.golden import claude, codex, gemini, opencode, others
from tests.golden.record import Golden

EXTRACTORS: dict[str, Callable[[Path, str], list[Golden]]] = {
    "codex": codex.extract,
    "claude": claude.extract,
    "opencode": opencode.extract,
    "gemini": gemini.extract,
    "qwen": others.extract_qwen,
    "copilot": others.extract_copilot,
}


def extract(fixtures: Path) -> list[Golden]:
    """Read FIXTURES/<agent>/<recording>/...; a folder may have a longer name that begins with the agent's."""
    sessions: list[Golden] = []
    for folder in sorted(fixtures.iterdir()):
        agent = next((name for name in EXTRACTORS if folder.name in (name, f"{name}-cli", f"{name}-code")), None)
        if agent is None:
            continue
        for recording in sorted(path for path in folder.iterdir() if path.is_dir()):
            sessions += EXTRACTORS[agent](recording, recording.name)
    return sessions


def golden_name(session: Golden) -> Path:
    """Return where a session's golden file lies below the folder of them all."""
    return Path(session.agent) / session.recording / f"{session.id.rpartition(':')[2]}.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fixtures", type=Path)
    parser.add_argument("into", type=Path)
    options = parser.parse_args()
    sessions = extract(options.fixtures)
    for session in sessions:
        path = options.into / golden_name(session)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(session), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(sessions)} golden files in {options.into}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
