"""Sessions that are being recorded right now: their last record is younger than whatever was started before them."""

import json
import time
from pathlib import Path

from tests.support.process import wait_until
from tests.support.sessions import a_rollout, a_thread_id, iso, response


def a_session_of_now(codex: Path, said: str, *, cwd: str = "/home/dev/shop") -> str:
    """Record a session that ends now, and return its thread id; it is idle as soon as a whole second has passed."""
    now = time.time()
    thread_id = a_thread_id(now, said)
    a_rollout(codex, now=now, idle_hours=0, turns=[said], thread_id=thread_id, cwd=cwd)
    return thread_id


def go_on(path: Path, said: str) -> None:
    """Append one more turn to a session; its records are at least a second later than the last one."""
    last = path.stat().st_mtime
    wait_until(lambda: time.time() >= last + 1, "the clock to move on")
    now = time.time()
    message = response("message", role="user", content=[{"type": "input_text", "text": said}])
    answer = response(
        "message", role="assistant", phase="final_answer", content=[{"type": "output_text", "text": "Noted."}]
    )
    with path.open("a", encoding="utf-8") as file:
        for record in (message, answer):
            file.write(json.dumps({"timestamp": iso(now), **record}) + "\n")


def path_of(codex: Path, thread_id: str) -> Path:
    """Where a session lies."""
    (path,) = codex.rglob(f"rollout-*{thread_id}*")
    return path
