"""Several daemons at work on one real ledger file, with everything that can go wrong between their statements.

A `World` is one history, its methods are the steps. Who chooses them is somebody else's business: hypothesis
(test_history.py) or a seed (simulation.py). Daemons here do what real ones never would: they go on with leases that
were taken from them long ago. Every such write must change nothing.
"""

import sqlite3
from collections.abc import Callable, Sequence

from memoryd.ledger import jobs, outputs, publications, sessions, spend
from memoryd.ledger.attempts import WorkedBy
from memoryd.ledger.claims import NewClaim
from memoryd.ledger.discovery import enqueue_due
from memoryd.ledger.jobs import Lease
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.sessions import Covered, UserMode
from memoryd.ledger.states import JobKind
from tests.ledger import model
from tests.ledger.factories import a_sighting
from tests.ledger.faults import NO_FAULT, Fault, Trouble
from tests.ledger.machine import Act, Daemon, Machine, Running
from tests.ledger.model import LEASE_SECONDS, MAX_ATTEMPTS, MAX_RUNNING, REQUEST_CAP, RETRY_CAP, TIMING

TOKENS = 100
"""What each request costs."""

CAPS = spend.Caps(requests_per_day=REQUEST_CAP, tokens_per_day=10_000_000)


class Surroundings(Machine):
    """What happens to jobs whoever holds them."""

    def discover(self, daemon: Daemon, thread: str, pair: Covered, fault: Fault = NO_FAULT) -> None:
        sighting = a_sighting(thread, updated_at=pair.updated_at, record_bytes=pair.record_bytes)

        def act(conn: sqlite3.Connection) -> None:
            sessions.upsert(conn, sighting, self.now)
            due = sessions.due(conn, idle_before=float("inf"), newest_from=None)
            enqueue_due(conn, due, now=self.now, max_attempts=MAX_ATTEMPTS)

        self._step(daemon, act, lambda: self.model.see(thread, pair, self.now), fault)

    def dirty(self, daemon: Daemon, watermark: int | None = None, fault: Fault = NO_FAULT) -> None:
        """A person changes the memory folder."""
        self._step(
            daemon,
            lambda conn: self._enqueue_global(conn, watermark),
            lambda: self.model.enqueue_global(now=self.now, watermark=watermark),
            fault,
        )

    def _enqueue_global(self, conn: sqlite3.Connection, watermark: int | None = None) -> None:
        jobs.enqueue_consolidation(
            conn, now=self.now, timing=TIMING, max_attempts=MAX_ATTEMPTS, reason="person", watermark=watermark
        )

    def expedite(self, daemon: Daemon, kind: JobKind, reasons: tuple[str, ...], fault: Fault = NO_FAULT) -> None:
        self._step(
            daemon,
            lambda conn: jobs.expedite(conn, kind=kind, reasons=reasons, now=self.now),
            lambda: self.model.expedite(kind, reasons, self.now),
            fault,
        )

    def mend(self, daemon: Daemon, kind: JobKind, fault: Fault = NO_FAULT) -> None:
        self._step(
            daemon,
            lambda conn: jobs.mend_waits(conn, kind=kind, now=self.now),
            lambda: self.model.mend(kind, self.now),
            fault,
        )

    def retry(self, daemon: Daemon, kind: JobKind, job_key: str, fault: Fault = NO_FAULT) -> None:
        self._step(
            daemon,
            lambda conn: jobs.retry(conn, kind=kind, job_key=job_key, now=self.now, max_attempts=MAX_ATTEMPTS),
            lambda: self.model.revive(kind, self.now, ("pending", "error"), job_key) > 0,
            fault,
        )

    def retry_all(self, daemon: Daemon, kind: JobKind, fault: Fault = NO_FAULT) -> None:
        self._step(
            daemon,
            lambda conn: jobs.retry_all_dead(conn, kind=kind, now=self.now, max_attempts=MAX_ATTEMPTS),
            lambda: self.model.revive(kind, self.now, ("error",)),
            fault,
        )

    def cancel(self, daemon: Daemon, kind: JobKind, job_key: str, fault: Fault = NO_FAULT) -> None:
        self._step(
            daemon,
            lambda conn: jobs.request_cancel(conn, kind=kind, job_key=job_key),
            lambda: self.model.cancel(kind, job_key),
            fault,
        )

    def cite(self, daemon: Daemon, threads: tuple[str, ...], message: str, fault: Fault = NO_FAULT) -> None:
        self._step(
            daemon,
            lambda conn: outputs.cite(conn, threads, message, self.now),
            lambda: self.model.cite(threads, message, self.now),
            fault,
        )

    def take_in(self, daemon: Daemon, thread: str, at: int, text: str, fault: Fault = NO_FAULT) -> None:
        """An output comes from elsewhere (the import of another memory), perhaps of a later state than ours."""
        if thread not in self.model.sessions:
            return
        self._step(
            daemon,
            lambda conn: outputs.store(conn, NewOutput(thread, at, text, text, None), now=self.now),
            lambda: self.model.keep(thread, at, text),
            fault,
        )

    def prune(self, daemon: Daemon, fault: Fault = NO_FAULT) -> None:
        self._step(
            daemon,
            lambda conn: outputs.prune(conn, now=self.now, max_unused=model.MAX_UNUSED),
            lambda: self.model.prune(self.now),
            fault,
        )

    def set_polluted(self, daemon: Daemon, thread: str, *, polluted: bool, fault: Fault = NO_FAULT) -> None:
        """A session took in what came from outside, or a person wants it all the same."""
        if thread not in self.model.sessions:
            return

        def act(conn: sqlite3.Connection) -> bool:
            if polluted:
                dirtied = sessions.mark_polluted(conn, thread, self.now)
            else:
                dirtied = sessions.set_user_mode(conn, thread, UserMode.ENABLED)
                sessions.set_user_mode(conn, thread, None)
            if dirtied:
                self._enqueue_global(conn)
            return dirtied

        def predict() -> bool:
            dirtied = self.model.pollute(thread) if polluted else self.model.enable(thread)
            if dirtied:
                self.model.enqueue_global(now=self.now)
            return dirtied

        self._step(daemon, act, predict, fault)


class World(Surroundings):
    """One history."""

    def claim(
        self, daemon: Daemon, kind: JobKind, *, only: str | None = None, fault: Fault = NO_FAULT
    ) -> Running | None:
        act, predict = self._claiming(daemon, kind, only)
        lease = self._step(daemon, act, predict, fault)
        if not isinstance(lease, Lease):
            return None
        self._nobody_else_is_sure(lease)
        return self._begin(daemon, lease)

    def _claiming(
        self, daemon: Daemon, kind: JobKind, only: str | None = None
    ) -> tuple[Act[Lease | None], Callable[[], Lease | None]]:
        token, held = self._mint(), daemon.held

        def act(conn: sqlite3.Connection) -> Lease | None:
            return jobs.claim(
                conn,
                kind=kind,
                worker_id=daemon.name,
                now=self.now,
                lease_seconds=LEASE_SECONDS,
                max_running=MAX_RUNNING,
                max_attempts=MAX_ATTEMPTS,
                retry_cap=RETRY_CAP,
                held=held,
                only=only,
                worked_by=WorkedBy("p", "m", token),
                mint=lambda: token,
            )

        def predict() -> Lease | None:
            job = self.model.claim(kind, worker=daemon.name, now=self.now, held=held, token=token, only=only)
            return None if job is None else self.model.lease(job, self.now)

        return act, predict

    def go_on(self, daemon: Daemon, runs: Sequence[Running], fault: Fault = NO_FAULT) -> None:
        """Workers of one daemon end their runs and claim the next ones with them, all at the same time."""
        answers = self._step_together(daemon, [self._going_on(daemon, run) for run in runs], fault)
        for run in runs:
            self._drop(run)
        for lease in answers:
            if isinstance(lease, Lease):
                self._nobody_else_is_sure(lease)
                self._begin(daemon, lease)

    def _going_on(self, daemon: Daemon, run: Running) -> tuple[Act[Lease | None], Callable[[], Lease | None]]:
        self.answers += 1
        end, predict_end = self._learning(run, f"answer {self.answers}")
        claim, predict_claim = self._claiming(daemon, JobKind.STAGE1)

        def act(conn: sqlite3.Connection) -> Lease | None:
            end(conn)
            return claim(conn)

        def predict() -> Lease | None:
            predict_end()
            return predict_claim()

        return act, predict

    def _mint(self) -> str:
        """A new token, or, on a machine that was restored from a snapshot, an old one again."""
        token = f"token-{len(self.tokens)}"
        if self.repeat_token is not None and self.tokens:
            token = self.tokens[self.repeat_token % len(self.tokens)]
        self.tokens.append(token)
        return token

    def _nobody_else_is_sure(self, lease: Lease) -> None:
        """Never two live holders: unless the clock jumped, whoever held the job before has stopped by itself."""
        for daemon in self.daemons:
            for run in daemon.runs:
                same = (run.lease.kind, run.lease.job_key) == (lease.kind, lease.job_key)
                sure = self.elapsed < run.renewed_at + LEASE_SECONDS
                if same and sure and self.stepped_at < run.renewed_at:
                    raise AssertionError(f"{lease.job_key} was taken from {daemon.name}, which is still sure of it")

    def _begin(self, daemon: Daemon, lease: Lease) -> Running:
        run = Running(lease, self.elapsed)
        if lease.kind is JobKind.STAGE1:
            run.read = self.model.sessions[lease.job_key].seen
        else:
            real = outputs.select_for_consolidation(
                self.reader, now=self.now, max_raw_memories=99, max_unused=model.MAX_UNUSED
            )
            run.selected = [row.snapshot for row in real]
            assert run.selected == self.model.selection(self.now), "the selection is not what it should be"
            before = [(row.thread_id, row.source_updated_at) for row in outputs.previously_selected(self.reader)]
            known = sorted((name, row.selected) for name, row in self.model.outputs.items() if row.selected)
            assert before == known, "the earlier selection is not what it should be"
        daemon.runs.append(run)
        return run

    def beat(self, daemon: Daemon, run: Running, fault: Fault = NO_FAULT) -> None:
        lease, now = run.lease, self.now
        sent = self.elapsed

        def act(conn: sqlite3.Connection) -> bool:
            return jobs.heartbeat(conn, lease, now=now, lease_seconds=LEASE_SECONDS).cancel_requested

        answer = self._step(daemon, act, lambda: self.model.renew(self._held(lease), now), fault)
        if isinstance(answer, bool):
            run.renewed_at = sent
        elif fault is NO_FAULT:
            self._drop(run)

    def look_up(self, run: Running) -> None:
        """Whoever does not know what became of its lease asks by its token."""
        job = self.model.jobs.get((run.lease.kind, run.lease.job_key))
        holds = job is not None and (job.ownership_token, job.epoch) == (run.lease.token, run.lease.epoch)
        assert jobs.holds(self.reader, run.lease) == holds, "who holds the job is not who should"

    def ask(self, daemon: Daemon, run: Running, fault: Fault = NO_FAULT) -> None:
        """Send a request to a model: it is recorded before."""
        purpose = spend.Purpose(run.lease.kind, run.lease.job_key, run.lease.attempt_id)

        def act(conn: sqlite3.Connection) -> int:
            return spend.reserve(
                conn,
                now=self.now,
                purpose=purpose,
                provider="p",
                model="m",
                estimated_tokens=TOKENS,
                estimated_cost=0.0,
                caps=CAPS,
            )

        answer = self._step(daemon, act, lambda: self.model.reserve(run.lease.attempt_id, self.now), fault)
        run.request = answer if isinstance(answer, int) else None

    def settle(self, daemon: Daemon, run: Running, fault: Fault = NO_FAULT) -> None:
        """The model's answer has come; whoever is not sure that it was recorded records it again."""
        number = run.request
        if number is None:
            return

        def act(conn: sqlite3.Connection) -> bool:
            return spend.settle(
                conn,
                number,
                now=self.now,
                outcome="ok",
                tokens_in=TOKENS,
                tokens_out=0,
                tokens_cached=0,
                cost=0.0,
                duration_ms=1,
            )

        self._step(daemon, act, lambda: self.model.settle(number, TOKENS), fault)

    def release(self, daemon: Daemon, run: Running, fault: Fault = NO_FAULT) -> None:
        self._end(
            daemon,
            run,
            lambda conn: jobs.release(conn, run.lease, now=self.now),
            lambda: self.model.release(self._held(run.lease), now=self.now),
            fault,
        )

    def defer(self, daemon: Daemon, run: Running, delay: float, fault: Fault = NO_FAULT) -> None:
        until = self.now + delay
        self._end(
            daemon,
            run,
            lambda conn: jobs.defer(conn, run.lease, now=self.now, until=until, reason="rate_limited", error=None),
            lambda: self.model.defer(self._held(run.lease), now=self.now, until=until),
            fault,
        )

    def fail(self, daemon: Daemon, run: Running, delay: float, fault: Fault = NO_FAULT) -> None:
        lease, at = run.lease, self.now + delay
        self._end(
            daemon,
            run,
            lambda conn: jobs.fail(conn, lease, now=self.now, retry_at=at, error="it broke", error_class="E"),
            lambda: self.model.fail(self._held(lease), now=self.now, covers=lease.input_watermark, retry_at=at),
            fault,
        )

    def complete(self, daemon: Daemon, run: Running, *, empty: bool = False, fault: Fault = NO_FAULT) -> None:
        """Finish with what was read at the claim; every answer is another text."""
        self.answers += 1
        text = None if empty else f"answer {self.answers}"
        if run.lease.kind is JobKind.CONSOLIDATE:
            self._decide(daemon, run, text, fault)
        else:
            self._end(daemon, run, *self._learning(run, text), fault)

    def _learning(self, run: Running, text: str | None) -> tuple[Act[None], Callable[[], None]]:
        lease = run.lease
        output = None if text is None else NewOutput(lease.job_key, lease.input_watermark, text, "", None)

        def act(conn: sqlite3.Connection) -> None:
            jobs.complete(
                conn,
                lease,
                now=self.now,
                output=output,
                covered=run.read,
                consolidate=TIMING,
                max_attempts=MAX_ATTEMPTS,
            )

        def predict() -> None:
            held = self._held(lease)
            self.model.complete(held, now=self.now, covers=lease.input_watermark, text=text, covered=run.read)

        return act, predict

    def _decide(self, daemon: Daemon, run: Running, commit: str | None, fault: Fault) -> None:
        lease = run.lease
        waiting = publications.pending(self.reader)
        assert (waiting is not None) == any(state == "decided" for _, state in self.model.publications)
        if waiting is not None:
            self.publish(daemon, waiting.id)
        claims = [
            NewClaim(f"learned from {row.thread_id}", "section", "global", commit or "", (row.thread_id,))
            for row in run.selected
        ]

        def act(conn: sqlite3.Connection) -> None:
            jobs.complete_consolidation(
                conn,
                lease,
                now=self.now,
                consumed=run.selected,
                publication=None if commit is None else NewPublication(commit, None),
                claims=claims,
                min_interval=TIMING.min_interval,
            )

        def predict() -> None:
            held = self._held(lease)
            self.model.consolidate(
                held, now=self.now, covers=lease.input_watermark, consumed=run.selected, commit=commit
            )

        self._end(daemon, run, act, predict, fault)

    def publish(self, daemon: Daemon, number: int, fault: Fault = NO_FAULT) -> None:
        """What was decided is in place; a repetition says that it was known."""
        if not 1 <= number <= len(self.model.publications):
            return
        self._step(
            daemon,
            lambda conn: publications.mark_published(conn, number, self.now),
            lambda: self.model.publish(number),
            fault,
        )

    def _held(self, lease: Lease) -> model.Job:
        return self.model.held(lease.kind, lease.job_key, lease.token, lease.epoch)

    def _end(self, daemon: Daemon, run: Running, act: Act[object], predict: Callable[[], object], fault: Fault) -> None:
        """The last step of a run: afterwards the lease is nobody's, but may be used again by who does not know that."""

        def done(conn: sqlite3.Connection) -> None:
            act(conn)

        def predicted() -> None:
            predict()

        self._step(daemon, done, predicted, fault)
        if fault.trouble is Trouble.ANSWER_LOST:
            assert not jobs.holds(self.reader, run.lease), "a run that has ended still holds its job"
        self._drop(run)
