"""Written schedules, each for a guard that random histories meet rarely, or that they cannot see: how a row is found.

Each takes an empty ledger and raises AssertionError when the ledger does not do what it should.
"""

import sqlite3
from collections.abc import Callable

from memoryd.errors import BudgetSpent
from memoryd.ledger import attempts, claims, jobs, meta, outputs, publications, queries, rescanning, sessions, spend
from memoryd.ledger.attempts import Beginning, Ending
from memoryd.ledger.claims import NewClaim
from memoryd.ledger.jobs import Lease
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.sessions import Covered, UserMode
from memoryd.ledger.spend import Caps, Purpose
from memoryd.ledger.states import MOVES, JobKind, Outcome, Status
from tests.ledger.factories import (
    NOW,
    OTHER,
    THREAD,
    a_lease,
    a_session,
    a_sighting,
    an_output,
    complete,
    enqueue,
    enqueue_global,
)
from tests.ledger.moves import PARAMETERS, insert, outcomes
from tests.ledger.plans import plan_of

_DAY = 86_400
_CAPS = Caps(requests_per_day=9, tokens_per_day=999)

HOLDERS_STATEMENTS = (
    "record_crash",
    "renew_lease",
    "find_held",
    "mark_fingerprint",
    "complete_job",
    "defer_job",
    "fail_job",
    "release_job",
)


def sql_moves_a_job_exactly_as_the_table_of_moves_says(conn: sqlite3.Connection) -> None:
    for name, move in MOVES.items():
        if name == "insert_job":
            continue
        for status in Status:
            allowed = move.ends if status in move.starts else frozenset()
            assert outcomes(conn, name, status) == allowed, f"{name} of a job that is {status}"


def what_concerns_one_row_finds_it_by_its_key(conn: sqlite3.Connection) -> None:
    """Token and epoch alone would name the row too, after a walk through all rows of the kind."""
    for name in ("find_job", "record_crash", "renew_lease", "find_held", "request_cancel", "mark_fingerprint"):
        assert "(kind=? AND job_key=?)" in _plan(conn, "jobs", name), name
    for name in (
        "complete_job",
        "defer_job",
        "fail_job",
        "release_job",
        "reopen_job",
        "raise_watermark",
        "revive_job",
        "raise_waiting",
    ):
        assert "(kind=? AND job_key=?)" in _plan(conn, "jobs", name), name
    assert _plan(conn, "sessions", "record_covered").count("(kind=? AND job_key=?)") == 2


def a_session_that_is_again_what_it_was_when_it_was_enqueued_is_due(conn: sqlite3.Connection) -> None:
    """It was another when it was read: nobody has read what it is now, though that had been enqueued."""
    enqueue(conn, updated_at=10, record_bytes=9)
    complete(conn, a_lease(conn), covered=Covered(11, 12))

    assert _session(conn, THREAD).is_open


def a_holder_with_another_token_epoch_kind_or_key_moves_nothing(conn: sqlite3.Connection) -> None:
    """Two holders may have drawn the same token (their machine was restored from a snapshot)."""
    others: dict[str, object] = {"token": "x", "epoch": 9, "kind": JobKind.CONSOLIDATE, "job_key": OTHER}
    for name in HOLDERS_STATEMENTS:
        for column, value in others.items():
            conn.execute("DELETE FROM jobs")
            insert(conn, Status.RUNNING, {})
            before = conn.execute("SELECT * FROM jobs").fetchall()
            touched = conn.execute(queries.load("jobs")[name], PARAMETERS | {column: value}).fetchall()
            after = conn.execute("SELECT * FROM jobs").fetchall()
            fenced = (column, name) == ("epoch", "record_crash") or (touched, after) == ([], before)
            assert fenced, f"{name} with another {column}"


def what_is_due_next_is_the_first_entry_of_the_partial_index(conn: sqlite3.Connection) -> None:
    plan = _plan(conn, "jobs", "find_next_ready")
    assert "USING INDEX jobs_ready (kind=?)" in plan
    assert "USING COVERING INDEX jobs_published (kind=? AND status=?)" in plan


def the_leases_of_a_kind_are_found_beside_any_number_of_other_jobs(conn: sqlite3.Connection) -> None:
    assert "USING INDEX jobs_published (kind=? AND status=?)" in _plan(conn, "jobs", "list_leased")


def what_waits_is_found_in_the_partial_index(conn: sqlite3.Connection) -> None:
    for name in ("expedite_jobs", "mend_waits"):
        assert "USING INDEX jobs_ready (kind=? AND ready_at>?)" in _plan(conn, "jobs", name), name


def the_first_outcome_of_a_run_stands(conn: sqlite3.Connection) -> None:
    _run(conn, 1)
    attempts.end(conn, 1, Ending(Outcome.CRASHED), now=NOW)
    attempts.end(conn, 1, Ending(Outcome.DONE), now=NOW)

    assert [run.outcome for run in attempts.of_job(conn, "k", "key")] == [Outcome.CRASHED]


def a_run_is_marked_and_no_other(conn: sqlite3.Connection) -> None:
    _run(conn, 1)
    _run(conn, 2)
    attempts.mark(conn, 1, provider="p", model="m", fingerprint="f")

    assert [run.model for run in attempts.of_job(conn, "k", "key")] == [None, "m"]


def a_request_counts_for_its_run_alone_and_once(conn: sqlite3.Connection) -> None:
    _run(conn, 1)
    _run(conn, 2)
    first, second = (_reserve(conn, run, now=NOW) for run in (1, 2))
    assert _settle(conn, second, tokens=7)
    assert not _settle(conn, second, tokens=7)

    assert [run.tokens_in for run in attempts.of_job(conn, "k", "key")] == [7, 0]
    assert [row.settled_at is None for row in spend.of_attempt(conn, 1)] == [True]
    assert _settle(conn, first, tokens=1)


def a_cap_is_of_one_utc_day(conn: sqlite3.Connection) -> None:
    _reserve(conn, 1, now=NOW)

    assert spend.today(conn, NOW).requests == 1
    assert spend.today(conn, NOW + _DAY).requests == 0


def what_is_not_settled_counts_as_estimated_and_what_is_settled_as_it_was(conn: sqlite3.Connection) -> None:
    request = _reserve(conn, 1, now=NOW)
    assert spend.today(conn, NOW).tokens == 100
    _settle(conn, request, tokens=7)
    assert spend.today(conn, NOW).tokens == 7
    unsaid = _reserve(conn, 1, now=NOW)
    _settle(conn, unsaid, tokens=None)
    assert spend.today(conn, NOW).tokens == 107
    try:
        _reserve(conn, 1, now=NOW, caps=Caps(9, 206))
    except BudgetSpent:
        return
    raise AssertionError("a cap was passed")


def claims_that_persist_keep_their_time_and_those_that_vanish_are_closed_once(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [_claim("a"), _claim("b"), _claim("c")], now=NOW)
    claims.replace_claims(conn, [_claim("a", "verified"), _claim("b")], now=NOW + 1)
    claims.replace_claims(conn, [_claim("b")], now=NOW + 2)
    claims.replace_claims(conn, [_claim("b"), _claim("c")], now=NOW + 3)

    rows = {(row.text, row.valid_from): row for row in claims.of_thread(conn, THREAD)}
    closed = {key: None if row.invalidated_at is None else row.invalidated_at - int(NOW) for key, row in rows.items()}
    begun = int(NOW)
    assert closed == {("a", begun): 2, ("b", begun): None, ("c", begun): 1, ("c", begun + 3): None}
    assert [rows[("a", begun)].status, rows[("b", begun)].status] == ["verified", "stated"]
    assert [row.text for row in claims.valid(conn)] == ["b", "c"]


def only_the_session_whose_claim_it_is_supports_it(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [_claim("a"), NewClaim("b", "s", "global", "stated", (OTHER,))], now=NOW)
    claims.replace_claims(conn, [_claim("a"), NewClaim("b", "s", "global", "stated", (OTHER, THREAD))], now=NOW)

    assert [row.thread_ids for row in claims.valid(conn)] == [(THREAD,), (THREAD, OTHER)]


def a_decision_is_published_once_and_alone(conn: sqlite3.Connection) -> None:
    first = publications.decide(conn, NewPublication("c1", None), attempt_id=1, now=NOW)
    assert publications.mark_published(conn, first, NOW)
    assert publications.pending(conn) is None
    second = publications.decide(conn, NewPublication("c2", "c1"), attempt_id=2, now=NOW)
    assert not publications.mark_published(conn, first, NOW + 1)
    waiting = publications.pending(conn)

    assert waiting is not None
    assert waiting.id == second


def an_output_of_an_earlier_state_does_not_replace_a_later_one(conn: sqlite3.Connection) -> None:
    assert outputs.store(conn, an_output(source_updated_at=5, raw_memory="later"), now=NOW)
    assert not outputs.store(conn, an_output(source_updated_at=4, raw_memory="earlier"), now=NOW)

    kept = outputs.get(conn, THREAD)
    assert kept is not None
    assert kept.raw_memory == "later"


def a_decision_touches_only_rows_whose_selection_changes(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b", "c"):
        outputs.store(conn, an_output(thread, source_updated_at=5), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("a", 5)])
    before = conn.total_changes
    outputs.mark_consumed(conn, [Snapshot("b", 5), Snapshot("c", 4)])

    assert conn.total_changes - before == 2
    assert [row.thread_id for row in outputs.previously_selected(conn)] == ["b"]


def pruning_leaves_what_the_memory_is_made_of(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b", "c"):
        outputs.store(conn, an_output(thread, source_updated_at=5 if thread != "c" else int(NOW)), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("a", 5)])

    assert outputs.prune(conn, now=NOW, max_unused=100) == 1
    assert [outputs.get(conn, thread) is not None for thread in ("a", "b", "c")] == [True, False, True]


def a_selection_leaves_out_the_empty_the_unwanted_and_the_unused(conn: sqlite3.Connection) -> None:
    for thread, raw, at in (("a", "raw", NOW), ("b", " ", NOW), ("c", "raw", NOW - 999), ("d", "raw", NOW)):
        a_session(conn, thread)
        outputs.store(conn, an_output(thread, source_updated_at=int(at), raw_memory=raw, rollout_summary=raw), now=NOW)
    sessions.mark_polluted(conn, "d", NOW)
    a_session(conn, "e")
    outputs.store(conn, an_output("e", source_updated_at=int(NOW)), now=NOW)
    sessions.set_excluded(conn, "e", "excluded_cwd")
    found = outputs.select_for_consolidation(conn, now=NOW, max_raw_memories=9, max_unused=100)

    assert [row.thread_id for row in found] == ["a"]


def a_citing_message_counts_once_and_only_for_whom_it_names(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        outputs.store(conn, an_output(thread), now=NOW)

    assert outputs.cite(conn, ["a", "unknown"], "m", NOW) == 1
    assert outputs.cite(conn, ["a"], "m", NOW) == 0
    counts = [output.usage_count for thread in ("a", "b") if (output := outputs.get(conn, thread)) is not None]
    assert counts == [1, 0]


def a_forgotten_session_stays_forgotten_and_others_are_left_alone(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    sessions.set_excluded(conn, "a", sessions.FORGOTTEN)
    sessions.set_excluded(conn, "a", None)
    assert [_session(conn, thread).excluded for thread in ("a", "b")] == [sessions.FORGOTTEN, None]
    sessions.set_excluded(conn, "b", "subagent")
    sessions.mark_polluted(conn, "b", NOW)
    sessions.set_user_mode(conn, "b", UserMode.DISABLED)
    kept = _session(conn, "b")
    assert (kept.excluded, kept.polluted_at) == ("subagent", int(NOW))
    sessions.set_user_mode(conn, "b", UserMode.ENABLED)
    lifted = _session(conn, "b")

    assert (lifted.excluded, lifted.polluted_at, _session(conn, "a").user_mode) == (None, None, None)
    assert _session(conn, "a").polluted_at is None


def a_rule_that_is_lifted_leaves_the_session_due_again(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        enqueue(conn, thread)
    sessions.set_excluded(conn, "a", "subagent")
    assert _session(conn, "a").queued_bytes == 50
    sessions.set_excluded(conn, "a", None)

    assert [_session(conn, thread).is_open for thread in ("a", "b")] == [True, False]


def a_finding_holds_for_the_state_that_was_read(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread, updated_at=10, record_bytes=9)
    sessions.set_finding(conn, "a", Covered(9, 9), "no_items")
    assert _session(conn, "a").finding is None
    sessions.set_finding(conn, "a", Covered(10, 9), "no_items")
    a_session(conn, "a", updated_at=10, record_bytes=9)
    assert [_session(conn, thread).finding for thread in ("a", "b")] == ["no_items", None]
    a_session(conn, "a", updated_at=10, record_bytes=10)

    assert _session(conn, "a").finding is None


def a_file_that_is_back_makes_its_own_session_due_again(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        enqueue(conn, thread)
        sessions.set_finding(conn, thread, Covered(1000, 50), sessions.VANISHED)
    assert len(sessions.vanished_paths(conn)) == 2
    sessions.forget_finding(conn, "a")

    assert sessions.vanished_paths(conn) == ["/sessions/b.jsonl"]
    assert [_session(conn, thread).is_open for thread in ("a", "b")] == [True, False]


def the_agents_word_is_of_one_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    sessions.set_memory_mode(conn, "a", "disabled")

    assert [_session(conn, thread).memory_mode for thread in ("a", "b")] == ["disabled", "enabled"]


def a_rescan_rewrites_the_rows_with_a_secret_and_no_other(conn: sqlite3.Connection) -> None:
    """In every table that holds words: what stands beside the secret, and the rows beside its row, stay."""
    for thread, word in (("a", "HUSH"), ("b", "word")):
        a_session(conn, thread, cwd=word)
        sessions.fix_stem(conn, thread, f"stem-{word}")
        enqueue(conn, thread)
        outputs.store(conn, an_output(thread, raw_memory=word, rollout_slug=word), now=NOW)
        sessions.remember_file(conn, path=thread, size=1, mtime_ns=1, now=NOW, problem=word)
        run = Beginning(
            id=1 + (thread == "b"),
            kind=JobKind.STAGE1,
            job_key=thread,
            epoch=1,
            worker_id="w",
            input_watermark=1,
            started_at=int(NOW),
        )
        attempts.begin(conn, run)
        conn.execute("UPDATE jobs SET last_error = ? WHERE job_key = ?", (word, thread))
        conn.execute("UPDATE attempts SET error = ? WHERE job_key = ?", (word, thread))
    for mark in ("inferred", "stated"):
        claims.replace_claims(conn, [NewClaim(word, "s", "/p", mark, ()) for word in ("HUSH", "word")], now=NOW)
    for texts in rescanning.Texts:
        done = rescanning.clean_rows(conn, texts, lambda text: text.replace("HUSH", "-"), after=0, limit=9)
        assert (done.changed, done.last) == (1, 2), texts
        assert rescanning.clean_rows(conn, texts, str, after=2, limit=9).last is None
        assert rescanning.clean_rows(conn, texts, str, after=0, limit=1).last == 1
    for table, column in (
        ("stage1_outputs", "raw_memory"),
        ("stage1_outputs", "rollout_slug"),
        ("sessions", "cwd"),
        ("sessions", "coalesce(stem, '-')"),
        ("jobs", "last_error"),
        ("attempts", "error"),
        ("other_files", "problem"),
        ("claims", "text"),
    ):
        words = [row[0] for row in conn.execute(f"SELECT {column} FROM {table} ORDER BY rowid")]
        assert words in (["-", "word"], ["-", "stem-word"]), (table, column, words)


def a_stem_is_of_one_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    sessions.fix_stem(conn, "a", "stem-a")

    assert sessions.fix_stem(conn, "b", "stem-b") == "stem-b"


def memory_changes_by_a_mode_only_where_there_is_memory_of_the_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    outputs.store(conn, an_output("a", source_updated_at=5), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("a", 5)])

    assert not sessions.mark_polluted(conn, "b", NOW)
    assert sessions.mark_polluted(conn, "a", NOW)


def another_file_of_a_session_takes_over_only_when_it_reaches_as_far(conn: sqlite3.Connection) -> None:
    twin = "/archived/a.jsonl"
    a_session(conn, "a", updated_at=10, record_bytes=9)
    a_session(conn, "b", updated_at=10, record_bytes=9)
    less = sessions.upsert(conn, a_sighting("a", updated_at=9, record_bytes=9, path=twin), NOW)
    assert (less.path, less.updated_at) == ("/sessions/a.jsonl", 10)
    assert _others(conn) == {twin: "a"}
    assert set(sessions.known_files(conn)) == {"/sessions/a.jsonl", "/sessions/b.jsonl", twin}
    more = sessions.upsert(conn, a_sighting("a", updated_at=10, record_bytes=10, path=twin), NOW)
    assert (more.path, more.record_bytes) == (twin, 10)
    assert _others(conn) == {"/sessions/a.jsonl": "a"}
    before = conn.total_changes
    sessions.upsert(conn, a_sighting("a", updated_at=12, record_bytes=10, path=twin), NOW)

    assert conn.total_changes - before == 1
    assert _others(conn) == {"/sessions/a.jsonl": "a"}
    shorter = sessions.upsert(conn, a_sighting("a", updated_at=3, record_bytes=1, path=twin), NOW)
    assert (shorter.path, shorter.updated_at) == (twin, 3)


def only_open_idle_and_young_sessions_are_due(conn: sqlite3.Connection) -> None:
    for thread, updated_at in (("old", 5), ("due", 10), ("fresh", 20)):
        a_session(conn, thread, updated_at=updated_at)
    found = sessions.due(conn, idle_before=15, newest_from=8)

    assert [row.thread_id for row in found] == ["due"]


def what_was_extracted_and_is_enqueued_are_told_apart_for_each_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        enqueue(conn, thread, updated_at=10, record_bytes=9)
    sessions.record_covered(conn, "a", Covered(11, 9))
    kept = _session(conn, "a")
    assert (kept.covered_updated_at, kept.queued_updated_at) == (11, 10)
    sessions.upsert(conn, a_sighting("a", updated_at=11, record_bytes=9), NOW)
    sessions.record_covered(conn, "a", Covered(11, 9))

    assert _session(conn, "a").queued_updated_at == 11
    assert _session(conn, "b").covered_updated_at is None


def kinds_are_looked_at_and_revived_apart(conn: sqlite3.Connection) -> None:
    enqueue(conn, max_attempts=1)
    _fail_once(conn)
    enqueue_global(conn)

    assert jobs.next_ready_at(conn, JobKind.STAGE1) is None
    assert jobs.retry_all_dead(conn, kind=JobKind.CONSOLIDATE, now=NOW, max_attempts=3) == 0
    assert jobs.retry_all_dead(conn, kind=JobKind.STAGE1, now=NOW, max_attempts=3) == 1


def what_died_of_another_fingerprint_is_tried_anew(conn: sqlite3.Connection) -> None:
    for thread, fingerprint in (("old", "v1"), ("same", "v2")):
        enqueue(conn, thread, max_attempts=1)
        lease = _claim_once(conn)
        jobs.mark_run(conn, lease, provider="p", model="m", fingerprint=fingerprint)
        jobs.fail(conn, lease, now=NOW, retry_at=NOW, error="it broke", error_class="E")
    enqueue(conn, "waits", max_attempts=1)
    enqueue_global(conn)

    assert jobs.reopen_outdated(conn, kind=JobKind.CONSOLIDATE, fingerprint="v2", now=NOW, max_attempts=3) == 0
    assert jobs.reopen_outdated(conn, kind=JobKind.STAGE1, fingerprint="v2", now=NOW, max_attempts=3) == 1
    statuses = {row.job_key: row.status for row in jobs.list_jobs(conn, kind=JobKind.STAGE1)}
    assert statuses == {"old": Status.PENDING, "same": Status.ERROR, "waits": Status.PENDING}


def one_output_is_removed(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        outputs.store(conn, an_output(thread), now=NOW)

    assert [outputs.remove(conn, "a"), outputs.remove(conn, "a")] == [True, False]
    assert outputs.get(conn, "b") is not None


def a_failure_ends_a_job_only_when_its_last_attempt_is_gone(conn: sqlite3.Connection) -> None:
    enqueue(conn, max_attempts=2)
    statuses = [_fail_once(conn), _fail_once(conn)]

    assert statuses == [Status.PENDING, Status.ERROR]


def a_fact_is_found_by_all_of_its_key(conn: sqlite3.Connection) -> None:
    put, find = queries.load("facts")["put_fact"], queries.load("facts")["find_fact"]
    for values in (
        ("a", "m", "k", "wrong"),
        ("p", "a", "k", "wrong"),
        ("p", "m", "a", "wrong"),
        ("p", "m", "k", "right"),
    ):
        conn.execute(put, dict(zip(("provider", "model", "key", "value"), values, strict=True)) | {"now": 1})

    assert conn.execute(find, {"provider": "p", "model": "m", "key": "k"}).fetchall() == [("right",)]


def the_first_start_is_told_from_other_facts_and_stands(conn: sqlite3.Connection) -> None:
    meta.put(conn, "another", "9")

    assert [meta.first_start(conn, NOW), meta.first_start(conn, NOW + 5)] == [int(NOW), int(NOW)]


def _plan(conn: sqlite3.Connection, subject: str, name: str) -> str:
    return "; ".join(plan_of(conn, subject, name))


def _run(conn: sqlite3.Connection, number: int) -> None:
    attempts.begin(
        conn,
        Beginning(
            id=number,
            kind="k",
            job_key="key",
            epoch=number,
            worker_id="w",
            input_watermark=1,
            started_at=int(NOW),
        ),
    )


def _reserve(conn: sqlite3.Connection, run: int, *, now: float, caps: Caps = _CAPS) -> int:
    return spend.reserve(
        conn,
        now=now,
        purpose=Purpose("k", "key", run),
        provider="p",
        model="m",
        estimated_tokens=100,
        estimated_cost=0.0,
        caps=caps,
    )


def _settle(conn: sqlite3.Connection, request: int, *, tokens: int | None) -> bool:
    return spend.settle(
        conn,
        request,
        now=NOW,
        outcome="ok",
        tokens_in=tokens,
        tokens_out=None,
        tokens_cached=None,
        cost=None,
        duration_ms=None,
    )


def _claim(text: str, status: str = "stated") -> NewClaim:
    return NewClaim(text, "section", "global", status, (THREAD,))


def _session(conn: sqlite3.Connection, thread: str) -> sessions.SessionRow:
    row = sessions.get_exact(conn, thread)
    assert row is not None
    return row


def _others(conn: sqlite3.Connection) -> dict[str, str]:
    return dict(conn.execute("SELECT path, thread_id FROM other_files").fetchall())


def _fail_once(conn: sqlite3.Connection) -> Status:
    lease = _claim_once(conn)
    return jobs.fail(conn, lease, now=NOW, retry_at=NOW, error="it broke", error_class="E").status


def _claim_once(conn: sqlite3.Connection) -> Lease:
    lease = jobs.claim(
        conn,
        kind=JobKind.STAGE1,
        worker_id="w",
        now=NOW,
        lease_seconds=9,
        max_running=1,
        max_attempts=2,
        retry_cap=9,
    )
    assert lease is not None
    return lease


def schema(conn: sqlite3.Connection) -> None:
    """Make an empty ledger of a new connection."""
    conn.executescript(queries.read("schema.sql"))
    conn.execute("PRAGMA foreign_keys = ON")


SCHEDULES: dict[str, Callable[[sqlite3.Connection], None]] = {
    schedule.__name__: schedule
    for schedule in (
        sql_moves_a_job_exactly_as_the_table_of_moves_says,
        what_concerns_one_row_finds_it_by_its_key,
        a_holder_with_another_token_epoch_kind_or_key_moves_nothing,
        a_session_that_is_again_what_it_was_when_it_was_enqueued_is_due,
        what_is_due_next_is_the_first_entry_of_the_partial_index,
        the_leases_of_a_kind_are_found_beside_any_number_of_other_jobs,
        what_waits_is_found_in_the_partial_index,
        the_first_outcome_of_a_run_stands,
        a_run_is_marked_and_no_other,
        a_request_counts_for_its_run_alone_and_once,
        a_cap_is_of_one_utc_day,
        what_is_not_settled_counts_as_estimated_and_what_is_settled_as_it_was,
        claims_that_persist_keep_their_time_and_those_that_vanish_are_closed_once,
        only_the_session_whose_claim_it_is_supports_it,
        a_decision_is_published_once_and_alone,
        an_output_of_an_earlier_state_does_not_replace_a_later_one,
        a_decision_touches_only_rows_whose_selection_changes,
        pruning_leaves_what_the_memory_is_made_of,
        a_selection_leaves_out_the_empty_the_unwanted_and_the_unused,
        a_citing_message_counts_once_and_only_for_whom_it_names,
        a_forgotten_session_stays_forgotten_and_others_are_left_alone,
        a_rule_that_is_lifted_leaves_the_session_due_again,
        a_finding_holds_for_the_state_that_was_read,
        the_agents_word_is_of_one_session,
        a_file_that_is_back_makes_its_own_session_due_again,
        a_rescan_rewrites_the_rows_with_a_secret_and_no_other,
        a_stem_is_of_one_session,
        memory_changes_by_a_mode_only_where_there_is_memory_of_the_session,
        another_file_of_a_session_takes_over_only_when_it_reaches_as_far,
        only_open_idle_and_young_sessions_are_due,
        what_was_extracted_and_is_enqueued_are_told_apart_for_each_session,
        kinds_are_looked_at_and_revived_apart,
        what_died_of_another_fingerprint_is_tried_anew,
        one_output_is_removed,
        a_failure_ends_a_job_only_when_its_last_attempt_is_gone,
        a_fact_is_found_by_all_of_its_key,
        the_first_start_is_told_from_other_facts_and_stands,
    )
}
