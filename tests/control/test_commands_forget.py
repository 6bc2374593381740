"""`memoryd forget` says what left the memory, and which lines still speak of it and why."""

from memoryd.control.commands.forget import SHOWN
from memoryd.pipeline.forget import MAX_REMAINS
from tests.control.conftest import Shell
from tests.support.codex_memories import THREADS, a_codex_memory


def test_it_names_the_lines_that_remain_with_the_reason_and_at_most_so_many(shell: Shell) -> None:
    shell.home.config_file.write_text("")
    codex = a_codex_memory(shell.folder / "their-codex")
    assert shell("import", "codex", "--from", str(codex)).code == 0
    own = shell.home.memories / "own.md"
    own.write_text("\n".join(f"{number}: see session {THREADS[0]}" for number in range(MAX_REMAINS + 5)))

    said = shell("forget", THREADS[0], "--purge")

    assert said.code == 0, said
    assert f"{MAX_REMAINS + 5} lines of the memory folder still speak of it:" in said.out
    assert f"own.md:1: 0: see session {THREADS[0]}\n    it names the session; it is in a file of your own\n" in said.out
    assert said.out.count("it names the session") == SHOWN
    assert f"and {MAX_REMAINS + 5 - SHOWN} more" in said.out
    again = shell("forget", THREADS[0], "--json")
    assert len(again.json["remains"]) == MAX_REMAINS
    assert again.json["remains_unnamed"] == 5
    assert again.json["remains"][0]["path"] == "own.md"


def test_it_says_that_nothing_remains(shell: Shell) -> None:
    shell.home.config_file.write_text("")
    codex = a_codex_memory(shell.folder / "their-codex")
    shell("import", "codex", "--from", str(codex))
    assert "no other line of the memory folder speaks of it" in shell("forget", THREADS[0], "--purge").out


def test_a_daemon_of_before_an_upgrade_is_understood(shell: Shell) -> None:
    async def answer(_request: object, _tell: object) -> dict[str, object]:
        return {"threads": [THREADS[0]], "removed": 2}

    with shell.held(answer=answer):
        said = shell("forget", THREADS[0], "--purge")
    assert said.code == 0, said
    assert "1 session forgotten; 2 statements left the memory" in said.out
    assert "speak" not in said.out
