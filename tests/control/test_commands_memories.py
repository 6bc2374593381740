"""`memoryd memories`: what is used, what never was, and what will become of it."""

from memoryd.clock import SystemClock
from memoryd.ledger import outputs, sessions
from memoryd.ledger.sessions import UserMode
from tests.control.conftest import THREAD, Shell

OTHER = "01a226ab-5fe7-707c-80dd-7a6d93907104"


def remembered(shell: Shell) -> None:
    shell.record()
    shell.record("Always write tests first.", "Thanks.", thread_id=OTHER)
    assert shell("sync", "--now").code == 0
    shell.write(outputs.cite, [THREAD, "made-up"], "message", SystemClock().now())


def test_memories_are_listed_with_their_use_and_what_will_become_of_them(shell: Shell) -> None:
    assert "no memories yet" in (shell("sync"), shell("memories"))[1].out
    remembered(shell)
    said = shell("memories")
    assert said.code == 0
    assert f"{THREAD}  used 1 time, last 20" in said.out
    assert f"{OTHER}  never used" in said.out
    assert "stays for 30 more days with sessions, longer when cited" in said.out
    assert "1 citation named no memory that is known" in said.out


def test_memories_as_json_tell_what_is_known_of_each(shell: Shell) -> None:
    remembered(shell)
    told = shell("memories", "--json").json
    used, unused = told["memories"]
    assert (used["thread_id"], used["usage_count"], used["selected"]) == (THREAD, 1, True)
    assert (unused["thread_id"], unused["usage_count"], unused["last_usage"]) == (OTHER, 0, None)
    assert unused["project"] == "/home/dev/shop"
    assert told["unknown_citations"] == 1
    assert [row["thread_id"] for row in shell("memories", "--unused", "--json").json["memories"]] == [OTHER]


def test_what_leaves_says_so(shell: Shell) -> None:
    remembered(shell)
    shell.write(sessions.set_user_mode, OTHER, UserMode.DISABLED)
    fates = {row["thread_id"]: row["what_next"] for row in shell("memories", "--json").json["memories"]}
    assert fates[OTHER] == "leaves with the next consolidation (not to be remembered)"
