"""Reads one session into bounded evidence: the same for stage 1, and for `explain`, which sends nothing."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memoryd.config import Settings
from memoryd.errors import SessionWithoutItems, SourceError
from memoryd.ledger.sessions import Covered, SessionRow
from memoryd.pipeline.context import while_wanted
from memoryd.pipeline.evidence import Evidence, gather
from memoryd.redact import Redactor
from memoryd.sources.items import CitationSeen, Item, MemoryMode, RateLimits, SessionFile
from memoryd.sources.reader import Reading, SessionReader


@dataclass(frozen=True, slots=True)
class Relatives:
    """What of a session is not its own: the rows of `files`, which are older, and all up to `copied_until`.

    `copied_until` is the last record (epoch seconds) of an older session that must not come back through this one and
    cannot be compared any more; None: there is no such.
    """

    files: tuple[SessionFile, ...] = ()
    copied_until: int | None = None


NO_RELATIVES = Relatives()


def find_relatives(reader: SessionReader, rows: Sequence[SessionRow]) -> Relatives:
    """Look for the files of a session's older relatives (blocking).

    Where one is gone, its rows are those of the next oldest session that holds them, unless it was withheld from
    memory: then nothing tells any more which rows were its own but their time.
    """
    files: list[SessionFile] = []
    copied_until: int | None = None
    for row in rows:
        try:
            file = reader.locate(Path(row.path))
            if row.is_withheld:
                reader.head(file)  # it is there but cannot be compared: as good as gone
            files.append(file)
        except SourceError:
            if row.is_withheld:
                copied_until = max(copied_until or 0, row.updated_at)
    return Relatives(tuple(files), copied_until)


def cut_off(relatives: Relatives, session: SessionRow, since: int | None) -> Relatives:
    """Let what a session recorded up to an instant be no evidence; one that began later is its own whole.

    A session whose format has no times, and that was known before, has nothing that is known to be later.
    """
    if since is None or not is_cut_off(session, since):
        return relatives
    return replace(relatives, copied_until=max(relatives.copied_until or 0, since))


def is_cut_off(session: SessionRow, since: int | None) -> bool:
    """Say whether a session began before the instant up to which nothing is evidence."""
    began_at = session.first_seen_at if session.started_at is None else min(session.started_at, session.first_seen_at)
    return since is not None and began_at <= since


@dataclass(frozen=True, slots=True)
class Loaded:
    """A session read for extraction: its evidence, what of the file that covers, and what the file said besides.

    `unknown` counts the records of types that nobody knows.

    `timed` False: the format has no times, and `covered.updated_at` is the file's.
    """

    evidence: Evidence
    covered: Covered
    timed: bool
    citations: tuple[CitationSeen, ...]
    memory_mode: MemoryMode | None
    bad_lines: int
    dropped: Counter[str]
    unknown: Counter[str] = field(default_factory=Counter)
    rate_limits: RateLimits | None = None


def load(
    reader: SessionReader,
    file: SessionFile,
    *,
    settings: Settings,
    redactor: Redactor,
    home: Path,
    budget_tokens: int,
    bytes_per_token: float,
    relatives: Relatives = NO_RELATIVES,
) -> Loaded:
    """Read a session's file once, streaming (blocking). Raises SourceError; never "nothing" for what it cannot read."""
    with reader.read(file, relatives.files) as reading:
        evidence = gather(
            while_wanted(_own_items(reading, relatives.copied_until)),
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
            unknown=Counter(reading.unknown),
            rate_limits=reading.rate_limits,
        )


def _own_items(reading: Reading, copied_until: int | None) -> Iterator[Item]:
    """Leave out what is not later than `copied_until`; an item without a time goes with the one before it."""
    is_copy = copied_until is not None
    for item in reading:
        if copied_until is not None and item.at is not None:
            is_copy = item.at // 1 <= copied_until
        if is_copy:
            reading.dropped["copied"] += 1
        else:
            yield item
