from tests.control.conftest import Shell


def test_before_there_is_a_memory_nothing_stands_on_stdout(shell: Shell) -> None:
    said = shell("recall")
    assert (said.code, said.out) == (0, "")
    assert "no memory yet" in said.err


def test_exactly_what_an_agent_is_given_is_printed(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    said = shell("recall", "--cwd", "/home/dev/shop")
    assert said.code == 0
    assert said.err == ""
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
