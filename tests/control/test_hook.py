"""`memoryd hook`: the same answer as the runner's, and 0 whatever was typed."""

import json

import pytest

from memoryd.recall import hook
from tests.control.conftest import Shell


@pytest.mark.parametrize("words", [(), ("claude",), ("--wrong", "x"), ("claude", "SessionStop", "--more", "y")])
def test_hook_ends_with_0_and_says_nothing_where_there_is_nothing(words: tuple[str, ...], shell: Shell) -> None:
    said = shell("hook", *words)
    assert (said.code, said.out) == (0, "")


def test_what_the_hook_gives_is_what_recall_prints(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    request = json.dumps({"cwd": "/home/dev/shop", "hook_event_name": "SessionStart"}).encode()
    answer = json.loads(hook.reply(str(shell.home.recall), "claude", "SessionStart", request))
    assert answer["hookSpecificOutput"]["additionalContext"] == shell("recall", "--cwd", "/home/dev/shop").out
    assert (shell.home.bin / "hook").stat().st_mode & 0o777 == 0o700
