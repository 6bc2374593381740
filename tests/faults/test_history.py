"""What `memoryd jobs show` tells somebody who has never seen the code, after everything that can become of a run."""

import re
import signal
import sys
import time

from tests.support.model_replies import Hang, Reply, Status
from tests.support.model_server import ModelServer
from tests.support.process import Place, thread_id_of
from tests.support.sessions import a_rollout

# Times, lengths and sizes differ from run to run: they read TIME, N s, N tokens.
TOLD = """\
session THREAD (memory_stage1 THREAD)
  state         done
  next          nothing until there is new input: it is done, since TIME
  to do         nothing
  last success  TIME
  tries left    3; only a failure takes one
runs so far: 5, the newest first
  run 5  TIME  done after N s; 1 request, N tokens, scripted/scripted-1
  run 4  TIME  given back after N s; 1 request, N tokens, scripted/scripted-1; memoryd was stopped; this costs no try
  run 3  TIME  put off after N s; 1 request, N tokens, scripted/scripted-1; this costs no try
      rate_limited: scripted answered 429: slow down (it is asked again later by itself; check plan and usage at the \
provider if this stays)
  run 2  TIME  failed after N s; 2 requests, N tokens, scripted/scripted-1
      MalformedReply: the model's answer is not a stage-1 reply: it holds no JSON object (the session is tried again; \
if it keeps happening, choose a model that keeps to a JSON schema)
  run 1  TIME  crashed; 1 request, N tokens, scripted/scripted-1; memoryd was killed, or the machine went down
      the run ended without a word
"""


def test_the_history_of_a_job_reads_well_after_a_crash_a_failure_a_deferral_a_stop_and_a_success(
    place: Place, server: ModelServer
) -> None:
    """I5, with real runs."""
    place.configure(base_url=server.base_url, limits__backfill="recent", ledger__lease="1h", ledger__retry_base="1h")
    thread = thread_id_of(a_rollout(place.codex, now=time.time(), turns=["Keep the changelog short."]))
    killed = [sys.executable, "-m", "tests.support.killed_pass", str(place.home), "reply_received"]
    assert place.execute(killed).code == -signal.SIGKILL

    server.then(Reply(text="Sure!"), Reply(text="Here it is."))
    assert place.run("sync").code == 1
    assert "next          backoff: the last try failed" in place.run("jobs", "show", thread).stdout
    try_again(place, thread)
    server.then(Status(429, "slow down", headers={"Retry-After": "3600"}))
    assert place.run("sync").code == 3
    assert (
        "next          rate_limited: the provider's limit is reached, until" in place.run("jobs", "show", thread).stdout
    )
    try_again(place, thread)
    server.then(Hang())
    asked = len(server.requests)
    with place.start(*place.words("sync")) as running:
        server.wait_for(asked + 1)
        assert "  still running; 0 requests, 0 tokens" in place.run("jobs", "show", thread).stdout
        running.send(signal.SIGINT)
        assert running.wait() == 130
    assert "next          it is due, but no memoryd runs (not_running)" in place.run("jobs", "show", thread).stdout
    assert place.run("sync").code == 0

    assert without_numbers(place.run("jobs", "show", thread).stdout.replace(thread, "THREAD")) == TOLD


def try_again(place: Place, thread: str) -> None:
    assert place.run("jobs", "retry", thread).code == 0


def without_numbers(told: str) -> str:
    told = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", told)
    told = re.sub(r"TIME \((?:now|in [^)]+|[^)]+ ago)\)", "TIME", told)
    return re.sub(r"[\d,]+(\.\d)? (s|tokens)\b", r"N \2", told)
