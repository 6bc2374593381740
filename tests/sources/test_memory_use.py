"""Reading takes little memory, however long a session or one of its lines is (invariant I14)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import a_thread_id, iso

NOW = 1_700_000_000.0
THREAD = a_thread_id(NOW, "large")
MEGABYTE = 1_000_000
LIMIT_MEGABYTES = 300

READ = """
import resource, sys
from pathlib import Path
from memoryd.sources.codex import CodexReader
from memoryd.sources.items import SessionFile
file = SessionFile("codex", sys.argv[1], 0, 0)
reader = CodexReader()
head, tail = reader.head(file), reader.tail(file)
with reader.read(file) as reading:
    items = sum(1 for _ in reading)
assert (tail.last_record_at, tail.record_bytes) == (reading.last_record_at, reading.record_bytes)
status = Path("/proc/self/status")
if status.exists():  # on Linux ru_maxrss of a child begins with what its parent used
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(items, reading.bad_lines, peak // 1_000_000)
"""


def row(kind: str, payload: str) -> bytes:
    return f'{{"timestamp":"{iso(NOW)}","type":"{kind}","payload":{payload}}}\n'.encode()


OUTPUT = '{"type":"function_call_output","call_id":"c","output":"@"}'
PARTS = '[{"type":"input_image","image_url":"data:@"},{"type":"input_text","text":"thread_rolled_back"}]'
IMAGE = f'{{"type":"message","role":"user","content":{PARTS}}}'

# the payload, what stands in it for `@` and how many megabytes of it, and the items and bad lines that come of it
LONG_LINES = {
    "output": (OUTPUT, "x", 40, 1, 0),
    "wide": (OUTPUT, "\U0001f600abcd", 40, 1, 0),
    "image": (IMAGE, "A", 40, 1, 0),
    "over the cap": (OUTPUT, "x", 70, 0, 1),
}


def a_session(into: Path, payload: str, text: str, megabytes: int) -> Path:
    words = json.dumps({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "word " * 2000}]})
    filler = row("response_item", words)

    def content() -> Iterator[bytes]:
        yield row("session_meta", json.dumps({"id": THREAD, "timestamp": iso(NOW), "cwd": "/x"}))
        yield from [filler] * 1000
        before, after = row("response_item", payload).split(b"@")
        yield before
        yield from [text.encode() * (MEGABYTE // len(text.encode()))] * megabytes
        yield after
        yield from [filler] * 1000

    path = into / f"rollout-2023-11-14T22-13-20-{THREAD}.jsonl"
    with path.open("wb") as file:
        file.writelines(content())
    return path


@pytest.mark.parametrize("name", LONG_LINES)
def test_a_60_megabyte_session_with_one_huge_line_reads_within_300_megabytes(tmp_path: Path, name: str) -> None:
    payload, text, megabytes, items, bad_lines = LONG_LINES[name]
    path = a_session(tmp_path, payload, text, megabytes)
    assert path.stat().st_size > 60 * MEGABYTE
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(root), "PATH": os.defpath},
    )
    seen_items, seen_bad, peak = map(int, done.stdout.split())
    assert (seen_items, seen_bad) == (2000 + items, bad_lines)
    assert peak < LIMIT_MEGABYTES
