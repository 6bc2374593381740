"""Pages of the ledger become garbage, under commands and a running daemon: set aside, rebuilt, said; nothing spent."""

import os
import time
from pathlib import Path

from tests.support.checks import assert_accepted
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Place
from tests.support.sessions import a_rollout

FIRST = "From now on run the formatter before every commit."
SECOND = "Never rebase the release branch of the shop."
PAGE = 4096


def remembered(place: Place, server: ModelServer, **changes: str) -> None:
    """One session, remembered by a model, with the backup of the day."""
    place.configure(base_url=server.base_url, **changes)
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=[FIRST])
    assert place.run("sync", "--backfill", "recent").code == 0
    assert_accepted(place, sessions=1)
    server.forget()


def overwrite_pages(place: Place, *, first: int = 1) -> None:
    """Overwrite every page from `first` (0 is the header) on with garbage."""
    ledger = place.home / "ledger.sqlite3"
    with ledger.open("r+b") as file:
        file.seek(first * PAGE)
        file.write(os.urandom(ledger.stat().st_size - first * PAGE))


def damaged(place: Place) -> list[Path]:
    return sorted(place.home.glob("damaged-*"))


def findings(place: Place) -> dict[str, dict[str, str]]:
    done = place.run("status", "--json")
    assert done.code == 1, done
    return {item["id"]: item for item in done.json["health"]}


def test_reading_commands_report_damage_in_one_line_and_touch_nothing(place: Place, server: ModelServer) -> None:
    remembered(place, server)
    overwrite_pages(place)
    before = (place.home / "ledger.sqlite3").read_bytes()

    assert findings(place)["ledger_damaged"]["severity"] == "error"
    told = place.run("jobs")
    assert told.code == 1
    assert "memoryd sync" in told.complaint

    assert (place.home / "ledger.sqlite3").read_bytes() == before
    assert damaged(place) == []


def test_the_backup_takes_the_place_of_damage_and_nothing_is_sent_again(place: Place, server: ModelServer) -> None:
    """I3, I4: the memory stands as it was, and what was extracted is not extracted again."""
    remembered(place, server)
    memory = place.artefacts()
    overwrite_pages(place)
    broken = (place.home / "ledger.sqlite3").read_bytes()

    done = place.run("sync", "--json")

    assert done.code == 0, done
    assert server.requests == []
    (event,) = [event for event in done.events if event["event"] == "ledger.replaced"]
    assert (event["level"], event["folder"]) == ("error", str(damaged(place)[0]))
    assert (damaged(place)[0] / "ledger.sqlite3").read_bytes() == broken
    assert place.artefacts() == memory
    told = findings(place)["ledger_rebuilt"]
    assert str(damaged(place)[0]) in told["remedy"]
    assert "backup" in told["message"]


def test_without_a_backup_history_waits_for_consent_again(place: Place, server: ModelServer) -> None:
    """Nothing is spent without consent, whatever was agreed to in the ledger that is lost."""
    remembered(place, server)
    memory = place.artefacts()
    for backup in (place.home / "backups").iterdir():
        backup.unlink()
    overwrite_pages(place, first=0)

    done = place.run("sync", "--json")

    assert done.code == 3, done
    assert done.json["waiting"] == {"consent": 1}
    assert server.requests == []
    assert place.artefacts() == memory
    assert "consent" in findings(place)["ledger_rebuilt"]["message"]

    agreed = place.run("sync", "--backfill", "recent", "--json")
    assert agreed.json["jobs"][STAGE1_KIND] == {"remembered": 1}
    assert FIRST in (place.memories / "MEMORY.md").read_text()


def test_a_folder_that_was_looked_into_is_removed_and_all_is_well(place: Place, server: ModelServer) -> None:
    remembered(place, server, limits__backfill="recent")
    overwrite_pages(place)
    assert place.run("sync").code == 0
    (folder,) = damaged(place)
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()

    done = place.run("status", "--json")

    assert (done.code, done.json["health"]) == (0, []), done


def test_damage_after_a_kill_is_found_at_the_start(place: Place, server: ModelServer) -> None:
    """The log that a kill leaves is the sign; quick_check finds what no query has met yet."""
    remembered(place, server, discover__scan_interval="1s", discover__min_idle="1s")
    with place.start(*place.words("run")) as daemon:
        daemon.wait_for_event("daemon.started")
        a_rollout(place.codex, now=time.time(), idle_hours=1, turns=[SECOND])
        daemon.wait_for_event("consolidation.published")
        daemon.kill()
    assert (place.home / "ledger.sqlite3-wal").stat().st_size > 0
    with (place.home / "ledger.sqlite3").open("r+b") as file:
        file.seek(-PAGE, os.SEEK_END)
        file.write(os.urandom(PAGE))

    assert "ledger_damaged" in findings(place)
    with place.daemon() as daemon:
        daemon.wait_for_event("ledger.replaced")

    (folder,) = damaged(place)
    assert {"ledger.sqlite3", "ledger.sqlite3-wal", "what-happened.json"} <= {each.name for each in folder.iterdir()}


def test_a_running_daemon_that_meets_damage_sets_it_aside_and_goes_on(place: Place, server: ModelServer) -> None:
    remembered(place, server, discover__scan_interval="1s", discover__min_idle="1s")
    with place.daemon() as daemon:
        # Another program cuts the ledger short under its feet, which no cache of pages can hide for long.
        ledger = place.home / "ledger.sqlite3"
        os.truncate(ledger, 2 * PAGE)
        a_rollout(place.codex, now=time.time(), idle_hours=1, turns=[SECOND])
        daemon.wait_for_event("ledger.replaced")
        daemon.wait_for_event("daemon.started", 2)
        daemon.wait_for_event("consolidation.published")
        assert daemon.is_running
    assert SECOND in (place.memories / "MEMORY.md").read_text()
    assert len(damaged(place)) == 1
