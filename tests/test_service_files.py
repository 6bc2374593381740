"""The service files that are shipped: key by key, and as systemd itself reads them."""

import configparser
import os
import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
UNIT = REPOSITORY / "systemd" / "memoryd.service"
AGENT = REPOSITORY / "launchd" / "dev.memoryd.plist"

IGNORED_IN_USER_UNITS = {"ProtectSystem", "ProtectHome", "PrivateTmp", "ReadWritePaths", "StateDirectory", "IOWeight"}
BREAKS_AGENTS = {"MemoryDenyWriteExecute", "SystemCallFilter", "RestrictNamespaces", "PrivateUsers"}


def unit() -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # the documented way to keep the case of keys
    parser.read_string(UNIT.read_text())
    return {name: dict(parser[name]) for name in parser.sections()}


def seconds(written: str) -> int:
    return int(written.removesuffix("s"))


def agent() -> dict[str, object]:
    loaded = plistlib.loads(AGENT.read_bytes())
    assert isinstance(loaded, dict)
    return loaded


def test_the_unit_is_this_one_key_by_key() -> None:
    told = unit()
    assert list(told) == ["Unit", "Service", "Install"]
    assert told["Unit"] == {
        "Description": "memoryd, a memory for coding agents",
        "StartLimitIntervalSec": "300",
        "StartLimitBurst": "5",
    }
    assert told["Service"] == {
        "Type": "notify",
        "NotifyAccess": "main",
        "ExecStart": '"%h/.local/bin/memoryd" run',
        "ExecReload": "/bin/kill -HUP $MAINPID",
        "WatchdogSec": "60s",
        "TimeoutStartSec": "90s",
        "TimeoutStopSec": "60s",
        "KillMode": "mixed",
        "Restart": "on-failure",
        "RestartSec": "10s",
        "RestartPreventExitStatus": "78",
        "UMask": "0077",
        "Nice": "10",
        "CPUSchedulingPolicy": "batch",
        "IOSchedulingClass": "idle",
        "MemoryHigh": "1G",
        "MemoryMax": "2G",
        "TasksMax": "256",
        "NoNewPrivileges": "yes",
        "LockPersonality": "yes",
        "RestrictRealtime": "yes",
        "RestrictSUIDSGID": "yes",
        "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    }
    assert told["Install"] == {"WantedBy": "default.target"}


def test_the_limit_on_starts_can_be_reached() -> None:
    told = unit()
    burst, interval = int(told["Unit"]["StartLimitBurst"]), int(told["Unit"]["StartLimitIntervalSec"])
    assert interval > burst * seconds(told["Service"]["RestartSec"])


def test_the_unit_promises_nothing_that_user_units_ignore_and_breaks_no_agent() -> None:
    assert set(unit()["Service"]) & (IGNORED_IN_USER_UNITS | BREAKS_AGENTS) == set()
    assert "network-online.target" not in UNIT.read_text()


def test_systemd_reads_the_unit_without_a_complaint(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze on this machine")
    program = tmp_path / "memoryd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("%h/.local/bin/memoryd", str(program)))
    asked = subprocess.run(
        [analyze, "--user", "verify", "--recursive-errors=yes", str(copy)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "recursive-errors" in asked.stderr:
        pytest.skip("this systemd-analyze is older than 250 and does not report misspelt keys")
    assert (asked.returncode, asked.stderr) == (0, "")


def test_the_launch_agent_is_this_one_key_by_key() -> None:
    assert agent() == {
        "Label": "dev.memoryd",
        "ProgramArguments": ["/Users/USER/.local/bin/memoryd", "run"],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "ThrottleInterval": 30,
        "ExitTimeOut": 45,
        "Umask": 0o077,
        "Nice": 10,
        "LowPriorityIO": True,
        "StandardOutPath": "/Users/USER/.memoryd/daemon.log",
        "StandardErrorPath": "/Users/USER/.memoryd/daemon.log",
    }


def test_the_launch_agents_label_is_its_files_name_and_its_program_absolute() -> None:
    arguments = agent()["ProgramArguments"]
    assert isinstance(arguments, list)
    assert agent()["Label"] == AGENT.stem
    assert Path(str(arguments[0])).is_absolute()


@pytest.mark.parametrize("file", [UNIT, AGENT], ids=["systemd", "launchd"])
def test_a_service_file_which_all_can_read_holds_no_environment(file: Path) -> None:
    assert re.search(r"(?i)api_?key|token|^Environment|EnvironmentVariables", file.read_text()) is None
