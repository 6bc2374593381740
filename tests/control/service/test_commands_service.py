"""`memoryd service` as a person types it, before a systemctl of the test's own; and what doctor says of it."""

import stat
from pathlib import Path

import pytest

from memoryd.control.main import main
from tests.control.conftest import Said, Shell
from tests.control.service.conftest import Programs, shown

KEY = "sk-typed-0123456789abcdef"
ASKING = """
[extract]
model = "m"

[providers.main]
kind = "openai"
base_url = "http://127.0.0.1:9"
api_key_env = "MAIN_KEY"
"""
NO_BUS = (1, "", "Failed to connect to bus: No medium found\n")


@pytest.fixture
def unit(shell: Shell, programs: Programs, monkeypatch: pytest.MonkeyPatch, bare_environment: Path) -> Path:
    """A systemd that is content, with a provider that needs a key; where the unit will lie."""
    for name in ("systemctl", "journalctl", "loginctl"):
        programs.add(name)
    programs.when("systemctl --user show memoryd.service *", shown())
    programs.when("loginctl show-user *", (0, "Linger=no\n", ""))
    monkeypatch.setenv("PATH", f"{programs.folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shell.folder))
    config = shell.home.config_file
    config.write_text(config.read_text() + 'model = "m"\n' + ASKING)
    return bare_environment / ".config" / "systemd" / "user" / "memoryd.service"


def installed(shell: Shell, monkeypatch: pytest.MonkeyPatch, *options: str) -> Said:
    with monkeypatch.context() as patch:
        patch.setenv("MAIN_KEY", KEY)
        said = shell("service", "install", "--store-keys", *options)
    assert said.code == 0, said
    return said


def test_install_tells_what_it_wrote_and_what_is_to_know_and_shows_no_key(
    shell: Shell, unit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_LOG__LEVEL", "debug")
    said = installed(shell, monkeypatch)
    key_file = shell.home.path / "credentials" / "MAIN_KEY"
    assert "memoryd runs as a service of systemd, pid 4711: watching" in said.out
    assert [line.strip() for line in said.out.splitlines() if "wrote" in line] == [f"wrote {key_file}", f"wrote {unit}"]
    assert "MEMORYD_LOG__LEVEL" in said.out
    assert "--linger" in said.out
    assert "memoryd service logs -f" in said.out
    assert key_file.read_text() == KEY
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert KEY not in unit.read_text() + said.out + said.err
    assert f"LoadCredential=MAIN_KEY:{key_file}" in unit.read_text()

    monkeypatch.delenv("MEMORYD_LOG__LEVEL")
    before = unit.read_text()
    assert main(["service", "install", "--json"]) == 0, "neither the home nor the key need be said again"
    assert unit.read_text() == before


def test_a_dry_run_prints_the_files_and_writes_nothing_without_any_systemd_too(
    shell: Shell, unit: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.when("systemctl *", NO_BUS)
    monkeypatch.setenv("MAIN_KEY", KEY)
    said = shell("service", "install", "--dry-run", "--store-keys", "--harden")
    assert said.code == 0
    assert f"# {unit}" in said.out
    assert "PrivateUsers=yes" in said.out
    assert KEY not in said.out
    assert list(shell("service", "install", "--dry-run", "--store-keys", "--json").json["files"]) == [str(unit)]
    assert not unit.parent.exists()
    assert not (shell.home.path / "credentials").exists()


@pytest.mark.parametrize(
    ("key", "code", "words"), [(None, 2, "a variable that a service does not see"), (KEY, 1, "memoryd run")]
)
def test_what_cannot_be_installed_leaves_nothing_behind(
    shell: Shell,
    unit: Path,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    code: int,
    words: str,
) -> None:
    (programs.folder / "systemctl").unlink()
    monkeypatch.setenv("PATH", str(programs.folder))
    if key:
        monkeypatch.setenv("MAIN_KEY", key)
    said = shell("service", "install", "--store-keys")
    assert said.code == code
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not unit.parent.exists()
    assert not (shell.home.path / "credentials").exists()


def test_lingering_is_enabled_when_asked_for_and_a_refusal_says_who_can(
    shell: Shell, unit: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(shell, monkeypatch, "--linger")
    assert any(call.startswith("loginctl enable-linger ") for call in programs.calls)
    programs.when("loginctl enable-linger *", (1, "", "Could not enable linger: Access denied\n"))
    said = installed(shell, monkeypatch, "--linger")
    assert "Access denied (sudo loginctl enable-linger" in said.out


def test_the_end_of_the_log_comes_before_the_error_when_it_does_not_start(
    shell: Shell, unit: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(shell, monkeypatch)
    programs.when("systemctl --user restart *", (1, "", "Job failed\n"))
    failed = shown(ActiveState="failed", Result="exit-code", ExecMainCode=1, ExecMainStatus=78)
    programs.when("systemctl --user show memoryd.service *", failed)
    programs.when("journalctl *", (0, '{"schema": 1}\nmemoryd: a wrong key\n', ""))
    said = shell("service", "restart")
    assert said.code == 1
    assert said.err.splitlines()[:2] == ['  {"schema": 1}', "  memoryd: a wrong key"]
    assert "exit 78: its settings are wrong" in said.err.splitlines()[2]
    assert shell("service", "status").code == 1


def test_uninstall_takes_the_keys_along_and_says_where_the_memory_is(
    shell: Shell, unit: Path, monkeypatch: pytest.MonkeyPatch, bare_environment: Path
) -> None:
    installed(shell, monkeypatch)
    said = shell("service", "uninstall")
    assert said.code == 0
    assert f"removed {unit}" in said.out
    assert f"the memory is still there: {shell.home.path}" in said.out
    assert not (shell.home.path / "credentials").exists()
    assert list(bare_environment.iterdir()) == []
    assert shell("service", "uninstall", "--json").json == {"removed": [], "notes": []}


def test_without_a_service_status_says_so_and_there_is_nothing_to_restart(
    shell: Shell, unit: Path, programs: Programs
) -> None:
    programs.when(
        "systemctl --user show memoryd.service *", shown(LoadState="not-found", ActiveState="inactive", MainPID=0)
    )
    status = shell("service", "status", "--json")
    assert (status.code, status.json["installed"], status.json["running"]) == (1, False, False)
    assert "no service is installed" in shell("service", "status").out
    restart = shell("service", "restart")
    assert (restart.code, "memoryd service install" in restart.err) == (1, True)
    by_id = {each["id"]: each for each in shell("doctor", "--offline", "--json").json}
    assert by_id["service"]["severity"] == "ok"


def test_an_interpreter_that_is_gone_is_told_by_status_restart_and_doctor(
    shell: Shell, unit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(shell, monkeypatch)
    unit.write_text(unit.read_text().replace("ExecStart=", 'ExecStart="/there/is/no/python" '))
    status = shell("service", "status")
    assert status.code == 1
    assert "the interpreter that" in status.out
    assert "memoryd service install" in status.out
    assert "/there/is/no/python" in shell("service", "restart").err
    by_id = {each["id"]: each for each in shell("doctor", "--offline", "--json").json}
    assert by_id["service_interpreter"]["remedy"] == "memoryd service install"


def test_where_no_service_manager_runs_there_is_no_log_and_that_is_said(
    shell: Shell, unit: Path, programs: Programs
) -> None:
    programs.when("systemctl *", (1, "", "Failed to connect to bus: No medium found\n"))
    said = shell("service", "logs")
    assert said.code == 1
    assert "memoryd run" in said.err
    assert not any(call.startswith("journalctl") for call in programs.calls)
    assert "does not run" not in shell("service", "status").out


def test_logs_are_shown_by_the_journals_own_program(shell: Shell, unit: Path, programs: Programs) -> None:
    assert shell("service", "logs", "-n", "7").code == 0
    assert programs.calls[-1] == "journalctl --user --unit=memoryd.service --lines=7 --output=cat --no-pager"
    shell("service", "logs", "--follow")
    assert programs.calls[-1].endswith("--follow")
    programs.when("journalctl *", (1, "", "No journal files were found.\n"))
    assert shell("service", "logs").code == 1
