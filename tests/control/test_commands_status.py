"""`status` as a person meets it: one screen, going on, as metrics; what is not set up is named with its remedy."""

import asyncio
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import tty
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from memoryd import config
from memoryd.control import setup_health, sizes
from memoryd.control.commands.status import watch
from memoryd.control.exposition import MEANING, exposition
from memoryd.control.overview import Picture
from memoryd.control.status_told import screen, sections
from tests.control.conftest import THREAD, Shell
from tests.control.test_overview import look
from tests.ledger.factories import claim, enqueue
from tests.support import exposition as prometheus
from tests.support.clock import FakeClock

README = (Path(__file__).parents[2] / "README.md").read_text()
PROVIDER = '[providers.main]\n{how}\n[extract]\nmodel = "m"\n'


def unusual() -> dict[str, Any]:
    """Return a report in which every family has a sample, and texts that must be escaped."""
    stage = {"pending": 1, "running": 0, "done": 2, "error": 0, "last_success_at": 1_700_000_000}
    return {
        "version": '0.1 "odd"\\',
        "running": True,
        "pid": 7,
        "since": 1_700_000_000,
        "doing": [],
        "waiting": [{"kind": "memory_stage1", "key": key, "until": 1, "reason": "bud\nget"} for key in ("a", "b")],
        "stages": {"memory_stage1": stage, "memory_consolidate_global": stage | {"last_success_at": None}},
        "today": {
            "requests": 3,
            "tokens": 1200,
            "cost": 0.25,
            "caps": {"requests_per_day": 500, "tokens_per_day": 5_000_000, "cost_per_day": 1.5},
        },
        "excluded": {"subagent": 4},
        "disk": dict.fromkeys(sizes.MEANING, 10) | {"free": 99},
        "health": [{"id": "job_dead", "severity": "error", "message": "m", "remedy": "r"}] * 2,
    }


def test_metrics_are_what_a_scraper_takes() -> None:
    families = prometheus.parse(exposition(unusual()))
    assert families.keys() == MEANING.keys()
    assert families["memoryd_waiting_jobs"].samples == {
        frozenset({("kind", "memory_stage1"), ("reason", "bud\nget")}): 2.0
    }
    assert families["memoryd_info"].samples == {frozenset({("version", '0.1 "odd"\\')}): 1.0}
    assert families["memoryd_cost_dollars_today"].samples == {frozenset(): 0.25}
    assert families["memoryd_findings"].samples == {frozenset({("severity", "error"), ("id", "job_dead")}): 2.0}
    assert families["memoryd_degraded"].samples == {frozenset(): 1.0}


def test_metrics_of_a_home_in_which_nothing_happened_are_metrics_too(shell: Shell) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    said = shell("status", "--prometheus")
    families = prometheus.parse(said.out)
    assert (said.code, families["memoryd_up"].samples) == (0, {frozenset(): 0.0})
    assert "memoryd_start_time_seconds" not in families


def test_the_names_of_metrics_and_of_parts_stand_in_readme_for_good() -> None:
    table = set(re.findall(r"^\| `(memoryd_[a-z_]+)`", README, re.MULTILINE))
    assert table == MEANING.keys()
    assert all(re.search(rf"`{part}`", README) for part in sizes.MEANING)


async def test_a_watch_looks_again_at_each_interval(clock: FakeClock) -> None:
    shown: list[float] = []

    async def looked() -> Picture:
        return Picture(clock.now(), {})

    watching = asyncio.create_task(watch(looked, lambda picture: shown.append(picture.now), clock, every=5))
    for _ in range(3):
        await clock.sleeping(1)
        await clock.advance(5)
    watching.cancel()
    assert [at - shown[0] for at in shown] == [0, 5, 10, 15]


def test_a_watch_on_a_terminal_draws_and_ends_quietly_at_an_interrupt(shell: Shell) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    said, code = on_a_terminal(shell, "status", "--watch", "--every", "0.2", until="nothing needs a look", times=2)
    assert code == 0
    assert [said.count(mode) for mode in ("\x1b[?1049h", "\x1b[?1049l")] == [1, 1], "the screen is given back"
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l"), "and the cursor"
    assert "Traceback" not in said


def on_a_terminal(shell: Shell, *words: str, until: str, times: int) -> tuple[str, int]:
    """Run a command on a terminal of its own, interrupt it once it said something so often; return all it said."""
    ours, its_own = pty.openpty()
    try:
        tty.setraw(its_own)
        size = struct.pack("HHHH", 50, 200, 0, 0)
        fcntl.ioctl(its_own, termios.TIOCSWINSZ, size)
        environ = {**config.environ(), "TERM": "xterm"}
        with subprocess.Popen(command(shell, *words), stdout=its_own, env=environ) as process:
            os.close(its_own)
            said = b""
            while said.count(until.encode()) < times:
                said += os.read(ours, 65_536)
            process.send_signal(signal.SIGINT)
            with suppress(OSError):  # it ended, and the terminal with it
                while more := os.read(ours, 65_536):
                    said += more
        return said.decode(errors="replace"), process.returncode
    finally:
        os.close(ours)


def command(shell: Shell, *words: str) -> list[str]:
    return [sys.executable, "-m", "memoryd.control.main", words[0], "--home", str(shell.home.path), *words[1:]]


def test_an_interval_that_is_none_is_refused(shell: Shell) -> None:
    for words in ("0", "nan", "-3"):
        said = shell("status", "--watch", "--every", words)
        assert (said.code, "no interval" in said.err) == (2, True)


def test_a_screen_says_what_the_lines_say(shell: Shell, clock: FakeClock) -> None:
    shell.write(enqueue, THREAD)
    shell.write(claim)
    picture = look(shell, clock)
    console = Console(width=400, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(screen(picture))
    console.file.close()
    drawn = console.export_text()
    for section in sections(picture):
        assert section.title in drawn
        assert all(row.label in drawn and row.text in drawn for row in section.rows)


def findings(shell: Shell, how: str, *, daemon_runs: bool = False, **more: str) -> dict[str, str]:
    shell.configure(PROVIDER.format(how=how).replace("[extract]", 'model = "m"\n[extract]', 0))
    shell.home.config_file.write_text(
        shell.home.config_file.read_text().replace("[consolidate]", '[consolidate]\nmodel = "m"')
    )
    environ: Mapping[str, str] = {"HOME": str(shell.folder), "PATH": config.environ()["PATH"], **more}
    settings = config.load(shell.home.path, environ=environ)
    found = setup_health.of_providers(settings, environ, daemon_runs=daemon_runs)
    return {each.id: f"{each.message} -> {each.remedy}" for each in found}


def test_a_missing_key_variable_of_a_provider_in_use_is_named(shell: Shell) -> None:
    how = 'kind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "SHOP_KEY"'
    found = findings(shell, how)
    assert found.keys() == {"key_main"}, "said once, though two stages use it"
    assert "SHOP_KEY" in found["key_main"]
    assert findings(shell, how, SHOP_KEY="sk-1") == {}
    assert findings(shell, how, daemon_runs=True) == {}, "a daemon has an environment of its own"


def test_a_missing_program_of_a_provider_is_named(shell: Shell) -> None:
    found = findings(shell, 'kind = "command"\ncommand = ["no-such-agent", "-p"]')
    assert "there is no program no-such-agent on PATH" in found["program_main"]


def test_a_stage_without_a_model_is_named_and_the_rest_is_told_all_the_same(shell: Shell) -> None:
    shell("sync")
    shell.configure('[providers.main]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n')
    said = shell("status", "--json")
    named = {item["id"]: item for item in said.json["health"]}
    assert (said.code, {"provider_extract", "provider_consolidate"} <= named.keys()) == (1, True)
    assert named["provider_extract"]["remedy"] == "set extract.model"


def test_a_home_without_settings_is_not_set_up_whatever_was_made_in_it(shell: Shell) -> None:
    shell.home.config_file.unlink()
    shell("sync")
    assert shell.home.ledger_file.exists()
    assert "does nothing  not_configured: " in shell("status").out


def test_a_memory_folder_that_was_deleted_is_named_by_status(shell: Shell) -> None:
    shell.record()
    assert shell("sync", "--now").code == 0
    shutil.rmtree(shell.home.memories)
    said = shell("status")
    assert said.code == 1
    assert f"the memory folder {shell.home.memories} was deleted" in said.out


@pytest.mark.parametrize(("words", "code"), [(("--json", "--prometheus"), 2), (("--watch",), 0)])
def test_forms_exclude_each_other_and_a_block_per_interval_needs_no_terminal(
    shell: Shell, words: tuple[str, ...], code: int
) -> None:
    if code:
        assert shell("status", *words).code == code
        return
    (shell.codex / "sessions").mkdir(parents=True)
    said, ended = piped(shell, "status", "--watch", "--every", "0.1", until="--- ", times=3)
    assert (ended, said.count("nothing needs a look") >= 2) == (0, True)
    assert "\x1b" not in said


def piped(shell: Shell, *words: str, until: str, times: int) -> tuple[str, int]:
    """Run a command whose output goes into a pipe, interrupt it once it said something so often."""
    with subprocess.Popen(command(shell, *words), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        said = ""
        while said.count(until) < times:
            said += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
    return said + rest, process.returncode
