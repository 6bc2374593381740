"""`memoryd mcp`, driven by the official client over standard input and output: tools, errors, attacks, its end."""

import asyncio
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoryd.clock import SystemClock
from memoryd.control import main as command_line
from memoryd.control import noting
from memoryd.control.commands import mcp as command
from memoryd.control.memory_tools import MAX_ANSWER_BYTES, Desk, answer
from memoryd.daemon import control_socket
from memoryd.errors import StorageError, UsageError
from memoryd.workspace.layout import Home
from tests.control.conftest import CONFIG, THREAD, Shell
from tests.recall.test_reading import ATTACKS
from tests.support import mcp_client
from tests.support.sessions import a_rollout

pytest.importorskip("mcp", reason="the extra memoryd[mcp] is not installed")
CALLS = 200
CWD = "/home/dev/shop"

SAID: dict[str, dict[str, Any]] = {
    "search": {"query": "which indentation in makefiles, tabs?"},
    "any": {"queries": ["TABS", "nothing like it"], "mode": "any", "path": "MEMORY.md"},
    "all": {"queries": ["tabs", "makefile"], "mode": "all", "path": "MEMORY.md"},
    "near": {"queries": ["Task Group", "scope:"], "mode": "near", "within_lines": 3},
    "project": {
        "query": "tabs in the makefile",
        "scope": "project",
        "cwd": CWD,
        "marks": ["stated"],
        "kinds": ["bullet"],
    },
    "elsewhere": {"query": "zebra crossing"},
}
READ: dict[str, tuple[str, dict[str, Any]]] = {
    "whole": ("read", {"path": "MEMORY.md"}),
    "window": ("read", {"path": "MEMORY.md", "line_offset": 2, "max_lines": 1}),
    "root": ("list", {}),
    "folder": ("list", {"path": "rollout_summaries"}),
    "why": ("why", {"statement": "tabs makefile"}),
    "why not": ("why", {"statement": "zebra"}),
    "note": ("note", {"text": "Deploy the shop with make release.", "quote": "use make release", "session": THREAD}),
    "note again": ("note", {"text": "Deploy the shop with make release."}),
}
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no such tool": ("forget", {}, "the tools are: search, read, list, why, note"),
    "no words": ("search", {}, "say in `query`"),
    "no such mode": ("search", {"query": "x", "mode": "fuzzy"}, "the modes are"),
    "no such mark": ("search", {"query": "x", "marks": ["certain"]}, "one of stated, verified, inferred"),
    "no such kind": ("search", {"query": "x", "kinds": ["poem"]}, "the kinds are"),
    "no such argument": ("read", {"file": "MEMORY.md"}, "read takes: path, line_offset, max_lines"),
    "no such file": ("read", {"path": "MEMORIES.md"}, "list its folder"),
    "past the end": ("read", {"path": "MEMORY.md", "line_offset": 100_000}, "the file has"),
    "no such cursor": ("search", {"queries": ["x"], "mode": "any", "cursor": "?"}, "leave it out"),
    "a folder": ("read", {"path": "rollout_summaries"}, "is a folder"),
    "a file": ("list", {"path": "MEMORY.md"}, "is a file, not a folder"),
    "no statement": ("why", {"statement": "?!"}, "words of a statement"),
    "a blank note": ("note", {"text": "  "}, "a note needs words"),
    "a note of what nobody sees": ("note", {"text": "\u200b\x00 \x1b[0m"}, "a note needs words"),
    "a directory that cannot be": ("search", {"query": "x", "cwd": "a\x00b"}, "the name of no directory"),
    "a long note": ("note", {"text": "x" * 20_000}, "at most 16,384 bytes"),
    "a session of two words": ("note", {"text": "x", "session": "a b"}, "no name of a writer or a session"),
}


@dataclass(frozen=True)
class Talk:
    """One session with a server on a memory that holds something."""

    home: Home
    session: mcp_client.Session
    answers: dict[str, mcp_client.Answered]


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("remembering")
    home, codex = Home(folder / "home"), folder / "codex"
    home.path.mkdir(mode=0o700)
    home.config_file.write_text(CONFIG.format(codex=codex))
    a_rollout(
        codex,
        now=SystemClock().now(),
        idle_hours=7.0,
        thread_id=THREAD,
        cwd=CWD,
        turns=("Always use tabs in the Makefile.", "Never deploy the shop on Fridays."),
    )
    assert command_line.main(["sync", "--home", str(home.path), "--now"]) == 0
    return home


@pytest.fixture(scope="module")
def talk(remembering: Home) -> Talk:
    """Make every call in one session: a server takes a second to start."""
    (remembering.memories / "link.md").symlink_to(remembering.config_file)
    (remembering.memories / "folder").symlink_to(remembering.path)
    (remembering.memories / "hard.md").hardlink_to(remembering.config_file)
    calls: dict[str, tuple[str, dict[str, Any]]] = {name: ("search", arguments) for name, arguments in SAID.items()}
    calls |= READ
    calls |= {name: (tool, arguments) for name, (tool, arguments, _) in WRONG.items()}
    for path in ATTACKS:
        for tool in ("read", "list"):
            calls[f"{tool} {path}"] = (tool, {"path": path})
        calls[f"search {path}"] = ("search", {"queries": ["agents"], "mode": "any", "path": path})
    session = mcp_client.ask(remembering.path, list(calls.values()), cwd=remembering.path.parent)
    return Talk(remembering, session, dict(zip(calls, session.answers, strict=True)))


def test_a_client_is_told_of_five_tools_and_which_of_them_writes(talk: Talk) -> None:
    assert talk.session.name == "memoryd"
    assert "<oai-mem-citation>" in talk.session.instructions
    assert [tool.name for tool in talk.session.tools] == ["search", "read", "list", "why", "note"]
    hints = {tool.name: tool.annotations for tool in talk.session.tools}
    assert {
        name: (each.read_only_hint, each.destructive_hint, each.open_world_hint) for name, each in hints.items()
    } == {
        **dict.fromkeys(("search", "read", "list", "why"), (True, False, False)),
        "note": (False, False, False),
    }
    assert all(tool.input_schema["additionalProperties"] is False for tool in talk.session.tools)


def test_a_question_is_answered_with_places_marks_and_sessions(talk: Talk) -> None:
    found = talk.answers["search"]
    assert not found.is_error
    first, words, threads = found.text.split("\n")[:3]
    assert first.startswith(("MEMORY.md:", "rollout_summaries/"))
    assert "tabs" in words
    assert threads == f"  from {THREAD}"
    project = talk.answers["project"].text
    assert "[stated]" in project
    assert "bullet" in project
    assert talk.answers["elsewhere"].text.startswith("[nothing found")


def test_texts_are_found_literally_with_their_lines(talk: Talk) -> None:
    lines = (talk.home.memories / "MEMORY.md").read_text().split("\n")
    for name in ("any", "all"):
        place, _, text = talk.answers[name].text.split("\n")[0].partition(": ")
        assert text == lines[int(place.removeprefix("MEMORY.md:")) - 1]
        assert "tabs" in text.lower()
    assert "MEMORY.md:1: # Task Group" in talk.answers["near"].text or "scope:" in talk.answers["near"].text


def test_lines_are_read_and_folders_listed(talk: Talk) -> None:
    text = (talk.home.memories / "MEMORY.md").read_text()
    numbered = [f"{number}\t{line}" for number, line in enumerate(text.rstrip("\n").split("\n"), start=1)]
    assert talk.answers["whole"].text.split("\n") == numbered
    assert talk.answers["window"].text.split("\n")[0] == numbered[1]
    assert "MEMORY.md\nextensions/\n" in talk.answers["root"].text
    assert "link.md" not in talk.answers["root"].text
    assert all(name.endswith(".md") for name in talk.answers["folder"].text.split("\n"))


def test_a_statement_is_traced_as_the_command_traces_it(talk: Talk) -> None:
    assert "stated by the user" in talk.answers["why"].text
    assert THREAD in talk.answers["why"].text
    assert talk.answers["why not"] == mcp_client.Answered("no claim has these words: zebra", is_error=False)


def test_a_note_is_a_new_file_with_its_origin_and_overwrites_nothing(talk: Talk) -> None:
    names = [talk.answers[name].text.partition(";")[0].removeprefix("written to ") for name in ("note", "note again")]
    assert len(set(names)) == 2
    first, second = (talk.home.memories / name for name in names)
    head = first.read_text().split("---\n")[1]
    assert head.startswith("by: mcp\n"), "the client's own name"
    assert f"session: {THREAD}\nquote_sha256: " in head
    assert second.read_text().endswith("Deploy the shop with make release.\n")


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_a_sentence_that_says_what_to_do(talk: Talk, name: str) -> None:
    said = talk.answers[name]
    assert said.is_error
    assert WRONG[name][2] in said.text
    assert "Traceback" not in said.text
    assert len(said.text) < 1000


@pytest.mark.parametrize("tool", ["read", "list", "search"])
@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path[:24])
def test_no_path_leads_out_of_the_memory(talk: Talk, tool: str, path: str) -> None:
    said = talk.answers[f"{tool} {path}"]
    assert said.is_error
    assert "[sources]" not in said.text
    assert len(said.text) < 1000


def test_nothing_but_notes_was_written(talk: Talk) -> None:
    status = subprocess.run(
        ["git", "--git-dir", str(talk.home.git_dir), "--work-tree", str(talk.home.memories), "status", "--porcelain"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull},
    ).stdout
    changed = {line[3:] for line in status.splitlines()} - {"link.md", "folder", "hard.md"}
    assert all(path.startswith("extensions/") for path in changed), changed


# the process


class Server:
    """A server with raw pipes, for what a client would not do."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            mcp_client.words(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=mcp_client.environ(home),
            cwd=home,
        )

    def say(self, message: object) -> Any:
        """Send one message, and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def greet(self) -> Any:
        return self.say(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "an agent's client!", "version": "1"},
                },
            }
        )

    def call(self, number: int, tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments}
        return self.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def facts(self) -> tuple[int, int]:
        """Return its resident memory in KiB and how many descriptors it has open."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]), len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def end(self) -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def server(remembering: Home) -> Iterator[Server]:
    server = Server(remembering.path)
    yield server
    if server.process.poll() is None:
        server.process.kill()
        server.process.communicate()


def test_it_answers_an_older_client_survives_nonsense_and_ends_with_its_input(server: Server) -> None:
    assert server.greet()["result"]["serverInfo"]["name"] == "memoryd"
    assert server.process.stdin is not None
    for nonsense in (b"no json\n", b"\xff\xfe\n", b"[]\n", b'{"jsonrpc": "2.0"}\n', b"x" * (5 << 20) + b"\n"):
        server.process.stdin.write(nonsense)
    server.process.stdin.flush()
    said = server.call(7, "read", path="MEMORY.md", max_lines=1)
    while said.get("id") != 7:  # errors without an id may come before
        assert "error" in said
        said = json.loads(server.process.stdout.readline())  # type: ignore[union-attr]  # it is a pipe
    assert said["result"]["content"][0]["text"].startswith("1\t")
    code, out, err = server.end()
    assert code == 0
    assert b"Traceback" not in out
    assert all(json.loads(line) for line in out.splitlines())
    assert b"Traceback" not in err


def test_sigterm_ends_it_cleanly_while_it_waits_for_input(server: Server) -> None:
    server.greet()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0
    assert server.end()[2] == b""


def request(number: object, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


GREETING = request(
    0,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "a script", "version": "1"},
)


def test_each_line_is_answered_and_the_end_of_the_input_waits_for_what_was_asked(server: Server) -> None:
    asked = [
        GREETING,
        b"{}\n",
        request(1.5, "ping"),
        request(2, "tools/call", name="read", arguments={"path": "\ud800"}),
        b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"note","arguments":{"text":"'
        + b"x" * (5 << 20)
        + b'"}}}\n',
        request("4", "tools/call", name="search", arguments={"query": "tabs in the makefile"}),
        request(5, "tools/call", name="why", arguments={"statement": "tabs"}).rstrip(),
    ]
    out, err = server.process.communicate(b"".join(asked), timeout=60)
    answers = [json.loads(line) for line in out.splitlines()]
    told = {str(each["id"]): "error" in each or each["result"].get("isError", False) for each in answers}
    assert told == {"0": False, "None": True, "2": True, "3": True, "4": False, "5": False}
    assert (server.process.returncode, err) == (0, b"")


def test_it_ends_quietly_when_nobody_reads_and_says_when_answers_cannot_be_written(remembering: Home) -> None:
    def ended(target: int) -> tuple[int, bytes]:
        with subprocess.Popen(
            mcp_client.words(remembering.path),
            stdin=subprocess.PIPE,
            stdout=target,
            stderr=subprocess.PIPE,
            env=mcp_client.environ(remembering.path),
        ) as process:
            os.close(target)
            assert process.stdin is not None
            process.stdin.write(GREETING + request(1, "ping") * 20)
            process.stdin.flush()  # and the input stays open
            code = process.wait(60)
            assert process.stderr is not None
            return code, process.stderr.read()

    reader, writer = os.pipe()
    os.close(reader)
    assert ended(writer) == (0, b"")
    if Path("/dev/full").exists():
        code, err = ended(os.open("/dev/full", os.O_WRONLY))
        assert (code, err.count(b"\n")) == (1, 1)
        assert b"cannot write answers to standard output: No space left on device" in err


def test_without_standard_input_or_output_it_says_what_it_needs(remembering: Home) -> None:
    for closed in ("<&-", ">&-"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "-", *mcp_client.words(remembering.path)],
            capture_output=True,
            env=mcp_client.environ(remembering.path),
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
        assert b"needs a standard input and output" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells memory and descriptors")
def test_many_calls_do_not_let_it_grow(server: Server) -> None:
    server.greet()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": "tabs in the makefile"}),
        ("search", {"queries": ["tabs"], "mode": "any"}),
        ("read", {"path": "MEMORY.md"}),
        ("list", {}),
        ("why", {"statement": "tabs"}),
        ("read", {"path": "../config.toml"}),
    ]
    number = 1
    marks = []
    for count in (60, CALLS):
        for _ in range(count):
            number += 1
            tool, arguments = calls[number % len(calls)]
            assert "result" in server.call(number, tool, **arguments)
        marks.append(server.facts())
    (memory_before, files_before), (memory_after, files_after) = marks
    assert files_after <= files_before
    assert memory_after - memory_before < 3_000, "KiB"


# in this process


def desk(shell: Shell, cwd: Path | None = None) -> Desk:
    from memoryd import config

    return Desk(config.load(shell.home.path, environ=config.environ()), str(cwd or shell.folder))


def test_without_a_memory_each_tool_says_how_to_get_one(shell: Shell) -> None:
    here = desk(shell)
    assert "there is no memory yet" in answer(here, "search", {"query": "tabs"}, "")
    assert "no claim has these words" in answer(here, "why", {"statement": "tabs"}, "")
    for tool in ("read", "list"):
        with pytest.raises(StorageError, match="no memory yet"):
            answer(here, tool, {"path": ""}, "")


def test_with_a_daemon_a_note_is_told_to_it_and_the_rest_is_read_beside_it(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    asked: list[object] = []

    async def daemon(request: control_socket.Request, _tell: control_socket.Tell) -> dict[str, object]:
        asked.append(dict(request))
        return {}

    with shell.held("daemon", daemon):
        assert "the next consolidation takes it in" in answer(desk(shell), "note", {"text": "Use uv."}, "claude-code")
        assert "tabs" in answer(desk(shell), "search", {"query": "tabs"}, "")
        assert "stated by the user" in answer(desk(shell), "why", {"statement": "tabs"}, "")
    assert asked == [{"do": "note"}]
    (note,) = (shell.home.memories / "extensions" / "ad_hoc" / "notes").iterdir()
    assert note.read_text().startswith("---\nby: claude-code\n---\n")


def test_a_note_is_kept_also_where_nobody_can_be_told(shell: Shell) -> None:
    with shell.held("daemon", None):
        said = answer(desk(shell), "note", {"text": "Use uv."}, "two words!")
    assert "it is kept" in said
    (note,) = (shell.home.memories / "extensions" / "ad_hoc" / "notes").iterdir()
    assert note.read_text() == "---\nby: two-words\n---\nUse uv.\n"


def test_a_daemon_that_hangs_is_not_waited_for(shell: Shell) -> None:
    async def hanging(_request: control_socket.Request, _tell: control_socket.Tell) -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    with (
        shell.held("daemon", hanging),
        pytest.raises(StorageError, match="the note is kept, and seen by its next scan"),
    ):
        asyncio.run(noting.let_know(desk(shell).settings, patience_seconds=0.01))


def test_a_note_is_text_whatever_was_sent(shell: Shell) -> None:
    answer(desk(shell), "note", {"text": "Use\x00 \x1b[31muv\u202e here.\r\n\u200bAlways."}, "")
    (note,) = (shell.home.memories / "extensions" / "ad_hoc" / "notes").iterdir()
    assert note.read_text() == "---\nby: agent\n---\nUse uv here.\nAlways.\n"


def test_a_note_holds_no_secret(shell: Shell) -> None:
    answer(desk(shell), "note", {"text": "The token is ghp_" + "aB3" * 12}, "")
    (note,) = (shell.home.memories / "extensions" / "ad_hoc" / "notes").iterdir()
    assert "ghp_" not in note.read_text()


def test_where_the_settings_give_agents_nothing_only_notes_are_taken(shell: Shell) -> None:
    for more, complaint in (
        ('\n[recall]\nscope = "off"\n', 'recall.scope is "off"'),
        (f'\n[recall]\nexclude_cwd = ["{shell.folder}/secret*"]\n', "recall.exclude_cwd names this folder"),
    ):
        shell.configure(more)
        here = desk(shell, shell.folder / "secret" / "below")
        for tool, arguments in (
            ("search", {"query": "x"}),
            ("read", {"path": "MEMORY.md"}),
            ("list", {}),
            ("why", {"statement": "x"}),
        ):
            with pytest.raises(UsageError, match=complaint):
                answer(here, tool, arguments, "")
        assert "written to" in answer(here, "note", {"text": f"Use uv. {complaint}"}, "")
    shell.configure()
    assert "nothing is indexed yet" in answer(desk(shell), "search", {"query": "x"}, "")


def test_every_answer_is_bounded(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    with (shell.home.memories / "MEMORY.md").open("a") as file:
        file.writelines(f"- Always use the flag --number-{number} {'and so on ' * 90}.\n" for number in range(1000))
    for tool, arguments in (
        ("search", {"query": "flag number", "limit": 50}),
        ("search", {"queries": ["e"], "mode": "any", "limit": 200, "context_lines": 20}),
        ("why", {"statement": "always use the flag number"}),
        ("read", {"path": "MEMORY.md", "max_lines": 100_000}),
    ):
        assert len(answer(desk(shell), tool, arguments, "").encode()) <= MAX_ANSWER_BYTES + 100


def test_a_fault_of_ours_is_one_sentence_and_one_line_of_the_log(shell: Shell) -> None:
    broken = Desk(None, "/")  # type: ignore[arg-type]  # a fault needs something that cannot be
    with pytest.raises(StorageError, match="a fault in memoryd itself: AttributeError"):
        command.answered(broken, "read", {"path": "x"}, "")


def test_without_the_extra_the_command_says_how_to_install_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", gone)
    said = shell("mcp")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "memoryd[mcp]" in said.err
    assert "pip install" in said.err


def test_no_other_command_imports_the_protocol() -> None:
    """It takes a second and 65 MB: all commands together, and the daemon, do without it."""
    program = (
        "import importlib, pkgutil, sys, memoryd.control.commands as commands\n"
        "for found in pkgutil.iter_modules(commands.__path__):\n"
        "    importlib.import_module(f'{commands.__name__}.{found.name}')\n"
        "import memoryd.daemon.supervisor\n"
        "print(sorted({'mcp', 'mcp_types', 'anyio', 'starlette'} & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout.strip() in ("[]", "['anyio']"), "httpx itself imports anyio"


def test_calls_run_one_after_the_other_and_the_loop_stays_free(shell: Shell) -> None:
    from mcp import Client

    from memoryd.recall.mcp_server import make_server

    running: list[str] = []
    seen: list[int] = []

    def slow(name: str, arguments: dict[str, Any], client: str) -> str:
        running.append(name)
        seen.append(len(running))
        running.remove(name)
        return f"{name} for {client}"

    async def several() -> list[Any]:
        async with Client(make_server(slow, version="1")) as client, asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(client.call_tool("list", {})) for _ in range(20)]
        return [each.result() for each in made]

    results = asyncio.run(several())
    assert max(seen) == 1
    assert {each.content[0].text for each in results} == {"list for mcp"}
