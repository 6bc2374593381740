"""Nothing depends on today's date, and memory use does not depend on the size of a session."""

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.support.checks import assert_accepted, eligible
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Place, thread_id_of
from tests.support.sessions import a_rollout, install_recorded, iso, response

LATER_DAYS = 400
MIB = 1 << 20

in_the_future = pytest.mark.skipif(
    shutil.which("faketime") is None or "FAKETIME" in os.environ,
    reason="there is no faketime program, or this whole run is in another time already",
)
LATER = ("faketime", f"+{LATER_DAYS} days")


@in_the_future
def test_the_demo_works_more_than_a_year_from_now(place: Place) -> None:
    done = place.run("demo", "--json", wrapper=LATER)

    assert done.code == 0, done
    assert done.json["jobs"][STAGE1_KIND]["remembered"] >= 8
    days = re.findall(r"^#### (\d{4})-", done.json["summary"], re.MULTILINE)
    assert max(map(int, days)) >= time.gmtime(time.time() + (LATER_DAYS - 30) * 86_400).tm_year


@in_the_future
def test_a_pass_works_more_than_a_year_from_now(place: Place, server: ModelServer) -> None:
    """I4 holds there as well."""
    names = ["interactive-0.171.0", "interactive-0.110.0", "exec-0.8.0"]
    recorded = install_recorded(place.codex, now=time.time() + LATER_DAYS * 86_400, idle_hours=7, names=names)
    place.configure(base_url=server.base_url, limits__backfill="recent")

    done = place.run("sync", "--json", wrapper=LATER)

    assert done.code == 0, done
    assert sum(done.json["jobs"][STAGE1_KIND].values()) == len(eligible(recorded))
    assert_accepted(place, sessions=done.json["jobs"][STAGE1_KIND]["remembered"])
    server.forget()
    assert place.run("sync", wrapper=LATER).code == 0
    assert server.requests == []


MEASURED = """
import re, resource, sys
from pathlib import Path
from memoryd.control.main import main
code = main(sys.argv[1:])
if sys.platform == "darwin":
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
else:  # ru_maxrss begins with the size of the process that started this one
    used = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(f"used {used} bytes", file=sys.stderr)
sys.exit(code)
"""


def test_a_session_of_60_mb_with_a_line_of_40_mb_passes_within_300_mb(place: Place, server: ModelServer) -> None:
    """I14: read, redacted, budgeted, sent, remembered."""
    now = time.time()
    path = a_rollout(place.codex, now=now, turns=["Always stream large files.", "Never load a whole dump into memory."])
    grow(path, now - 7 * 3600)
    assert path.stat().st_size > 60_000_000
    place.configure(base_url=server.base_url, limits__backfill="recent")

    done = place.execute([sys.executable, "-c", MEASURED, "sync", "--home", str(place.home), "--json"])

    assert done.code == 0, done
    assert done.json["jobs"][STAGE1_KIND] == {"remembered": 1}
    used = re.search(r"used (\d+) bytes", done.stderr)
    assert used is not None
    assert int(used[1]) < 300 * MIB
    assert "Never load a whole dump into memory" in (place.memories / "MEMORY.md").read_text()
    assert max(len(json.dumps(each.body)) for each in server.requests) < 2 * MIB
    assert thread_id_of(path) in (place.memories / "raw_memories.md").read_text()


def grow(path: Path, at: float) -> None:
    """Append a tool output of 40 MB on one line and 20 MB of smaller ones, without holding them in memory."""
    call = response("function_call", name="exec_command", arguments=json.dumps({"cmd": "cat dump.sql"}), call_id="big")
    rows = 40_000_000 // 50
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"timestamp": iso(at), **call}) + "\n")
        output = json.dumps({"timestamp": iso(at), **response("function_call_output", call_id="big", output="@")})
        head, tail = output.split("@")
        file.write(head)
        for number in range(rows):
            file.write(f"INSERT INTO t VALUES ({number:09}, 'some text here');")
        file.write(tail + "\n")
        for number in range(2_000):
            text = f"Progress {number}: " + "all is well. " * 800
            record = response(
                "message", role="assistant", phase="commentary", content=[{"type": "output_text", "text": text}]
            )
            file.write(json.dumps({"timestamp": iso(at), **record}) + "\n")
    os.utime(path, (at, at))
