"""Installing into launchd, against a launchctl that answers as macOS does."""

import asyncio
import os
import plistlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.clock import SystemClock
from memoryd.control.service import launchd
from memoryd.control.service.ground import Ground
from memoryd.daemon import house, lock, starts
from memoryd.errors import NoServiceManager, ServiceError, ServiceNotStarted, UsageError
from tests.control.service.conftest import Programs, a_wish

GONE = (3, "", "Boot-out failed: 3: No such process\n")
UNKNOWN = (113, "", 'Bad request.\nCould not find service "dev.memoryd" in domain for user gui: 501\n')
BUSY = (5, "", "Bootstrap failed: 5: Input/output error\nTry re-running the command as root for richer errors.\n")
FINE = (0, "", "")
PRINT = "launchctl print gui/*/dev.memoryd"
BOOTSTRAP = "launchctl bootstrap *"


def printed(**facts: object) -> tuple[int, str, str]:
    """What `launchctl print` says of a service, with the lines of its parts that look alike."""
    lines = [f"\t{name.replace('_', ' ')} = {value}" for name, value in facts.items()]
    inner = ["\tspawn type = daemon (3)", "\tresource coalition = {", "\t\tstate = active", "\t\tpid = 1", "\t}"]
    return 0, "\n".join(["gui/501/dev.memoryd = {", *lines, *inner, "}", ""]), ""


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def ground(ground: Ground, programs: Programs, pauses: list[float]) -> Ground:
    """A user of a Mac on which nothing is installed yet; what is started runs as this process."""
    programs.add("launchctl")
    programs.add("tail")
    programs.when("launchctl bootout *", GONE)
    programs.when(PRINT, UNKNOWN, printed(state="running", runs=1, pid=os.getpid(), last_exit_code="(never exited)"))
    (ground.home / ".memoryd").mkdir()
    return replace(ground, pause=pauses.append)


@contextmanager
def a_daemon(ground: Ground, role: str = house.DAEMON) -> Iterator[None]:
    """Hold the lock as a daemon of this process would."""
    with asyncio.run(lock.acquire(ground.home / ".memoryd" / "memoryd.lock", clock=SystemClock(), role=role)):
        yield


def files(ground: Ground) -> dict[Path, str]:
    return launchd.files_of(ground, a_wish(), [ground.home / ".memoryd"], harden=False)


def file_of(ground: Ground) -> Path:
    return ground.home / "Library" / "LaunchAgents" / "dev.memoryd.plist"


def test_it_is_enabled_before_it_is_bootstrapped_and_ready_when_its_process_has_the_lock(
    ground: Ground, programs: Programs
) -> None:
    with a_daemon(ground):
        done = launchd.install(ground, files(ground), force=False)
    target, domain = f"gui/{ground.uid}/dev.memoryd", f"gui/{ground.uid}"
    asked = [call for call in programs.calls if " print " not in call]
    assert asked == [
        f"launchctl bootout {target}",
        f"launchctl enable {target}",
        f"launchctl bootstrap {domain} {file_of(ground)}",
    ]
    assert done.wrote == [file_of(ground)]
    assert file_of(ground).stat().st_mode & 0o777 == 0o644
    assert plistlib.loads(file_of(ground).read_bytes())["Label"] == file_of(ground).stem
    assert (done.state.is_running, done.state.pid) == (True, os.getpid())
    assert launchd.DAEMON == house.DAEMON


def test_error_5_right_after_a_bootout_is_tried_again_a_little_later_each_time(
    ground: Ground, programs: Programs, pauses: list[float]
) -> None:
    programs.when(BOOTSTRAP, BUSY, BUSY, FINE)
    with a_daemon(ground):
        launchd.install(ground, files(ground), force=False)
    assert pauses == [launchd.PAUSE_SECONDS, launchd.PAUSE_SECONDS * 2]


def test_error_5_that_stays_is_told_with_what_to_do(ground: Ground, programs: Programs, pauses: list[float]) -> None:
    programs.when(BOOTSTRAP, BUSY)
    with pytest.raises(ServiceError, match="5: Input/output error"):
        launchd.install(ground, files(ground), force=False)
    assert len(pauses) == launchd.BOOTSTRAP_TRIES - 1


def test_any_other_error_of_bootstrap_is_told_at_once(ground: Ground, programs: Programs, pauses: list[float]) -> None:
    programs.when(BOOTSTRAP, (1, "", "Bootstrap failed: 1: Operation not permitted\n"))
    with pytest.raises(ServiceError, match="Operation not permitted"):
        launchd.install(ground, files(ground), force=False)
    assert pauses == []


def test_an_upgrade_waits_until_the_old_one_is_gone(ground: Ground, programs: Programs, pauses: list[float]) -> None:
    running = printed(state="running", pid=os.getpid())
    programs.when("launchctl bootout *", FINE)
    programs.when(PRINT, running, running, UNKNOWN, running)
    with a_daemon(ground):
        launchd.install(ground, files(ground), force=False)
    assert pauses == [launchd.PAUSE_SECONDS] * 2


def test_one_that_does_not_start_is_told_with_its_exit_code_and_the_end_of_its_log(
    ground: Ground, programs: Programs
) -> None:
    programs.when(PRINT, UNKNOWN, printed(state="spawn scheduled", runs=1, last_exit_code="78: EX_CONFIG"))
    programs.when("tail *", (0, "memoryd: unknown key extract.modle\n", ""))
    with pytest.raises(ServiceNotStarted, match="exit 78: its settings are wrong") as caught:
        launchd.install(ground, files(ground), force=False)
    assert caught.value.lines == ("memoryd: unknown key extract.modle",)


def test_beside_another_daemon_it_says_which_to_stop(ground: Ground, programs: Programs) -> None:
    programs.when(PRINT, UNKNOWN, printed(state="not running", runs=1, last_exit_code=0))
    with a_daemon(ground), pytest.raises(ServiceNotStarted, match=f"another memoryd is running .pid {os.getpid()}"):
        launchd.install(ground, files(ground), force=False)


def test_one_that_waits_for_a_command_is_content(ground: Ground, programs: Programs) -> None:
    programs.when(PRINT, UNKNOWN, printed(state="running", pid=1))
    with a_daemon(ground, role="sync"):
        assert launchd.install(ground, files(ground), force=False).state.pid == 1


def test_a_property_list_of_somebody_else_is_left_alone_without_force(ground: Ground) -> None:
    file_of(ground).parent.mkdir(parents=True)
    file_of(ground).write_text("<plist/>")
    for deed in (
        lambda: launchd.install(ground, files(ground), force=False),
        lambda: launchd.uninstall(ground, force=False),
    ):
        with pytest.raises(UsageError, match="was not written by memoryd"):
            deed()
    with a_daemon(ground):
        launchd.install(ground, files(ground), force=True)
    assert launchd.read_installed(ground) == a_wish()


def test_uninstalling_takes_the_file_and_the_logs_and_twice_is_no_fault(ground: Ground, programs: Programs) -> None:
    with a_daemon(ground):
        launchd.install(ground, files(ground), force=False)
    programs.when(PRINT, UNKNOWN)
    left = [ground.home / ".memoryd" / name for name in (starts.FILE, "daemon.log", "daemon.log.1")]
    for path in left:
        path.write_text("{}")
    gone = launchd.uninstall(ground, force=False)
    assert gone.removed == [file_of(ground), *left]
    assert launchd.uninstall(ground, force=False).removed == []


def test_a_bootout_that_really_fails_is_told(ground: Ground, programs: Programs) -> None:
    programs.when("launchctl bootout *", (1, "", "Boot-out failed: 1: Operation not permitted\n"))
    with pytest.raises(ServiceError, match="Operation not permitted"):
        launchd.uninstall(ground, force=False)


@pytest.mark.parametrize(
    "answer",
    [
        (125, "", "Domain does not support specified action\n"),
        (112, "", "Could not find domain for user gui: 501\n"),
    ],
)
def test_without_a_graphical_session_it_is_said_where_to_log_in(
    ground: Ground, programs: Programs, answer: tuple[int, str, str]
) -> None:
    programs.when("launchctl *", answer)
    with pytest.raises(NoServiceManager, match="no graphical session of mika"):
        launchd.reach(ground)


def test_without_launchctl_there_is_no_launchd(ground: Ground, programs: Programs) -> None:
    (programs.folder / "launchctl").unlink()
    with pytest.raises(NoServiceManager, match="no launchd"):
        launchd.reach(ground)
    assert launchd.look(ground).activity == "unknown"


def test_its_log_is_where_the_property_list_says(ground: Ground) -> None:
    with pytest.raises(ServiceError, match="not installed"):
        launchd.log_command(ground, 5, follow=False)
    with a_daemon(ground):
        launchd.install(ground, files(ground), force=False)
    log = str(ground.home / ".memoryd" / "daemon.log")
    assert launchd.log_command(ground, 5, follow=True) == ["tail", "-n", "5", "-F", log]


def test_there_is_no_hardening_and_a_service_that_is_not_installed_cannot_be_restarted(ground: Ground) -> None:
    assert not launchd.is_hardened(ground)
    with pytest.raises(UsageError, match="no hardening"):
        launchd.files_of(ground, a_wish(), [ground.home], harden=True)
    with pytest.raises(ServiceNotStarted, match="not installed"):
        launchd.restart(ground)
