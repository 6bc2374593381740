"""256 sessions, a diff of 4 MiB and a handbook of 300 KB: an agent works through them in bounded reads."""

import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection

from memoryd.agent.loop import MAX_REPLY_BYTES
from memoryd.daemon.endings import Ending
from memoryd.ledger import claims, jobs, outputs, sessions
from memoryd.llm.question import Answer, Question, ToolTurn
from memoryd.workspace.diff import MAX_DIFF_BYTES
from memoryd.workspace.layout import DIFF_FILE
from tests.bench.consolidate import folders
from tests.ledger.factories import a_sighting
from tests.pipeline.test_consolidate import NOW_TIMING, run
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import calls

SESSIONS, LINES, BULLETS = 256, 100, 10
MORE = re.compile(r"\[\.\.\. truncated: continue with line_offset=(\d+)\]\s*\Z")


def store_all(conn: Connection, now: float) -> None:
    for number in range(SESSIONS):
        output = replace(folders.new_output(number, LINES), source_updated_at=int(now) - 9000 + number)
        sessions.upsert(
            conn,
            a_sighting(output.thread_id, updated_at=output.source_updated_at, cwd=folders.cwd(number)),
            now,
        )
        assert outputs.store(conn, output, now=now)
        assert output.stem is not None
        sessions.fix_stem(conn, output.thread_id, output.stem)
    jobs.enqueue_consolidation(conn, now=now, timing=NOW_TIMING, max_attempts=3, reason="session")


class Reader:
    """Reads the diff page by page to its end, writes both files, reads the handbook in the same way, changes a line."""

    def __init__(self) -> None:
        self.pages: dict[str, list[str]] = {}
        self.largest = 0
        self._steps = self._work()
        next(self._steps)

    def __call__(self, question: Question) -> Answer:
        last = question.turns[-1]
        output = last.results[-1].output if isinstance(last, ToolTurn) else ""
        self.largest = max(self.largest, len(output.encode()))
        return self._steps.send(output)

    def text(self, path: str) -> str:
        return "".join(self.pages[path])

    def _work(self) -> Generator[Answer, str, None]:
        output = yield calls({})
        yield from self._whole(DIFF_FILE)
        files = {"MEMORY.md": folders.handbook(SESSIONS, BULLETS), "memory_summary.md": folders.summary(SESSIONS)}
        output = yield calls(*({"write_file": {"path": path, "content": text}} for path, text in files.items()))
        assert not output.startswith("error: "), output
        yield from self._whole("MEMORY.md")
        line = next(row for row in self.text("MEMORY.md").splitlines() if row.startswith("- fact 3 of 100 "))
        new = line.replace("holds:", "still holds:")
        yield calls({"edit_file": {"path": "MEMORY.md", "old": line, "new": new}})
        yield calls({"finish": {"summary": "done"}})

    def _whole(self, path: str) -> Generator[Answer, str, None]:
        pages, line = self.pages.setdefault(path, []), 1
        while line:
            output = yield calls({"read_file": {"path": path, "line_offset": line, "max_lines": 2000}})
            more = MORE.search(output)
            pages.append(MORE.sub("", output))
            line = int(more[1]) if more else 0


async def test_an_agent_reads_the_largest_inputs_to_their_end_and_changes_one_line(
    tmp_path: Path, clock: FakeClock
) -> None:
    settings = settings_in(tmp_path, consolidate__max_requests=120, consolidate__max_tokens=50_000_000)
    reader = Reader()
    client = Answering(reader)
    async with a_house(settings, clock, client=client) as context:
        await context.ledger.write(store_all, clock.now())

        done = await run(context)

        assert done.ending is Ending.PUBLISHED, done
        assert MAX_DIFF_BYTES - 200_000 < len(reader.text(DIFF_FILE).encode()) <= MAX_DIFF_BYTES
        assert "the diff was cut" in reader.text(DIFF_FILE)
        assert len(reader.text("MEMORY.md").encode()) > 300_000
        assert reader.largest <= MAX_REPLY_BYTES
        assert len(client.asked) <= 70
        rows = await context.ledger.read(claims.valid)
        assert len(rows) == SESSIONS * (BULLETS + 1)
        assert [row.text[:27] for row in rows if "still" in row.text] == ["fact 3 of 100 still holds: "]
