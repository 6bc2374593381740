"""What is by now known to be a secret leaves rows that were stored before."""

import sqlite3
from pathlib import Path

from memoryd.ledger import backups, outputs, queries, sessions
from memoryd.ledger.claims import NewClaim, replace_claims
from memoryd.ledger.database import Ledger
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.rescanning import Rescanned, Texts, clean_rows
from tests.ledger.factories import NOW, a_session, an_output

WORD = "HUSH" * 30


def without(text: str) -> str:
    return text.replace(WORD, "-")


def test_a_row_keeps_all_but_its_secret(conn: sqlite3.Connection) -> None:
    a_session(conn, "a")
    sessions.fix_stem(conn, "a", "stem-a")
    outputs.store(conn, an_output("a", raw_memory=f"raw {WORD}", rollout_summary=WORD, rollout_slug="kept"), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("a", 1000)])
    outputs.cite(conn, ["a"], "m", NOW)
    before = outputs.get(conn, "a")
    assert clean_rows(conn, Texts.OUTPUTS, without, after=0, limit=9) == Rescanned(changed=1, last=1)
    after = outputs.get(conn, "a")
    assert after is not None
    assert before is not None
    assert (after.raw_memory, after.rollout_summary, after.rollout_slug, after.stem) == ("raw -", "-", "kept", "stem-a")
    assert (after.usage_count, after.selected_for_phase2, after.generated_at) == (1, True, before.generated_at)


def test_a_slug_that_was_one_takes_the_name_of_the_file_with_it(conn: sqlite3.Connection) -> None:
    for thread, slug in (("a", WORD), ("b", "kept")):
        a_session(conn, thread)
        sessions.fix_stem(conn, thread, f"stem-{slug}")
        outputs.store(conn, an_output(thread, rollout_slug=slug), now=NOW)
    clean_rows(conn, Texts.OUTPUTS, without, after=0, limit=9)
    found = [outputs.get(conn, thread) for thread in ("a", "b")]
    assert [(row.rollout_slug, row.stem) for row in found if row] == [("-", None), ("kept", "stem-kept")]


def test_batches_reach_every_row_once(conn: sqlite3.Connection) -> None:
    for number in range(5):
        outputs.store(conn, an_output(f"t{number}", raw_memory=WORD), now=NOW)
    seen, after = 0, 0
    while (batch := clean_rows(conn, Texts.OUTPUTS, without, after=after, limit=2)).last is not None:
        seen, after = seen + batch.changed, batch.last
    assert seen == 5
    assert clean_rows(conn, Texts.OUTPUTS, without, after=0, limit=9).changed == 0


def test_claims_that_differed_in_a_secret_become_one(conn: sqlite3.Connection) -> None:
    claims = [NewClaim(text, "Reusable knowledge", "/p", "stated", ("a",)) for text in (f"use {WORD}", "use -", "tabs")]
    replace_claims(conn, claims, now=NOW)
    assert clean_rows(conn, Texts.CLAIMS, without, after=0, limit=9).changed == 1
    assert [row[0] for row in conn.execute("SELECT text FROM claims ORDER BY text")] == ["tabs", "use -"]


def test_a_session_keeps_the_path_by_which_it_is_found(conn: sqlite3.Connection) -> None:
    a_session(conn, "a", path=f"/x/{WORD}", cwd=f"/p/{WORD}", git_branch=WORD)
    clean_rows(conn, Texts.SESSIONS, without, after=0, limit=9)
    row = sessions.get_exact(conn, "a")
    assert row is not None
    assert (row.path, row.cwd, row.git_branch) == (f"/x/{WORD}", "/p/-", "-")


async def test_not_a_byte_of_it_is_left_in_the_files(ledger: Ledger, path: Path) -> None:
    """I6: neither in the page that held the row, nor in pages that its long text gave free, nor in the log."""
    for number in range(20):
        raw = f"{number} {WORD} " * (400 if number % 2 else 1)
        await ledger.write(outputs.store, an_output(f"t{number}", raw_memory=raw), now=NOW)
    await ledger.apart(backups.shorten_log)
    assert WORD.encode() in path.read_bytes()
    await ledger.write(clean_rows, Texts.OUTPUTS, without, after=0, limit=99)
    await ledger.apart(backups.shorten_log)
    for file in path.parent.iterdir():
        assert WORD.encode() not in file.read_bytes(), file


def test_every_kind_of_text_has_its_statements() -> None:
    names = set(queries.load("rescanning"))
    assert {name for name in names if name.startswith("list_")} | {
        name for name in names if name.startswith("rew")
    } == (names - {"drop_stem"})
    assert len(names) == 2 * len(Texts) + 1
