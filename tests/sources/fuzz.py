"""Fuzzing of every reader: recorded sessions, damaged, must read or be refused in our own words.

    python -m tests.sources.fuzz --examples 2000 [--agent codex]

The suite runs a small, fixed number of examples (test_fuzz_readers.py); this command runs as many as one likes, other
ones each time, and prints the damage that broke a reader.
"""

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.errors import SourceError
from memoryd.pipeline.evidence import gather
from memoryd.redact import Redactor
from memoryd.sources.codex import CodexReader
from memoryd.sources.gemini import GeminiReader
from memoryd.sources.items import SessionFile
from memoryd.sources.reader import SessionReader
from memoryd.sources.readers import READERS as PATIENT_READERS
from tests.sources.mutations import BYTES, ROWS, Mutation, damaged, mutate_store, mutations

FIXTURES = Path(__file__).parents[1] / "fixtures"
HOMES = (".claude", ".gemini", ".qwen", ".copilot", ".local/share/opencode")
# without the pauses in which a file that is being written becomes whole: here it never does
READERS: dict[str, SessionReader] = PATIENT_READERS | {
    "codex": CodexReader(pause=lambda seconds: None),
    "gemini": GeminiReader(pause=lambda seconds: None),
}
LARGEST_SEED = 130_000
LONGEST = timedelta(seconds=20)  # a hang, not a slow machine
# Texts are part of the file; a call and its output, or a fork's rows, may show one of them more than once.
GROWTH, ROOM = 8, 200_000


@dataclass(frozen=True)
class Victim:
    """A recorded file in a copy of its recording, with the home in which the agent's reader finds it."""

    home: Path
    path: Path
    content: bytes

    @property
    def is_store(self) -> bool:
        return self.content.startswith(b"SQLite format 3")


def victims(agent: str, into: Path) -> list[Victim]:
    """Copy an agent's recordings, and list the files in them that may be damaged."""
    found: list[Victim] = []
    source = FIXTURES / agent
    for recording in sorted(path for path in source.iterdir() if path.is_dir()) if source.exists() else []:
        folder = into / agent / recording.name
        shutil.copytree(recording, folder, symlinks=True)
        home = next((folder / name for name in HOMES if (folder / name).exists()), folder)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            path.chmod(0o600)
            if path.stat().st_size <= LARGEST_SEED:
                found.append(Victim(home, path, path.read_bytes()))
    return found


def fuzz(agent: str, into: Path, *, examples: int, repeatable: bool) -> None:
    """Read damaged recordings of an agent; whatever breaks is raised with the damage that did it."""
    candidates = victims(agent, into)
    if not candidates:
        return

    @settings(
        max_examples=examples,
        derandomize=repeatable,
        deadline=LONGEST,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.integers(0, len(candidates) - 1),  # in a report, a number says enough
        st.lists(mutations(list(BYTES)), min_size=1, max_size=4),
        st.lists(mutations(ROWS), min_size=1, max_size=4),
        st.booleans(),
    )
    def reads_or_refuses(chosen: int, damage: Sequence[Mutation], rows: Sequence[Mutation], in_bytes: bool) -> None:
        victim = candidates[chosen]
        try:
            if victim.is_store and not in_bytes:
                mutate_store(victim.path, rows)
            else:
                victim.path.write_bytes(damaged(victim.content, damage))
            read_all(agent, victim)
        finally:
            victim.path.write_bytes(victim.content)

    reads_or_refuses()


def read_all(agent: str, victim: Victim) -> None:
    """Read what is found of a damaged file, alone and beside another session; only our own errors may come of it."""
    files = list(READERS[agent].find([victim.home]))
    own = [file for file in files if str(file.path).startswith(str(victim.path))] or files[:3]
    others = [file for file in files if file not in own]
    size = sum(path.stat().st_size for path in victim.home.rglob("*") if path.is_file())
    for file in own[:4]:
        with suppress(SourceError):
            READERS[agent].head(file)
        with suppress(SourceError):
            READERS[agent].tail(file)
        for relatives in ([], others[:1]):
            with suppress(SourceError):
                read(agent, file, relatives, size)
    for file in others[:1]:
        with suppress(SourceError):
            read(agent, file, own[:1], size)


def read(agent: str, file: SessionFile, relatives: Sequence[SessionFile], size: int) -> None:
    """Read one session to its end: evidence that can be sent, and not much more text than there is in the file."""
    characters = 0
    with READERS[agent].read(file, relatives) as reading:
        items = []
        for item in reading:
            characters += len(item.text)
            assert characters <= GROWTH * size + ROOM
            items.append(item)
    evidence = gather(
        items, redactor=Redactor(), private_tags=["private"], home=Path("/home/dev/.memoryd"), budget_tokens=2_000
    )
    assert len(evidence.text.encode("utf-8")) <= 3 * 2_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=1_000, help="per agent")
    parser.add_argument("--agent", choices=sorted(READERS), help="only this one")
    options = parser.parse_args()
    for agent in [options.agent] if options.agent else sorted(READERS):
        with tempfile.TemporaryDirectory() as folder:
            fuzz(agent, Path(folder), examples=options.examples, repeatable=False)
        print(f"{agent}: {options.examples} damaged sessions read or refused")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
