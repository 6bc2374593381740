"""Installing into the user's systemd, with a systemctl that answers oddly; the real one is in tests/e2e."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.control.service import systemd
from memoryd.control.service.absence import Seen, explain_absence
from memoryd.control.service.calling import call
from memoryd.control.service.ground import Ground
from memoryd.control.service.linger import enable_linger, lingers
from memoryd.control.service.placing import MARK
from memoryd.control.service.systemctl import unit_folder
from memoryd.errors import NoServiceManager, ServiceError, ServiceNotStarted, UsageError
from tests.control.service.conftest import Programs, a_wish, shown

NO_BUS = (1, "", "Failed to connect to bus: No medium found\n")
SHOW = "systemctl --user show memoryd.service *"
RESTART = "systemctl --user restart *"
FAILED = {"ActiveState": "activating", "SubState": "auto-restart", "Result": "exit-code", "ExecMainCode": 1}


@pytest.fixture
def ground(ground: Ground, programs: Programs) -> Ground:
    """A user with a systemd that is content with everything."""
    for name in ("systemctl", "journalctl", "loginctl"):
        programs.add(name)
    programs.when(SHOW, shown())
    return ground


def files(ground: Ground, *, harden: bool = False) -> dict[Path, str]:
    return systemd.files_of(ground, a_wish(), [ground.home / ".memoryd"], harden=harden)


def unit_of(ground: Ground) -> Path:
    return ground.home / ".config" / "systemd" / "user" / "memoryd.service"


def drop_in_of(ground: Ground) -> Path:
    return unit_of(ground).with_name("memoryd.service.d") / "50-hardening.conf"


def test_it_is_written_for_all_to_read_loaded_enabled_and_started_in_this_order(
    ground: Ground, programs: Programs
) -> None:
    done = systemd.install(ground, files(ground), force=False)
    assert done.wrote == [unit_of(ground)]
    assert stat.S_IMODE(unit_of(ground).stat().st_mode) == 0o644
    assert done.state.is_running
    assert done.state.pid == 4711
    asked = [call.split()[2:] for call in programs.calls if "show" not in call and call.startswith("systemctl")]
    unit = "memoryd.service"
    assert asked == [["daemon-reload"], ["enable", unit], ["reset-failed", unit], ["restart", unit]]
    assert systemd.install(ground, files(ground), force=False).wrote == [], "the same again changes nothing"
    assert [path.name for path in unit_of(ground).parent.iterdir()] == [unit], "no temporary file is left"


def test_what_systemd_says_of_a_start_that_fails_and_the_end_of_its_log_are_told(
    ground: Ground, programs: Programs
) -> None:
    programs.when(RESTART, (1, "", "Job for memoryd.service failed.\n"))
    programs.when(SHOW, shown(**FAILED, ExecMainStatus=78))
    programs.when("journalctl *", (0, "memoryd: unknown key extract.modle\n", ""))
    with pytest.raises(ServiceNotStarted, match="exit 78: its settings are wrong") as caught:
        systemd.install(ground, files(ground), force=False)
    assert caught.value.lines == ("memoryd: unknown key extract.modle",)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"Result": "start-limit-hit"}, "too often"),
        ({"Result": "signal", "ExecMainCode": 2, "NRestarts": 4}, "it was killed; it was started too often"),
        ({"Result": "watchdog", "ExecMainCode": 3, "ExecMainStatus": 6}, "it hung"),
        ({"Result": "signal", "ExecMainCode": 2, "ExecMainStatus": 9}, "it was killed"),
        ({"Result": "exit-code", "ExecMainCode": 1, "ExecMainStatus": 203}, "its interpreter cannot be started"),
        ({"Result": "exit-code", "ExecMainCode": 1, "ExecMainStatus": 1}, r"exit 1 \(exit-code\)"),
    ],
)
def test_how_it_ended_is_said_in_words(
    ground: Ground, programs: Programs, properties: dict[str, object], words: str
) -> None:
    programs.when(RESTART, (1, "", "Job failed.\n"))
    programs.when(SHOW, shown(ActiveState="failed", SubState="failed", **properties))
    with pytest.raises(ServiceNotStarted, match=words):
        systemd.restart(ground)


@pytest.mark.parametrize(("code", "name"), [(217, "USER"), (218, "CAPABILITIES"), (226, "NAMESPACE")])
def test_hardening_that_does_not_start_is_taken_back(ground: Ground, programs: Programs, code: int, name: str) -> None:
    programs.when(RESTART, (1, "", "Job failed.\n"), (0, "", ""))
    failed = shown(**FAILED, ExecMainStatus=code)
    programs.when(SHOW, failed, failed, shown())
    done = systemd.install(ground, files(ground, harden=True), force=False)
    assert done.wrote == [unit_of(ground)]
    assert f"exit {code}, {name}" in done.notes[0]
    assert not drop_in_of(ground).parent.exists()
    assert done.state.is_running
    assert not done.state.is_hardened


def test_hardening_that_starts_stays_until_it_is_not_wanted(ground: Ground) -> None:
    assert drop_in_of(ground) in systemd.install(ground, files(ground, harden=True), force=False).wrote
    assert systemd.is_hardened(ground)
    assert systemd.install(ground, files(ground), force=False).removed == [drop_in_of(ground)]
    assert not systemd.is_hardened(ground)


@pytest.mark.parametrize(
    "answer",
    [
        NO_BUS,
        (1, "", "Failed to connect to user scope bus via local transport: $DBUS_SESSION_BUS_ADDRESS and ...\n"),
        (1, "", "System has not been booted with systemd as init system (PID 1). Can't operate.\n"),
    ],
)
def test_without_a_systemd_of_the_user_it_is_said_what_to_do_instead(
    ground: Ground, programs: Programs, answer: tuple[int, str, str]
) -> None:
    programs.when("systemctl *", answer)
    with pytest.raises(NoServiceManager) as caught:
        systemd.reach(ground)
    assert caught.value.remedy
    assert systemd.look(ground).activity == "unknown"


@pytest.mark.parametrize(
    ("changes", "message", "remedy"),
    [
        ({"has_systemctl": False}, "no systemd on this machine", "memoryd run"),
        ({"is_booted": False}, "as in most containers", "memoryd run"),
        ({"is_booted": False, "is_wsl": True}, "WSL", "/etc/wsl.conf"),
        ({"is_root": True, "sudo_user": "mika"}, "by sudo", "run it as mika, without sudo"),
        ({"is_root": True}, "no session with systemd", "loginctl enable-linger"),
        ({"has_runtime_folder": False}, "XDG_RUNTIME_DIR", "XDG_RUNTIME_DIR=/run/user/"),
        ({}, "does not answer", "systemctl status user@"),
    ],
)
def test_why_there_is_none_is_told_apart(changes: dict[str, object], message: str, remedy: str) -> None:
    seen = replace(
        Seen(has_systemctl=True, is_booted=True, is_root=False, is_wsl=False, has_runtime_folder=True),
        **changes,  # type: ignore[arg-type]  # fields by name
    )
    error = explain_absence(seen, "mika")
    assert message in error.message
    assert remedy in error.remedy


def test_a_machine_without_systemctl_has_no_systemd(ground: Ground, programs: Programs) -> None:
    (programs.folder / "systemctl").unlink()
    with pytest.raises(NoServiceManager, match="no systemd on this machine"):
        systemd.reach(ground)


def test_what_systemctl_refuses_is_told_in_its_words(ground: Ground, programs: Programs) -> None:
    programs.when("systemctl --user enable *", (1, "", "Failed to enable unit: Access denied\n"))
    with pytest.raises(ServiceError, match="Failed to enable unit: Access denied"):
        systemd.install(ground, files(ground), force=False)


def test_a_unit_of_somebody_else_and_a_link_are_left_alone_without_force(ground: Ground, tmp_path: Path) -> None:
    unit, elsewhere = unit_of(ground), tmp_path / "elsewhere.service"
    elsewhere.write_text(f"# {MARK}\n")
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")
    with pytest.raises(UsageError, match="was not written by memoryd"):
        systemd.install(ground, files(ground), force=False)
    with pytest.raises(UsageError, match="was not written by memoryd"):
        systemd.uninstall(ground, force=False)
    unit.unlink()
    unit.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is a link to"):
        systemd.install(ground, files(ground), force=False)
    systemd.install(ground, files(ground), force=True)
    assert not unit.is_symlink()
    assert elsewhere.read_text() == f"# {MARK}\n", "nothing is written through a link"


def test_uninstalling_leaves_nothing_and_twice_is_no_fault(ground: Ground, programs: Programs) -> None:
    systemd.install(ground, files(ground, harden=True), force=False)
    (unit_of(ground).parent / "default.target.wants").mkdir()
    (unit_of(ground).parent / "default.target.wants" / "memoryd.service").symlink_to(unit_of(ground))
    (drop_in_of(ground).parent / "override.conf").write_text("[Service]\n")
    programs.when("systemctl --user reset-failed *", (1, "", "Unit memoryd.service not loaded.\n"))
    programs.when("loginctl show-user *", (0, "Linger=yes\n", ""))
    gone = systemd.uninstall(ground, force=False)
    assert "loginctl disable-linger mika" in gone.notes[0]
    assert [path.name for path in gone.removed] == [
        "memoryd.service",
        "50-hardening.conf",
        "override.conf",
        "memoryd.service",
    ]
    assert list(ground.home.iterdir()) == []
    before = len(programs.calls)
    assert systemd.uninstall(ground, force=False).removed == []
    assert [call for call in programs.calls[before:] if "show" not in call] == []


def test_where_systemd_is_gone_its_files_are_removed_all_the_same(ground: Ground, programs: Programs) -> None:
    systemd.install(ground, files(ground), force=False)
    programs.when("systemctl *", NO_BUS)
    gone = systemd.uninstall(ground, force=False)
    assert gone.removed == [unit_of(ground)]
    assert "only the files were removed" in gone.notes[0]


def test_units_lie_where_systemd_says_whatever_this_shell_has_set(
    ground: Ground, programs: Programs, tmp_path: Path
) -> None:
    own = tmp_path / 'c "d" $e' / "systemd" / "user"
    quoted = str(own).replace('"', '\\"').replace("$", "\\$")
    told = f'/run/user/1/systemd/transient "{quoted}.control" "{quoted}" /usr/lib/systemd/user'
    programs.when("systemctl --user show --property=UnitPath *", (0, f"{told}\n", ""))
    assert unit_folder(ground) == own
    programs.when("systemctl *", NO_BUS)
    assert unit_folder(ground) == ground.home / ".config" / "systemd" / "user"
    moved = replace(ground, environ={**ground.environ, "XDG_CONFIG_HOME": str(tmp_path / "x")})
    assert unit_folder(moved) == tmp_path / "x" / "systemd" / "user"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((0, "Linger=yes\n", ""), True),
        ((0, "Linger=no\n", ""), False),
        ((1, "", "Failed to get user: User ID 1000 is not logged in or lingering\n"), False),
        ((1, "", "Failed to connect to bus: No such file or directory\n"), None),
    ],
)
def test_lingering_is_known_unknown_or_off(
    ground: Ground, programs: Programs, answer: tuple[int, str, str], expected: bool | None
) -> None:
    programs.when("loginctl show-user mika *", answer)
    assert lingers(ground) is expected


def test_lingering_that_the_system_does_not_allow_says_who_can(ground: Ground, programs: Programs) -> None:
    programs.when(
        "loginctl enable-linger *", (1, "", "Could not enable linger: Interactive authentication required.\n")
    )
    with pytest.raises(ServiceError, match="Interactive authentication required") as caught:
        enable_linger(ground)
    assert caught.value.remedy == "sudo loginctl enable-linger mika"


def test_a_program_that_hangs_is_ended(ground: Ground, programs: Programs) -> None:
    program = programs.folder / "sleepy"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    with pytest.raises(ServiceError, match="no answer within"):
        call(["sleepy"], {"PATH": f"{programs.folder}:/usr/bin:/bin"}, seconds=0.1)
