"""I10, README: "your text is merged and wins". What a person does to the folder, with real `sync --now` processes."""

import time
from pathlib import Path

from memoryd.workspace.handbook import parse_handbook
from tests.support.checks import assert_accepted
from tests.support.process import GLOBAL_KIND, Place
from tests.support.sessions import Command, Turn, a_rollout

MINE = "- never touch the ledger by hand\n"
TIP = "- ask before a rebase\n"
CURE = Command("make build", "built", 0)


def a_session(place: Place, word: str, *, idle_hours: float) -> None:
    said = f"Please always name branches after {word}, never after people."
    turns = [Turn(said, "Named.", [Command("make build", f"Error: no {word}", 2), CURE])]
    a_rollout(place.codex, now=time.time(), idle_hours=idle_hours, turns=turns)


def sync(place: Place, *, sessions: int) -> None:
    done = place.run("sync", "--now", "--backfill", "recent", "--json")
    assert done.code == 0, done
    assert_accepted_whatever_its_form(place, sessions)


def assert_accepted_whatever_its_form(place: Place, sessions: int) -> None:
    """The folder equals the accepted commit; a person's own lines need no marks."""
    assert place.git("status", "--porcelain", "--untracked-files=all") == ""
    assert place.git("rev-parse", "HEAD") == place.git("rev-parse", "refs/memoryd/accepted")
    assert len(list((place.memories / "rollout_summaries").glob("*.md"))) == sessions


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, (old, text)
    file.write_text(text.replace(old, new))


def preference_of(place: Place, word: str) -> str:
    """The bullet of MEMORY.md that says what was asked about a word, as it stands there."""
    (line,) = [
        row for row in (place.memories / "MEMORY.md").read_text().split("\n") if word in row and '"Please' in row
    ]
    return line


def consolidations(place: Place) -> int:
    return int(place.query("SELECT count(*) FROM publications")[0][0])


def test_what_a_person_adds_stays_and_what_they_delete_stays_away(place: Place) -> None:
    place.configure()
    handbook, summary = place.memories / "MEMORY.md", place.memories / "memory_summary.md"
    a_session(place, "tickets", idle_hours=9)
    a_session(place, "planets", idle_hours=8)
    sync(place, sessions=2)
    unwanted = preference_of(place, "planets")

    edit(handbook, "## User preferences\n\n", f"## User preferences\n\n{MINE}")
    edit(summary, "## General Tips\n\n", f"## General Tips\n\n{TIP}")
    edit(handbook, f"{unwanted}\n", "")
    sync(place, sessions=2)
    a_session(place, "rivers", idle_hours=7)
    sync(place, sessions=3)

    (group,) = parse_handbook(handbook.read_text()).groups
    assert len(group.tasks) == 3
    assert handbook.read_text().count(MINE) == 1
    assert summary.read_text().count(TIP) == 1
    assert unwanted not in handbook.read_text()
    assert preference_of(place, "tickets")
    assert preference_of(place, "rivers")
    assert place.git("log", "-1", "--format=%an", "-S", MINE.strip(), "--", "MEMORY.md") == "person"
    before, published = place.artefacts(), consolidations(place)
    sync(place, sessions=3)
    assert (place.artefacts(), consolidations(place)) == (before, published)

    edit(handbook, MINE, "")
    sync(place, sessions=3)
    assert MINE not in handbook.read_text()


def test_a_note_dropped_by_hand_is_remembered_until_it_is_removed(place: Place) -> None:
    place.configure()
    a_session(place, "tickets", idle_hours=8)
    sync(place, sessions=1)
    note = place.memories / "extensions" / "ad_hoc" / "notes" / "d.md"
    note.parent.mkdir(parents=True, exist_ok=True)

    note.write_text("Deploy only on Tuesdays.\n")
    sync(place, sessions=1)

    for name in ("MEMORY.md", "memory_summary.md"):
        assert "- Deploy only on Tuesdays. [ad-hoc note]\n" in (place.memories / name).read_text()
    assert_accepted(place, sessions=1)

    note.unlink()
    sync(place, sessions=1)

    for name in ("MEMORY.md", "memory_summary.md"):
        assert "Tuesdays" not in (place.memories / name).read_text()
    assert place.query("SELECT count(*) FROM jobs WHERE kind = ? AND status = 'done'", GLOBAL_KIND) == [(1,)]
