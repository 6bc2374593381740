"""A scripted agent's program: it answers questions and works in a folder as a good one would, or misbehaves as told.

    python tests/support/agent_program.py [MANNER [ARGUMENT]]

It is run by memoryd as the command of a provider, so that it sees nothing but its input, its folder and its arguments.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.model_asked import Recorded
from tests.support.model_manners import good_model, handbook, parse_raw_memories, summary
from tests.support.model_replies import Reply


def answer(prompt: str) -> str:
    """Answer a question about a session as a good model would."""
    asked = Recorded(1, "POST", "/v1/chat/completions", {}, {"messages": [{"role": "user", "content": prompt}]})
    reply = good_model(asked)
    assert isinstance(reply, Reply)
    return reply.text


def work() -> str:
    """Write the memory from what lies in the current folder."""
    inputs = parse_raw_memories(Path("raw_memories.md").read_text(encoding="utf-8"))
    Path("MEMORY.md").write_text(handbook(inputs), encoding="utf-8")
    Path("memory_summary.md").write_text(summary(inputs), encoding="utf-8")
    return f"Merged {len(inputs)} sessions."


def leave_daemons(seconds: str) -> None:
    """Start processes that outlive this one if nobody ends them."""
    for _ in range(3):
        subprocess.Popen(["sh", "-c", f"setsid sleep {seconds} </dev/null >/dev/null 2>&1 &"], start_new_session=True)


def write_elsewhere(home: Path) -> None:
    """Try to change what is none of its business, and leave links and strays in the folder."""
    for target in (home / "memories" / "MEMORY.md", home / "ledger.sqlite3", home / "config.toml", home / "planted"):
        try:
            with target.open("ab") as file:
                file.write(b"written by an agent\n")
        except OSError:
            pass
    Path("stray.txt").write_text("stray")
    Path("rollout_summaries/planted.md").write_text("thread_id: planted\n")
    Path("raw_memories.md").write_text("nothing any more\n")
    Path("skills/planted").mkdir(parents=True, exist_ok=True)
    Path("skills/planted/link.md").symlink_to("/etc/passwd")
    Path(".git").mkdir(exist_ok=True)


def main(manner: str = "good", argument: str = "") -> int:
    if manner == "deaf":
        time.sleep(3_600)
    prompt = slow_read() if manner == "slow" else sys.stdin.read()
    works = Path("raw_memories.md").exists()
    if manner == "hang":
        time.sleep(3_600)
    if manner == "flood":
        for _ in range(1_000):
            sys.stdout.write("x" * 100_000)
    if manner == "silent":
        return 0
    if manner == "idle" and works:
        print("Nothing to do.")
        return 0
    if manner == "say":
        print(argument, file=sys.stderr)
        return 1
    said = work() if works else answer(prompt)
    if manner == "elsewhere" and works:
        write_elsewhere(Path(argument))
    if manner == "daemons":
        leave_daemons(argument)
    if manner == "careless" and works and "The complaints:" not in prompt:
        Path("MEMORY.md").write_text("no handbook at all\n")
    if manner == "tell":
        Path(argument).write_text(json.dumps({"environ": dict(os.environ), "argv": sys.argv, "cwd": str(Path.cwd())}))
    print(said)
    return 3 if manner == "ungraceful" else 0


def slow_read() -> str:
    pieces = []
    while piece := os.read(0, 4_096):
        pieces.append(piece)
        time.sleep(0.001)
    return b"".join(pieces).decode()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
