"""Start a daemon, end it somewhere, start it again: `python -m tests.faults.cycles --cycles 100 --seed 7`.

Each cycle may record a session, waits for a random line of the log (or idleness) and a random moment more, and sends
SIGTERM, SIGINT or SIGKILL. In the end a daemon that is left alone must find nothing lost, nothing half-written and
nothing held. The seed is printed with whatever fails; how the machine schedules the processes it does not repeat.
"""

import argparse
import random
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.checks import assert_accepted, settle, threads_asked_about
from tests.support.model_server import ModelServer
from tests.support.process import Place, assert_no_traceback
from tests.support.readers import assert_only_accepted, reading
from tests.support.sessions import a_rollout, a_thread_id

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
MOST_LINES = 24
LONGEST_PAUSE_SECONDS = 0.1
NEW_SESSION = 0.4
"""The share of cycles that record a session, the first one apart."""


@dataclass
class Cycles:
    """A place, and what has been done to it."""

    folder: Path
    seed: int
    threads: list[str] = field(default_factory=list)
    ended_by: Counter[str] = field(default_factory=Counter)

    def run(self, count: int) -> None:
        """Make so many cycles and look at what is left. AssertionError, with the seed, when something is wrong."""
        rng = random.Random(self.seed)
        place = Place(self.folder, measured=False)
        place.codex.mkdir()
        try:
            with ModelServer() as server:
                place.configure(
                    base_url=server.base_url,
                    limits__backfill="recent",
                    discover__min_idle="0s",
                    discover__scan_interval="1s",
                    consolidate__debounce="0s",
                    ledger__lease="1h",
                    # Three kills at one watermark make a job wait this long; the product's 6 h would outlast the trial.
                    ledger__retry_cap="1s",
                )
                with reading(place.memories) as reader:
                    for number in range(count):
                        self._cycle(place, rng, record=number == 0 or rng.random() < NEW_SESSION)
                    settle(place)
                self._look(place, server)
                assert_only_accepted(place, reader)
        except Exception as error:
            error.add_note(f"seed {self.seed}, {count} cycles, ended by {dict(self.ended_by)}")
            raise

    def _cycle(self, place: Place, rng: random.Random, *, record: bool) -> None:
        if record:
            self._record(place)
        number = rng.choice(SIGNALS)
        self.ended_by[number.name] += 1
        with place.start(*place.words("run", "--log-level", "debug")) as daemon:
            # An idle daemon writes nothing but one scan a second.
            daemon.wait_for_lines(rng.randint(1, MOST_LINES), or_events=("scan.completed", 2 if record else 1))
            time.sleep(rng.random() * LONGEST_PAUSE_SECONDS)
            daemon.send(number)
            assert daemon.wait() == (-number if number is signal.SIGKILL else 0), daemon.output
            assert_no_traceback(daemon.output)

    def _record(self, place: Place) -> None:
        now, said = time.time(), f"Use ticket prefix SHOP{len(self.threads)} in every branch name."
        thread_id = a_thread_id(now, said)
        self.threads.append(thread_id)
        a_rollout(place.codex, now=now, idle_hours=1, turns=[said], thread_id=thread_id)

    def _look(self, place: Place, server: ModelServer) -> None:
        """Everything is remembered, sound, accounted for, and nobody holds anything."""
        assert_accepted(place, sessions=len(self.threads))
        assert place.query("PRAGMA quick_check") == [("ok",)]
        assert place.query("SELECT count(*) FROM jobs WHERE ownership_token IS NOT NULL") == [(0,)]
        assert {row[0] for row in place.query("SELECT thread_id FROM stage1_outputs")} == set(self.threads)
        crashes = place.query("SELECT job_key, count(*) FROM attempts WHERE outcome <> 'done' GROUP BY job_key")
        again = Counter(threads_asked_about(server.requests))
        for thread_id in self.threads:
            assert again[thread_id] <= 1 + dict(crashes).get(thread_id, 0)
        assert place.requests_made() >= len(server.requests)
        assert not (place.home / "memoryd.sock").exists()


def main() -> None:
    parser = argparse.ArgumentParser(description="Start and end a daemon again and again.")
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryd-cycles-") as folder:
        cycles = Cycles(Path(folder), arguments.seed)
        cycles.run(arguments.cycles)
    print(f"{arguments.cycles} cycles, {len(cycles.threads)} sessions, ended by {dict(cycles.ended_by)}: all is well")


if __name__ == "__main__":
    main()
