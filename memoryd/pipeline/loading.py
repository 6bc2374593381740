"""Reads one session into bounded evidence: the same for stage 1, and for `explain`, which sends nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memoryd.config import Settings
from memoryd.errors import SessionWithoutItems
from memoryd.ledger.sessions import Covered
from memoryd.pipeline.context import while_wanted
from memoryd.pipeline.evidence import Evidence, gather
from memoryd.redact import Redactor
from memoryd.sources.items import CitationSeen, MemoryMode, SessionFile
from memoryd.sources.reader import SessionReader


@dataclass(frozen=True, slots=True)
class Loaded:
    """A session read for extraction: its evidence, what of the file that covers, and what the file said besides.

    `timed` False: the format has no times, and `covered.updated_at` is the file's.
    """

    evidence: Evidence
    covered: Covered
    timed: bool
    citations: tuple[CitationSeen, ...]
    memory_mode: MemoryMode | None
    bad_lines: int
    dropped: Counter[str]


def load(
    reader: SessionReader,
    file: SessionFile,
    *,
    settings: Settings,
    redactor: Redactor,
    home: Path,
    budget_tokens: int,
    bytes_per_token: float,
    relatives: Sequence[SessionFile] = (),
) -> Loaded:
    """Read a session's file once, streaming (blocking). Raises SourceError; never "nothing" for what it cannot read."""
    with reader.read(file, relatives) as reading:
        evidence = gather(
            while_wanted(reading),
            redactor=redactor,
            private_tags=settings.privacy.private_tags,
            home=home,
            budget_tokens=budget_tokens,
            bytes_per_token=bytes_per_token,
        )
        if reading.items_seen == 0 and reading.bad_lines:
            raise SessionWithoutItems(
                f"nothing in {file.path} was understood: {reading.bad_lines} unreadable lines",
                remedy="the agent's format may be newer than this memoryd; nothing was forgotten",
            )
        return Loaded(
            evidence=evidence,
            covered=Covered(updated_at=reading.last_record_at, record_bytes=reading.record_bytes),
            timed=reading.timed,
            citations=tuple(reading.citations),
            memory_mode=reading.memory_mode,
            bad_lines=reading.bad_lines,
            dropped=Counter(reading.dropped),
        )
