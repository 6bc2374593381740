"""Of forgetting: what goes, and what must stay."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import attempts, claims, jobs, meta, outputs, publications, rescanning, sessions
from memoryd.ledger import forgetting as forgetting_ledger
from memoryd.ledger.attempts import Beginning
from memoryd.ledger.claims import NewClaim
from memoryd.ledger.forgetting import TAKEN_OUT, Deed, Forgetting
from memoryd.ledger.jobs import Lease
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from tests.ledger.factories import MAX_ATTEMPTS, NOW, TIMING, a_session, an_output, claim, enqueue, enqueue_global

BOTH = ("a", "b")
QUOTE = "a complaint that quotes"


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
            provider=None,
            model=None,
            fingerprint=None,
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


def forgetting_one_session_leaves_the_others_as_they_are(conn: sqlite3.Connection) -> None:
    for thread in BOTH:
        enqueue(conn, thread)
        outputs.store(conn, an_output(thread), now=NOW)
        outputs.cite(conn, [thread], "m", NOW)
    before = _all_of(conn, "b")
    _forget(conn, "a")

    assert _all_of(conn, "b") == before
    assert _all_of(conn, "a") == {"stage1_outputs": [], "usage_events": [], "jobs": [], "sessions": [("forgotten",)]}


def a_job_that_runs_is_asked_to_stop_and_goes_at_the_end(conn: sqlite3.Connection) -> None:
    for thread in BOTH:
        enqueue(conn, thread)
    assert claim(conn) is not None
    forgetting = _forget(conn, "a")
    running = jobs.find(conn, JobKind.STAGE1, "a")
    assert running is not None
    assert running.cancel_requested
    forgetting_ledger.end_jobs(conn, forgetting)

    assert [job.job_key for job in jobs.list_jobs(conn, kind=JobKind.STAGE1)] == ["b"]


def what_went_wrong_is_silenced_for_one_job_and_a_dead_one_still_says_why(conn: sqlite3.Connection) -> None:
    enqueue_global(conn, timing=ConsolidateTiming(0, 0))
    for thread in BOTH:
        enqueue(conn, thread, max_attempts=1)
        _fail(conn, JobKind.STAGE1)
    for _ in range(MAX_ATTEMPTS):
        lease = _fail(conn, JobKind.CONSOLIDATE)
    forgetting_ledger.end_jobs(conn, Forgetting(Deed.FORGET, ("a",)))

    said = {job.job_key: job.last_error for job in jobs.list_jobs(conn)}
    assert said == {GLOBAL_KEY: TAKEN_OUT, "b": QUOTE}
    runs = [attempts.of_job(conn, kind, key) for kind, key in ((JobKind.STAGE1, "a"), (JobKind.STAGE1, "b"))]
    assert [[run.error for run in of_job] for of_job in runs] == [[None], [QUOTE]]
    assert [run.error for run in attempts.of_job(conn, lease.kind, lease.job_key)] == [None] * MAX_ATTEMPTS


def claims_go_with_their_last_session_and_not_before(conn: sqlite3.Connection) -> None:
    _claim_of(conn, {"lonely": ("a",), "shared": ("a", "b"), "other": ("b",), "nobody's": ()})
    _forget(conn, "a")

    assert {row.text: row.thread_ids for row in claims.valid(conn)} == {
        "shared": ("b",),
        "other": ("b",),
        "nobody's": (),
    }


def a_purge_takes_every_claim_of_the_session_and_no_other(conn: sqlite3.Connection) -> None:
    _claim_of(conn, {"lonely": ("a",), "shared": ("a", "b"), "other": ("b",), "nobody's": ()})
    _forget(conn, "a", purge=True)

    assert [row.text for row in claims.valid(conn)] == ["other", "nobody's"]


def earlier_words_go_with_the_sessions_that_supported_them(conn: sqlite3.Connection) -> None:
    for status in ("stated", "verified"):
        _claim_of(conn, {"of both": ("a", "b"), "of b": ("b",)}, status)
    _forget(conn, "a")

    assert [text for _claim, text in claims.every_earlier_text(conn, limit=9)] == ["of b"]


def a_purge_by_words_takes_the_claims_and_earlier_words_that_it_names_and_no_others(conn: sqlite3.Connection) -> None:
    for status in ("stated", "verified"):
        _claim_of(conn, {"one": ("a",), "two": ("a",)}, status)
    one, two = (claim for (claim,) in conn.execute("SELECT id FROM claims ORDER BY text"))
    assert claims.erase_earlier_texts_of(conn, [one]) == 1
    assert [claim for claim, _text in claims.every_earlier_text(conn, limit=9)] == [two]
    assert claims.erase(conn, [one]) == 1
    assert conn.execute("SELECT id FROM claims").fetchall() == [(two,)]


def what_is_decided_is_put_in_place_although_history_goes(conn: sqlite3.Connection) -> None:
    first = publications.decide(conn, NewPublication("c1", None), attempt_id=1, now=NOW)
    publications.mark_published(conn, first, NOW)
    second = publications.decide(conn, NewPublication("c2", "c1"), attempt_id=2, now=NOW)
    forgetting_ledger.drop_publications(conn)

    pending = publications.pending(conn)
    assert pending is not None
    assert pending.id == second
    assert conn.execute("SELECT count(*) FROM publications").fetchone() == (1,)


def the_end_of_a_forgetting_is_not_the_end_of_other_facts(conn: sqlite3.Connection) -> None:
    forgetting_ledger.mark_untidy(conn, ["b"])
    forgetting_ledger.proceed(conn, Forgetting(Deed.FORGET, ("a",)))
    forgetting_ledger.finish(conn)

    assert forgetting_ledger.under_way(conn) is None
    assert forgetting_ledger.untidy(conn) == ("b",)


def a_reset_takes_the_words_of_problems_and_knows_copies_as_copies(conn: sqlite3.Connection) -> None:
    for path, problem in (("/broken", "one line says so"), ("/twin", "copy")):
        sessions.remember_file(conn, path=path, size=1, mtime_ns=1, now=NOW, problem=problem)
    forgetting_ledger.begin_reset(conn, now=NOW, relearn=False)

    told = dict(conn.execute("SELECT path, problem FROM other_files"))
    assert told == {"/broken": "unreadable", "/twin": "copy"}


def _forget(conn: sqlite3.Connection, thread: str, *, purge: bool = False) -> Forgetting:
    return forgetting_ledger.begin(conn, [thread], purge=purge, now=NOW, timing=TIMING, max_attempts=3)


def _fail(conn: sqlite3.Connection, kind: JobKind) -> Lease:
    lease = claim(conn, kind)
    assert lease is not None
    jobs.fail(conn, lease, now=NOW, retry_at=NOW, error=QUOTE, error_class="E")
    return lease


def _claim_of(conn: sqlite3.Connection, supported: dict[str, tuple[str, ...]], status: str = "stated") -> None:
    made = [NewClaim(text, "s", "global", status, threads) for text, threads in supported.items()]
    claims.replace_claims(conn, made, now=NOW)


def a_reset_lets_everything_be_imported_again_and_keeps_other_facts(conn: sqlite3.Connection) -> None:
    meta.put(conn, f"{meta.IMPORTED}x", "once")
    meta.put(conn, "another", "fact")
    forgetting_ledger.begin_reset(conn, now=NOW, relearn=False)

    assert (meta.get(conn, f"{meta.IMPORTED}x"), meta.get(conn, "another")) == (None, "fact")


def _all_of(conn: sqlite3.Connection, thread: str) -> dict[str, list[tuple[object, ...]]]:
    """What concerns a session, from each table; of a forgotten one's row only why it is left out."""
    return {
        "stage1_outputs": conn.execute("SELECT * FROM stage1_outputs WHERE thread_id = ?", (thread,)).fetchall(),
        "usage_events": conn.execute("SELECT * FROM usage_events WHERE thread_id = ?", (thread,)).fetchall(),
        "jobs": conn.execute("SELECT * FROM jobs WHERE job_key = ?", (thread,)).fetchall(),
        "sessions": conn.execute("SELECT excluded FROM sessions WHERE thread_id = ?", (thread,)).fetchall(),
    }


SCHEDULES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    a_rescan_rewrites_the_rows_with_a_secret_and_no_other,
    forgetting_one_session_leaves_the_others_as_they_are,
    a_job_that_runs_is_asked_to_stop_and_goes_at_the_end,
    what_went_wrong_is_silenced_for_one_job_and_a_dead_one_still_says_why,
    claims_go_with_their_last_session_and_not_before,
    a_purge_takes_every_claim_of_the_session_and_no_other,
    earlier_words_go_with_the_sessions_that_supported_them,
    a_purge_by_words_takes_the_claims_and_earlier_words_that_it_names_and_no_others,
    what_is_decided_is_put_in_place_although_history_goes,
    the_end_of_a_forgetting_is_not_the_end_of_other_facts,
    a_reset_takes_the_words_of_problems_and_knows_copies_as_copies,
    a_reset_lets_everything_be_imported_again_and_keeps_other_facts,
)
