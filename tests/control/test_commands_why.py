"""`memoryd why`: a claim is traced to its sessions, their files and lines, and its history is told."""

import sqlite3
from dataclasses import replace
from typing import Any

import pytest

from memoryd.ledger import claims
from memoryd.ledger.claims import Author, Circumstances, NewClaim
from tests.control.conftest import THREAD, Shell

TABS = "Always use tabs in the Makefile."


def _change(conn: sqlite3.Connection, now: float, **changes: Any) -> None:
    """Let the claim of the first session be another one from `now` on."""
    rows = [row for row in claims.valid(conn) if "tabs" in row.text]
    new = [NewClaim(row.text, row.section, row.scope, row.status, row.thread_ids) for row in rows]
    claims.replace_claims(conn, [replace(claim, **changes) for claim in new], now=now, circumstances=Circumstances())


@pytest.fixture
def remembering(shell: Shell) -> Shell:
    shell.record()
    assert shell("sync", "--now").code == 0
    return shell


def test_a_claim_is_found_by_its_words_and_traced_to_its_session(remembering: Shell) -> None:
    told = remembering("why", "tabs", "makefile", "--json")

    assert told.code == 0
    claim = told.json["claims"][0]
    assert "tabs in the Makefile" in claim["text"]
    assert (claim["status"], claim["author"], claim["invalidated_at"]) == ("stated", "memoryd", None)
    (session,) = claim["sessions"]
    assert (session["thread_id"], session["agent"], session["exists"]) == (THREAD, "codex", True)
    assert session["path"].endswith(f"{THREAD}.jsonl")
    assert session["lines"]
    lines = (remembering.home.memories / session["summary_file"]).read_text().split("\n")
    assert lines[session["lines"][0]["line"] - 1].strip() == session["lines"][0]["text"]
    assert "tabs" in session["lines"][0]["text"]


def test_it_reads_well(remembering: Shell) -> None:
    said = remembering("why", TABS)

    assert said.code == 0
    for words in (
        TABS.rstrip("."),
        "stated by the user",
        "since ",
        "from sessions",
        THREAD,
        "codex",
        ".jsonl",
        "cited      never",
    ):
        assert words in said.out, said.out


def test_a_claim_is_found_by_its_number(remembering: Shell) -> None:
    number = remembering("why", "tabs", "--json").json["claims"][0]["id"]

    for word in (str(number), f"#{number}"):
        assert remembering("why", word, "--json").json["claims"][0]["id"] == number


def test_a_session_whose_file_is_gone_is_said_so(remembering: Shell) -> None:
    next(remembering.codex.rglob("*.jsonl")).unlink()

    assert "(the file is gone)" in remembering("why", "tabs").out
    assert remembering("why", "tabs", "--json").json["claims"][0]["sessions"][0]["exists"] is False


def test_what_has_no_match_is_exit_1(shell: Shell) -> None:
    assert shell("why", "zebras").code == 1
    shell.record()
    shell("sync", "--now")

    said = shell("why", "zebras", "--json")

    assert (said.code, said.json) == (1, {"query": "zebras", "found": 0, "claims": []})
    assert "no claim has these words: zebras" in shell("why", "zebras").out
    assert shell("why", "...").code == 2


def test_what_it_said_before_and_what_took_its_place_are_told(remembering: Shell) -> None:
    """A rewording is the same claim; what is less alike is another one, which knows what it came from."""
    remembering.write(_change, 2_000_000_000.0, text="Always use tabs in each Makefile.", author=Author.PERSON)
    reworded = remembering("why", "tabs", "--json").json["claims"][0]
    assert [each["text"] for each in reworded["earlier"]] != []
    assert "written by a person" in remembering("why", "tabs").out
    assert "before     until 2033" in remembering("why", "tabs").out

    remembering.write(_change, 2_000_000_009.0, text="Never use tabs in a Makefile.")

    told = remembering("why", "tabs makefile")
    old = remembering("why", str(reworded["id"]))
    assert f"instead of {reworded['id']}, closed 2033" in told.out
    assert "other statements took its place" in old.out
    assert "now " in old.out
    assert "1 more claim with these words:" in told.out
    assert "(closed: replaced)" in told.out


def test_a_claim_is_found_by_what_it_said_before(remembering: Shell) -> None:
    remembering.write(_change, 2_000_000_000.0, text="Always use tabs in the build file.")

    assert remembering("why", "Makefile", "tabs", "--json").json["found"] == 1
