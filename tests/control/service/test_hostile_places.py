"""The service where somebody else's thing has the place of its file, and below homes of any name."""

import os
import plistlib
import shlex
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.control.service import launchd, placing, systemctl, systemd
from memoryd.control.service.calling import call
from memoryd.control.service.checking import judge
from memoryd.control.service.ground import Ground
from memoryd.control.service.hardening import render_hardening
from memoryd.control.service.keys import keys_folder, take_away_keys
from memoryd.control.service.managers import MANAGERS
from memoryd.control.service.placing import MARK
from memoryd.control.service.unit import read_unit
from memoryd.errors import MemorydError, ServiceError, StorageError, UsageError
from memoryd.workspace.layout import Home
from tests.control.service.conftest import Programs, a_wish, shown

Make = Callable[[Path, Path], object]
"""Puts something at a path; the second is somebody's file elsewhere."""


def a_socket(path: Path, _other: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket may have 108 bytes
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def a_folder(path: Path, _other: Path) -> None:
    path.mkdir()
    (path / "theirs").write_text("theirs")


KINDS: dict[str, Make] = {
    "a file of theirs": lambda path, _: path.write_text("[Service]\nExecStart=/bin/theirs\n"),
    "a link to a file": lambda path, other: path.symlink_to(other),
    "a link to nothing": lambda path, other: path.symlink_to(other.with_name("gone")),
    "a link to itself": lambda path, _: path.symlink_to(path),
    "a link to what never ends": lambda path, _: path.symlink_to("/dev/zero"),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a socket": a_socket,
    "bytes that are no text": lambda path, _: path.write_bytes(b"\xff\x00" * 99),
}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Somebody's file, which says what ours would say."""
    path = tmp_path / "theirs"
    path.write_text(f"# {MARK}\n[Service]\nExecStart=/bin/theirs\n")
    return path


@pytest.fixture
def running(programs: Programs) -> Programs:
    for name in ("systemctl", "loginctl", "journalctl"):
        programs.add(name)
    programs.when("systemctl --user show memoryd.service *", shown())
    return programs


def place_of(ground: Ground, manager: str) -> Path:
    path = launchd.service_file(ground) if manager == "launchd" else systemctl.unit_folder(ground) / systemctl.UNIT
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_ours_is_refused_left_as_it_is_and_replaced_by_force_alone(
    ground: Ground, running: Programs, theirs: Path, kind: str
) -> None:
    unit = place_of(ground, "systemd")
    KINDS[kind](unit, theirs)
    before = os.lstat(unit)
    files = systemd.files_of(ground, a_wish(), [ground.home], harden=False)
    for act in (lambda: systemd.install(ground, files, force=False), lambda: systemd.uninstall(ground, force=False)):
        with pytest.raises(UsageError, match="nothing was changed"):
            act()
    assert os.lstat(unit) == before
    state = systemd.look(ground)
    assert judge(state, systemd.read_installed(ground), ground.home, ground.home)

    systemd.install(ground, files, force=True)
    assert unit.read_text() == files[unit]
    assert not unit.is_symlink()
    assert theirs.read_text().startswith(f"# {MARK}")
    assert running.calls


@pytest.mark.parametrize("manager", ["systemd", "launchd"])
@pytest.mark.parametrize("force", [False, True])
def test_a_folder_in_its_place_is_nobodys_to_remove(
    ground: Ground, running: Programs, theirs: Path, manager: str, *, force: bool
) -> None:
    running.add("launchctl")
    place = place_of(ground, manager)
    a_folder(place, theirs)
    module = MANAGERS["darwin" if manager == "launchd" else "linux"]
    files = module.files_of(ground, a_wish(), [ground.home], harden=False)
    with pytest.raises(UsageError, match="is a folder; nothing was changed"):
        module.install(ground, files, force=force)
    with pytest.raises(UsageError, match="is a folder; nothing was changed"):
        module.uninstall(ground, force=force)
    assert (place / "theirs").read_text() == "theirs"
    assert module.read_installed(ground) is None


def test_a_folder_that_cannot_be_written_is_named_and_nothing_was_asked_of_systemd(
    ground: Ground, running: Programs
) -> None:
    if os.geteuid() == 0:
        (ground.home / ".config").write_text("a file where folders belong")
    else:
        ground.home.chmod(0o500)
    files = systemd.files_of(ground, a_wish(), [ground.home], harden=False)
    with pytest.raises(StorageError, match=r"\.config"):
        systemd.install(ground, files, force=False)
    assert not any("enable" in line for line in running.calls)


@pytest.mark.parametrize("named", ["relative", "", ".", "~/.config"])
def test_an_xdg_folder_that_is_not_absolute_is_none(ground: Ground, named: str) -> None:
    elsewhere = replace(ground, environ={**ground.environ, "XDG_CONFIG_HOME": named})
    assert systemctl.unit_folder(elsewhere) == ground.home / ".config" / "systemd" / "user"


def test_a_systemctl_that_hangs_is_asked_shortly_and_the_state_is_unknown(ground: Ground, programs: Programs) -> None:
    programs.add("systemctl")
    (programs.folder / "systemctl").write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    with pytest.raises(ServiceError, match=r"gave no answer within 0\.2 s"):
        call(["systemctl", "--user", "show"], ground.environ, seconds=0.2)
    assert systemctl.LOOK_SECONDS <= 10


ODD_NAMES = [
    "a b",
    "it's",
    'q"uote',
    "100%h",
    "$HOME",
    "${x}",
    "back\\slash",
    "ünï",
    "日本",
    "x" * 200,
    ";a",
    "#a",
    " a ",
    "%%",
    "-a",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_home_of_any_printable_name_is_written_read_back_and_taken_out(
    tmp_path: Path, ground: Ground, running: Programs, name: str
) -> None:
    home = tmp_path / name
    home.mkdir()
    there = replace(ground, home=home, environ={**ground.environ, "HOME": str(home)})
    wish = a_wish(f"{home}/bin/python", {"PATH": "/usr/bin", "MEMORYD_HOME": f"{home}/m"}, {"KEY": home / "m" / "KEY"})
    files = systemd.files_of(there, wish, [home / "m", home], harden=True)
    systemd.install(there, files, force=False)
    assert systemd.read_installed(there) == wish
    assert all(path.is_relative_to(home) for path in files)
    assert systemd.uninstall(there, force=False).removed == sorted(files, key=lambda path: len(path.parts))
    (plist,) = launchd.files_of(there, wish, [home / "m"], harden=False).values()
    assert plistlib.loads(plist.encode())["ProgramArguments"][0] == f"{home}/bin/python"


@pytest.mark.parametrize("name", ["new\nline", "tab\there", "\x1b[2J", "\x7f", "\udcff"])
def test_a_home_that_no_unit_can_hold_is_refused_before_anything_is_written(ground: Ground, name: str) -> None:
    with pytest.raises(UsageError, match="cannot hold"):
        systemd.files_of(ground, a_wish(f"/home/{name}/python"), [ground.home], harden=False)
    with pytest.raises(UsageError, match="cannot hold"):
        render_hardening([Path(f"/home/{name}")])
    assert not (ground.home / ".config").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ExecStart=",
        "ExecStart=\nExecStart=\n",
        'ExecStart="',
        'ExecStart="/usr/bin/env"',
        "Environment=\nEnvironment==\nExecStart=/a",
        "LoadCredential=\nLoadCredential=a\nExecStart=/a",
        "ExecStart=" + "\\" * 9999,
        'ExecStart="' + '\\"' * 9999,
        "ExecStart=%h%h%%%h /x",
        "ExecStart=/\0",
    ],
)
def test_a_forged_unit_never_breaks_whoever_reads_it(ground: Ground, running: Programs, text: str) -> None:
    unit = place_of(ground, "systemd")
    unit.write_text(f"# {MARK}\n{text}\n")
    read_unit(text, ground.home)
    state = systemd.look(ground)
    assert judge(state, systemd.read_installed(ground), ground.home, ground.home)
    assert unit in systemd.uninstall(ground, force=False).removed


def test_a_forged_property_list_makes_uninstall_remove_nothing_elsewhere(ground: Ground, programs: Programs) -> None:
    programs.add("launchctl")
    programs.when("launchctl print *", (113, "", "Could not find service\n"))
    programs.when("launchctl bootout *", (3, "", "Boot-out failed: 3: No such process\n"))
    thesis = ground.home / "thesis.txt"
    thesis.write_text("years of work")
    plist = place_of(ground, "launchd")
    told = {"ProgramArguments": ["/x"], "StandardErrorPath": str(ground.home / "thes"), "StandardOutPath": "*"}
    plist.write_bytes(plistlib.dumps(told).replace(b"<plist", f"<!-- {MARK} -->\n<plist".encode(), 1))
    assert launchd.uninstall(ground, force=False).removed == [plist]
    assert thesis.read_text() == "years of work"


def test_keys_are_all_that_is_removed_whatever_home_is_named(tmp_path: Path) -> None:
    """`credentials` is also a file of other programs, and a folder may hold more than ours."""
    cloud = Home(tmp_path / "cloud")
    cloud.path.mkdir()
    keys_folder(cloud).write_text("somebody's login")
    assert take_away_keys(keys_folder(cloud)) == []
    assert keys_folder(cloud).read_text() == "somebody's login"

    home = Home(tmp_path / "home")
    folder = keys_folder(home)
    (folder / "deeper").mkdir(parents=True)
    (folder / "MAIN_KEY").write_text("k")
    (folder / "not-ours.json").write_text("{}")
    (folder / "LINK").symlink_to(cloud.path)
    assert take_away_keys(folder) == [folder / "MAIN_KEY"]
    assert {each.name for each in folder.iterdir()} == {"deeper", "not-ours.json", "LINK"}

    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    assert take_away_keys(linked) == []


@pytest.mark.parametrize("name", [*ODD_NAMES, "ends with a backslash\\"])
def test_systemd_itself_reads_such_a_unit_without_a_complaint(tmp_path: Path, ground: Ground, name: str) -> None:
    analyze = Path("/usr/bin/systemd-analyze")
    if not analyze.exists():
        pytest.skip("there is no systemd-analyze")
    folder = tmp_path / name
    folder.mkdir()
    python = folder / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o700)
    wish = a_wish(str(python), {"PATH": "/usr/bin", "MEMORYD_HOME": str(folder)}, {})
    (text,) = systemd.files_of(ground, wish, [folder], harden=False).values()
    unit = tmp_path / "memoryd.service"
    unit.write_text(text)
    done = subprocess.run(
        [str(analyze), "--user", "verify", "--recursive-errors=yes", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, ""), shlex.join(done.args)


def test_reading_never_raises_for_what_can_lie_there(tmp_path: Path, theirs: Path) -> None:
    for kind, make in KINDS.items():
        path = tmp_path / kind.replace(" ", "-")
        make(path, theirs)
        assert isinstance(placing.read(path), str | None), kind
        assert not placing.is_ours(path)
    with pytest.raises(MemorydError):
        placing.refuse_foreign(tmp_path, force=True)
