"""A reader whose sessions may hold each other's rows: Codex files, of which all that name a family are one lineage."""

from collections.abc import Sequence
from dataclasses import replace

from memoryd.sources.codex import CodexReader
from memoryd.sources.items import SessionFile, SessionHead
from memoryd.sources.reader import Reading, Stretches


class ForkingReader(CodexReader):
    """Takes the originator for the lineage, and drops what a relative says at the same instant; counts relatives."""

    def __init__(self) -> None:
        super().__init__(pause=lambda _seconds: None)
        self.relatives: list[list[str]] = []

    def head(self, file: SessionFile) -> SessionHead:
        head = super().head(file)
        return replace(head, lineage=head.originator)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        self.relatives.append([str(relative.path) for relative in relatives])
        inner = super().read(file)
        theirs: set[tuple[str, float | None]] = set()
        for relative in relatives:
            with super().read(relative) as of_relative:
                theirs |= {(item.text, item.at) for item in of_relative}

        def items(reading: Reading) -> Stretches:
            for item in inner:
                if (item.text, item.at) in theirs:
                    reading.dropped["copied"] += 1
                else:
                    yield [item]
            reading.last_record_at, reading.record_bytes = inner.last_record_at, inner.record_bytes
            reading.timed = inner.timed

        return Reading(items, inner.close)
