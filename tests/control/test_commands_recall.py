import json

from memoryd.recall import hook
from tests.control.conftest import THREAD, Shell


def test_before_there_is_a_memory_nothing_stands_on_stdout(shell: Shell) -> None:
    said = shell("recall")
    assert (said.code, said.out) == (0, "")
    assert "no memory yet" in said.err


def test_exactly_what_an_agent_is_given_is_printed(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    said = shell("recall", "--cwd", "/home/dev/shop")
    assert said.code == 0
    assert said.err.startswith(f"memoryd: {len(said.out.encode()):,} bytes, about ")
    assert "the project of /home/dev/shop" in said.err
    assert said.out.startswith("<memoryd_memory>\n")
    assert said.out.endswith("</memoryd_memory>\n")
    assert str(shell.home.memories / "MEMORY.md") in said.out


def test_recall_is_off_where_the_settings_say_so(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    for setting in ('scope = "off"', 'exclude_cwd = ["/home/dev"]'):
        shell.configure(f"[recall]\n{setting}\n")
        said = shell("recall", "--cwd", "/home/dev/shop")
        assert (said.code, said.out) == (0, "")
        assert "nothing is given" in said.err


def test_with_scope_all_every_project_is_given_whole(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    elsewhere = shell("recall", "--cwd", "/elsewhere").out
    shell.configure('[recall]\nscope = "all"\n')
    everywhere = shell("recall", "--cwd", "/elsewhere").out
    assert len(everywhere) >= len(elsewhere) > 0


def test_what_was_said_in_one_project_is_told_there_and_of_it_elsewhere_the_topic_alone(shell: Shell) -> None:
    """The offline writer puts every project's preferences and tips together, each with its directory."""
    shell.record(cwd="/home/dev/shop")
    shell("sync", "--now")
    shell("note", "Deploy with make release, everywhere.")
    shell("sync", "--now")
    summary = (shell.home.memories / "memory_summary.md").read_text()
    own = [line for line in summary.splitlines() if line.startswith("- in /home/dev/shop: ")]
    assert own
    for cwd, is_told in (("/home/dev/shop", True), ("/home/dev/other", False)):
        given = shell("recall", "--cwd", cwd).out
        assert [line in given for line in own] == [is_told] * len(own)
        assert "### /home/dev/shop" in given
        assert "Deploy with make release, everywhere." in given
    shell.configure('[recall]\nscope = "all"\n')
    shell("sync", "--now")
    assert all(line in shell("recall", "--cwd", "/home/dev/other").out for line in own)


def test_recall_as_json_says_how_much_and_why(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    told = shell("recall", "--cwd", "/home/dev/shop/deep", "--json").json
    assert (told["given"], told["reason"], told["pending"]) == (True, "project", False)
    assert told["bytes"] == len(told["text"].encode())
    assert told["tokens"] == -(-told["bytes"] // 4)
    shell.configure("[recall]\nmax_tokens = 10\n")
    small = shell("recall", "--json").json
    assert (small["given"], small["reason"], small["pending"]) == (False, "empty", True)


def test_a_session_set_to_no_recall_is_given_nothing_at_once(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    assert "given nothing of the memory" in shell("sessions", "set-mode", THREAD, "no-recall").out
    said = shell("recall", "--cwd", "/home/dev/shop", "--session", THREAD)
    assert said.out == ""
    assert "you said that this session be given nothing" in said.err
    request = json.dumps({"cwd": "/home/dev/shop", "session_id": THREAD}).encode()
    assert hook.reply(str(shell.home.recall), "codex", "SessionStart", request) == ""
    shell("sessions", "set-mode", THREAD, "enabled")
    assert hook.reply(str(shell.home.recall), "codex", "SessionStart", request) != ""
