"""The hook's runner as agents call it: the right text for each agent, and silence whatever is wrong (I11)."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoryd.recall import hook
from memoryd.recall.ready import Circumstances, refresh
from memoryd.recall.runner import install_runner
from memoryd.sections import Recall
from memoryd.workspace.layout import Home, prepare

SUMMARY = "v1\n\n## User Profile\n\nA person who likes tabs: „äöü“ 記憶.\n"
START = {"session_id": "s-1", "transcript_path": "/x", "cwd": "/src/app", "hook_event_name": "SessionStart"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "a home's 記憶")
    prepare(home)
    (home.memories / "memory_summary.md").write_text(SUMMARY)
    refresh(home, "a" * 40, Circumstances(Recall()))
    install_runner(home)
    return home


def call(
    home: Home, said: object = START, *, agent: str = "claude", event: str = "SessionStart"
) -> subprocess.CompletedProcess[bytes]:
    stdin = said if isinstance(said, bytes) else json.dumps(said).encode()
    return subprocess.run(
        [home.bin / "hook", agent, event], input=stdin, capture_output=True, check=False, env={}, timeout=20
    )


def silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "qwen"])
@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_an_agent_is_given_the_text_in_its_schema_also_after_compaction(agent: str, source: str, home: Home) -> None:
    answer = json.loads(
        hook.reply(str(home.recall), agent, "SessionStart", json.dumps({**START, "source": source}).encode())
    )
    assert answer == {
        "hookSpecificOutput": {
            "hookEventName": "SessionStart",
            "additionalContext": (home.recall / "everywhere.md").read_text(),
        }
    }


@pytest.mark.parametrize(
    ("agent", "said", "key", "more"),
    [
        ("copilot", {"sessionId": "s", "timestamp": 1, "cwd": "/src/app", "source": "new"}, "additionalContext", {}),
        ("cursor", {"conversation_id": "c", "workspace_roots": ["/src/app"]}, "additional_context", {"continue": True}),
    ],
)
def test_agents_with_a_schema_of_their_own_are_given_theirs(
    agent: str, said: object, key: str, more: dict[str, object], home: Home
) -> None:
    answer = json.loads(call(home, said, agent=agent, event="sessionStart").stdout)
    assert answer == {key: (home.recall / "everywhere.md").read_text(), **more}


def test_the_runner_prints_what_the_module_would_whatever_the_locale(home: Home) -> None:
    done = call(home)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == hook.reply(str(home.recall), "claude", "SessionStart", json.dumps(START).encode())
    assert "記憶" in done.stdout.decode()


@pytest.mark.parametrize(
    "said",
    [
        {**START, "agent_id": "sub-1", "agent_type": "Explore"},
        {**START, "hook_event_name": "SubagentStart"},
        {key: value for key, value in START.items() if key != "cwd"},
        {**START, "cwd": "relative"},
        {**START, "cwd": None},
        {**START, "cwd": "/\0"},
        b"",
        b"not json",
        b"[]",
        b"null",
        b"\xff\xfe{",
        b"{" * 5000,
        b'{"cwd": "' + b"x" * (2 << 20),
    ],
    ids=lambda said: str(said)[:40],
)
def test_sub_agents_and_what_is_no_question_are_answered_with_silence(said: object, home: Home) -> None:
    assert silent(call(home, said))


@pytest.mark.parametrize(
    ("agent", "event"),
    [("claude", "Stop"), ("claude", ""), ("", ""), ("nobody", "SessionStart"), ("opencode", "SessionStart")],
)
def test_other_events_and_agents_are_answered_with_silence(agent: str, event: str, home: Home) -> None:
    assert silent(call(home, agent=agent, event=event))


def _no_index(home: Home) -> None:
    (home.recall / "index.json").unlink()


def _no_recall_folder(home: Home) -> None:
    home.recall.rename(home.path / "gone")


def _garbage_index(home: Home) -> None:
    (home.recall / "index.json").write_bytes(b"\0" * 100)


def _large_text(home: Home) -> None:
    (home.recall / "everywhere.md").write_text("<memoryd_memory>" + "x" * 10_000_000)


def _large_index(home: Home) -> None:
    (home.recall / "index.json").write_text('{"scope": "' + "x" * 10_000_000)


def _no_text(home: Home) -> None:
    (home.recall / "everywhere.md").unlink()


def _a_pipe(home: Home) -> None:
    (home.recall / "everywhere.md").unlink()
    os.mkfifo(home.recall / "everywhere.md")


def _a_folder(home: Home) -> None:
    (home.recall / "everywhere.md").unlink()
    (home.recall / "everywhere.md").mkdir()


def _another_text(home: Home) -> None:
    (home.recall / "everywhere.md").write_text("anything else")


def _no_unicode(home: Home) -> None:
    (home.recall / "everywhere.md").write_bytes(b"<memoryd_memory>\xff\xff")


def _no_interpreter(home: Home) -> None:
    install_runner(home, ["/nowhere/bin/python3"])


def _broken_interpreter(home: Home) -> None:
    broken = home.path / "python"
    broken.write_text("#!/bin/sh\necho noise\necho noise >&2\nkill -9 $$\n")
    broken.chmod(0o700)
    install_runner(home, [str(broken)])
    broken.write_text("#!/nowhere\n")


def _no_program(home: Home) -> None:
    (home.bin / "hook.py").unlink()


@pytest.mark.parametrize(
    "breaks",
    [
        _no_index, _no_recall_folder, _garbage_index, _large_text, _large_index, _no_text, _a_pipe, _a_folder,
        _another_text, _no_unicode, _no_interpreter, _broken_interpreter, _no_program,
    ],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_i11_whatever_is_missing_or_broken_the_agent_goes_on_in_silence(breaks: object, home: Home) -> None:
    assert callable(breaks)
    breaks(home)
    assert silent(call(home))


def test_i11_closed_or_unread_pipes_are_no_reason_to_fail(home: Home) -> None:
    script = '"$0" claude SessionStart <&- >&- 2>&-; echo $?; "$0" claude SessionStart <&-; echo $?'
    done = subprocess.run(["/bin/sh", "-c", script, home.bin / "hook"], capture_output=True, check=True, timeout=20)
    assert (done.stdout, done.stderr) == (b"0\n0\n", b"")
    reader, writer = os.pipe()
    os.close(reader)
    broken = subprocess.run(
        [home.bin / "hook", "claude", "SessionStart"], input=json.dumps(START).encode(), stdout=writer, check=False
    )
    os.close(writer)
    assert broken.returncode == 0


def test_i11_a_pipe_that_nobody_closes_does_not_hold_the_session_up(home: Home) -> None:
    with subprocess.Popen(
        [home.bin / "hook", "claude", "SessionStart"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(START).encode())
        process.stdin.flush()
        assert b"additionalContext" in process.stdout.read()
        assert process.wait(20) == 0


def test_i11_a_pipe_in_which_nothing_comes_is_given_up(home: Home) -> None:
    with subprocess.Popen(
        [home.bin / "hook", "claude", "SessionStart"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        started = time.monotonic()
        assert process.stdout.read() == b""
        assert process.wait(20) == 0
        assert time.monotonic() - started < hook.LIFE_SECONDS + 5


def test_an_index_that_was_replaced_meanwhile_is_read_again(home: Home) -> None:
    index = json.loads((home.recall / "index.json").read_text())
    index["directories"] = {"/src/app": "project-gone.md"}
    (home.recall / "index.json").write_text(json.dumps(index))
    assert silent(call(home))


def test_a_name_in_the_index_leads_nowhere_outside_of_recall(home: Home) -> None:
    (home.path / "secret.md").write_text("<memoryd_memory> a secret")
    index = json.loads((home.recall / "index.json").read_text())
    index["directories"] = {"/src/app": "../secret.md"}
    (home.recall / "index.json").write_text(json.dumps(index))
    assert silent(call(home))


def test_the_module_imports_nothing_but_the_standard_library() -> None:
    code = "import sys, memoryd.recall.hook; print(*{name.split('.')[0] for name in sys.modules})"
    names = set(
        subprocess.check_output([sys.executable, "-c", code], text=True, cwd=Path(hook.__file__).parents[2]).split()
    )
    assert names - set(sys.stdlib_module_names) - {"__main__", "memoryd"} <= {
        name
        for name in names
        if name.startswith(("_", "sitecustomize", "usercustomize", "coverage", "$coverage", "a1_coverage"))
    }


def test_the_runner_is_private_and_rewritten_only_when_it_changes(home: Home) -> None:
    path = home.bin / "hook"
    before = path.stat().st_mtime_ns
    assert path.stat().st_mode & 0o777 == 0o700
    install_runner(home)
    assert path.stat().st_mtime_ns == before
    path.chmod(0o755)
    path.write_text("#!/bin/sh\nexit 3\n")
    install_runner(home)
    assert path.stat().st_mode & 0o777 == 0o700
    assert not silent(call(home))
