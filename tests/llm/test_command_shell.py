"""A question put to a program through the client: one confined run, one row of spend, nothing left."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryd.config import Prices, Provider, ProviderKind
from memoryd.errors import (
    AuthRefused,
    ConfigError,
    MalformedReply,
    ModelError,
    RateLimited,
    RequestRefused,
    Unreachable,
)
from memoryd.llm.client import ModelClient, Wiring
from memoryd.llm.command.confinement import Confiner, Mechanism, Tools
from memoryd.llm.command.shell import Place, check_command
from memoryd.llm.providers import Programs, open_client
from memoryd.llm.question import Errand, ModelTurn, UserTurn
from memoryd.llm.spend import RequestOutcome
from memoryd.redact import Redactor
from tests.llm.asking import PURPOSE, SCHEMA, Book, a_question
from tests.support.clock import FakeClock

ENVIRON = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "MEMORYD_HOME": "/nowhere", "OPENAI_API_KEY": "sk-not-yours"}
NO_TOOLS = Tools()


class Stand:
    """A MEMORYD_HOME with a program as its only model."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "memoryd"
        self.staging = self.home / "staging"
        self.staging.mkdir(parents=True)
        (self.home / "ledger.sqlite3").write_text("the ledger")
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.book = Book()
        self.found: list[Mechanism] = []

    def program(self, name: str, script: str) -> Path:
        """Put a shell script on PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return path

    def client(
        self, *command: str, environ: dict[str, str] | None = None, key: str | None = None, **more: Any
    ) -> ModelClient:
        provider = Provider(kind=ProviderKind.COMMAND, command=command, **more)

        async def note(mechanism: Mechanism) -> None:
            self.found.append(mechanism)

        around = {**ENVIRON, "PATH": f"{self.bin}:{ENVIRON['PATH']}", "HOME": str(self.home.parent), **(environ or {})}
        client = open_client(
            "mine",
            provider,
            api_key=lambda: key,
            wiring=Wiring(FakeClock(), Redactor(), self.book.reserve, self.book.settle),
            programs=Programs(Place(self.staging, self.home, around), Confiner(NO_TOOLS, note=note)),
        )
        assert client is not None
        return client

    def left(self) -> list[str]:
        return sorted(path.name for path in self.staging.iterdir())


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


async def test_a_plain_program_is_asked_on_its_input_and_answers_on_its_output(stand: Stand) -> None:
    stand.program("agent", 'echo "[$(cat)]"; echo done >&2')
    answer = await stand.client("agent").ask(a_question(), PURPOSE)
    assert answer.text == "[Read the session.\n\nwhat did it teach?]"
    assert (answer.model, answer.usage.measured) == ("m-1", False)
    assert [result.outcome for result in stand.book.results] == [RequestOutcome.ANSWERED]
    assert stand.left() == []


async def test_a_schema_goes_in_words_to_a_program_that_takes_none(stand: Stand) -> None:
    stand.program("agent", "cat")
    answer = await stand.client("agent").ask(a_question(schema=SCHEMA), PURPOSE)
    assert '"additionalProperties":false' in answer.text


async def test_a_repair_tells_the_program_what_it_answered_before(stand: Stand) -> None:
    stand.program("agent", "cat")
    turns = (UserTurn("the evidence"), ModelTurn("no JSON"), UserTurn("send JSON"))
    answer = await stand.client("agent").ask(a_question(*turns), PURPOSE)
    order = [answer.text.index(each) for each in ("the evidence", "no JSON", "send JSON")]
    assert order == sorted(order)


async def test_it_runs_inside_memoryd_home_in_a_folder_of_its_own(stand: Stand) -> None:
    stand.program("agent", "pwd; ls -A | wc -l")
    answer = await stand.client("agent").ask(a_question(), PURPOSE)
    where, count = answer.text.split()
    assert Path(where).is_relative_to(os.path.realpath(stand.staging))
    assert count == "0"


async def test_only_the_variables_of_the_list_pass(stand: Stand) -> None:
    stand.program("agent", "env")
    environ = {"HTTPS_PROXY": "http://proxy", "ANTHROPIC_API_KEY": "sk-other", "LC_TIME": "C", "SECRET": "x"}
    answer = await stand.client("agent", environ=environ).ask(a_question(), PURPOSE)
    names = {line.partition("=")[0] for line in answer.text.splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        *("PATH", "LANG", "LC_TIME", "HOME", "HTTPS_PROXY", "TMPDIR", "TERM", "NO_COLOR")
    }


async def test_a_configured_key_reaches_the_program_under_its_name(stand: Stand) -> None:
    stand.program("agent", 'echo "key $MY_KEY"')
    client = stand.client("agent", key="sk-mine-123456", api_key_env="MY_KEY")
    assert (await client.ask(a_question(), PURPOSE)).text == "key sk-mine-123456"


async def test_the_name_of_the_model_takes_its_place_among_the_arguments(stand: Stand) -> None:
    stand.program("agent", 'echo "$@"')
    client = stand.client("agent", "--with={model}", "x")
    assert (await client.ask(a_question(), PURPOSE)).text == "--with=m-1 x"


FAILURES: list[tuple[str, type[ModelError], str]] = [
    ("echo 'Not logged in · Please run /login' >&2; exit 1", AuthRefused, "Not logged in"),
    ('echo "You\'ve hit your usage limit. Try again in 2 hours 30 minutes." >&2; exit 1', RateLimited, "usage limit"),
    ("echo 'error: boom' >&2; exit 7", RequestRefused, "ended with status 7: error: boom"),
    ("exit 1", RequestRefused, "status 1 and said nothing"),
    ("exit 0", MalformedReply, "ended without an answer"),
    ("echo 'fetch failed: ENOTFOUND api.example.com' >&2; exit 1", Unreachable, "ENOTFOUND"),
    ("echo half an answer; exit 3", RequestRefused, "half an answer"),
]


@pytest.mark.parametrize(("script", "kind", "words"), FAILURES)
async def test_a_run_without_an_answer_is_the_error_that_it_means(
    stand: Stand, script: str, kind: type[ModelError], words: str
) -> None:
    stand.program("agent", script)
    with pytest.raises(kind) as caught:
        await stand.client("agent").ask(a_question(), PURPOSE)
    assert type(caught.value) is kind
    assert words in caught.value.message
    assert len(stand.book.results) == 1
    assert stand.left() == []


async def test_a_limit_that_tells_its_end_says_when_to_come_back(stand: Stand) -> None:
    stand.program("agent", "echo 'usage limit reached, try again in 2 hours 30 minutes' >&2; exit 1")
    with pytest.raises(RateLimited) as caught:
        await stand.client("agent").ask(a_question(), PURPOSE)
    assert caught.value.retry_after == 9_000


async def test_a_key_and_the_question_are_not_repeated_in_an_error(stand: Stand) -> None:
    stand.program("agent", 'echo "bad request with key $MY_KEY: $(cat)" >&2; exit 1')
    client = stand.client("agent", key="sk-mine-123456", api_key_env="MY_KEY")
    with pytest.raises(ModelError) as caught:
        await client.ask(a_question(UserTurn("private words of a long session")), PURPOSE)
    assert "sk-mine" not in str(caught.value)
    assert "private words" not in str(caught.value)


async def test_a_program_that_hangs_is_stopped_and_may_be_tried_later(stand: Stand) -> None:
    stand.program("agent", "sleep 3600")
    with pytest.raises(Unreachable, match="did not end within 1 seconds"):
        await stand.client("agent", timeout="1s").ask(a_question(), PURPOSE)
    assert stand.book.results[0].usage is None  # it may have cost: the estimate stands
    assert stand.left() == []


async def test_a_program_that_floods_is_stopped_and_gave_no_answer(stand: Stand) -> None:
    stand.program("agent", "yes")
    with pytest.raises(MalformedReply, match="printed more than"):
        await stand.client("agent").ask(a_question(), PURPOSE)


async def test_a_program_that_vanished_was_not_asked_and_opens_the_breaker(stand: Stand) -> None:
    program = stand.program("agent", "echo x")
    client = stand.client("agent")
    program.unlink()
    for _ in range(2):
        with pytest.raises(Unreachable, match="no program agent on PATH"):
            await client.ask(a_question(), PURPOSE)
    with pytest.raises(Unreachable) as held:
        await client.ask(a_question(), PURPOSE)
    assert held.value.retry_after == 60
    assert [result.usage and result.usage.input for result in stand.book.results] == [0, 0]


def test_a_program_that_is_not_there_is_a_wrong_setting_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"providers\.mine\.command: there is no program nowhere-agent on PATH"):
        check_command("mine", ["nowhere-agent"], ENVIRON)
    check_command("mine", [sys.executable], {})


async def test_what_confines_is_looked_for_once(stand: Stand) -> None:
    stand.program("agent", "echo x")
    client = stand.client("agent")
    for _ in range(3):
        await client.ask(a_question(), PURPOSE)
    assert len(stand.found) == 1


CODEX_ANSWER = "\n".join(
    json.dumps(each)
    for each in (
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "the answer"}},
        {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 20}},
    )
)


async def test_codex_is_asked_with_its_own_options_and_its_usage_is_booked(stand: Stand, tmp_path: Path) -> None:
    stand.program("codex", f"cat <<'EOF'\n{CODEX_ANSWER}\nEOF")
    client = stand.client("codex", "exec", prices=Prices(input=1.0, cached=0.1, output=2.0))
    answer = await client.ask(a_question(schema=SCHEMA, effort="low"), PURPOSE)
    assert answer.text == "the answer"
    (result,) = stand.book.results
    assert result.usage is not None
    assert (result.usage.input, result.usage.cached, result.usage.output) == (100, 40, 20)
    assert result.cost == pytest.approx((60 * 1.0 + 40 * 0.1 + 20 * 2.0) / 1e6)


async def test_a_turn_that_was_completed_is_believed_whatever_the_exit_status(stand: Stand) -> None:
    stand.program("codex", f"cat <<'EOF'\n{CODEX_ANSWER}\nEOF\nexit 1")
    assert (await stand.client("codex", "exec").ask(a_question(), PURPOSE)).text == "the answer"


async def test_what_a_run_that_failed_took_is_booked_where_it_says_so(stand: Stand) -> None:
    """I9: a limit that is met half-way has cost what came before."""
    failed = {"type": "result", "subtype": "success", "is_error": True, "result": "You've hit your limit"}
    usage = {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 50}
    stand.program("claude", f"cat <<'EOF'\n{json.dumps({**failed, 'usage': usage})}\nEOF\nexit 1")
    with pytest.raises(RateLimited):
        await stand.client("claude", "-p").ask(a_question(), PURPOSE)
    (result,) = stand.book.results
    assert result.usage is not None
    assert (result.usage.input, result.usage.output) == (1_000, 50)


async def test_an_errand_is_done_in_its_folder(stand: Stand) -> None:
    stand.program("agent", "pwd; ls")
    folder = stand.staging / "token" / "copy"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("x")
    question = replace(a_question(), errand=Errand(folder, 20.0))
    answer = await stand.client("agent").ask(question, PURPOSE)
    assert answer.text.split() == [os.path.realpath(folder), "MEMORY.md"]


async def test_an_errand_has_its_own_time(stand: Stand) -> None:
    stand.program("agent", "sleep 3600")
    folder = stand.staging / "copy"
    folder.mkdir()
    question = replace(a_question(), errand=Errand(folder, 0.3))
    with pytest.raises(Unreachable, match=r"did not end within 0\.3 seconds"):
        await stand.client("agent", timeout="10m").ask(question, PURPOSE)


HOMES: list[tuple[str, str, str]] = [
    ("codex", "CODEX_HOME", "auth.json"),
    ("claude", "CLAUDE_CONFIG_DIR", ".credentials.json"),
    ("gemini", "GEMINI_CLI_HOME", ".gemini/oauth_creds.json"),
    ("opencode", "XDG_DATA_HOME", "opencode/auth.json"),
]
ANSWERS = {
    "codex": CODEX_ANSWER,
    "claude": json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "the answer"}),
    "gemini": json.dumps({"response": "the answer", "stats": {}}),
    "opencode": "\n".join(
        json.dumps(each)
        for each in (
            {"type": "step_start", "part": {}},
            {"type": "text", "part": {"text": "the answer"}},
            {"type": "step_finish", "part": {"reason": "stop", "tokens": {"input": 5, "output": 2}}},
        )
    ),
}


@pytest.mark.parametrize(("name", "variable", "login"), HOMES)
async def test_a_known_program_gets_a_home_with_its_login_and_nothing_else(
    stand: Stand, tmp_path: Path, name: str, variable: str, login: str
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / login).parent.mkdir(parents=True)
    (theirs / login).write_text("the login")
    (theirs / "hooks.json").write_text("a hook")
    look = f'cd "${variable}" && test "$(cat {login})" = "the login" && test ! -e hooks.json && echo renewed > {login}'
    stand.program(name, f"{look} && cat <<'EOF'\n{ANSWERS[name]}\nEOF")
    client = stand.client(name, environ={variable: str(theirs)})
    assert (await client.ask(a_question(), PURPOSE)).text == "the answer"
    assert (theirs / login).read_text() == "renewed\n"
    assert (theirs / "hooks.json").read_text() == "a hook"
    assert stand.left() == []


async def test_a_login_that_was_put_in_place_of_its_link_goes_back(stand: Stand, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "auth.json").write_text("old")
    replace = 'echo renewed > "$CODEX_HOME/new" && mv "$CODEX_HOME/new" "$CODEX_HOME/auth.json"'
    stand.program("codex", f"{replace}\ncat <<'EOF'\n{CODEX_ANSWER}\nEOF")
    await stand.client("codex", "exec", environ={"CODEX_HOME": str(theirs)}).ask(a_question(), PURPOSE)
    assert (theirs / "auth.json").read_text() == "renewed\n"
    assert (theirs / "auth.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in theirs.iterdir()] == ["auth.json"]


async def test_a_login_that_somebody_else_renewed_meanwhile_stays(stand: Stand, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "auth.json").write_text("old")
    script = f'echo theirs > "{theirs}/auth.json"; rm "$CODEX_HOME/auth.json"; echo ours > "$CODEX_HOME/auth.json"'
    stand.program("codex", f"{script}\ncat <<'EOF'\n{CODEX_ANSWER}\nEOF")
    await stand.client("codex", "exec", environ={"CODEX_HOME": str(theirs)}).ask(a_question(), PURPOSE)
    assert (theirs / "auth.json").read_text() == "theirs\n"


async def test_without_a_login_file_codex_keeps_the_home_that_it_has(stand: Stand) -> None:
    """Its login may lie in a key chain that goes by the home."""
    stand.program("codex", "test -z \"$CODEX_HOME\" && cat <<'EOF'\n" + CODEX_ANSWER + "\nEOF")
    assert (await stand.client("codex", "exec").ask(a_question(), PURPOSE)).text == "the answer"
