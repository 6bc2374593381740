"""memoryd as a service under a real `systemd --user` with a real journal, installed from a wheel in a fresh home."""

import json
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import user_systemd
from tests.support.growing import a_session_of_now
from tests.support.model_replies import Hang
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Finished, Place, wait_until
from tests.support.user_systemd import UserSystemd
from tests.support.wheel import build_wheel, install_wheel, make_environment, share_packages

UNIT = "memoryd.service"
KEY = "sk-service-0123456789abcdef"
FAST = "[Service]\nRestartSec=100ms\n"

WHY_NOT = user_systemd.why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@dataclass(frozen=True)
class Service:
    """One user's systemd, with memoryd in an environment beside their home."""

    user: UserSystemd
    place: Place
    python: Path

    @property
    def unit(self) -> Path:
        return self.user.home / ".config" / "systemd" / "user" / UNIT

    def memoryd(self, *words: str, python: Path | None = None, **variables: str) -> Finished:
        """Run a command of memoryd as the user."""
        return self.user.run(str(python or self.python), "-P", "-m", "memoryd.control.main", *words, **variables)

    def install(self, *options: str, **variables: str) -> Finished:
        """Install the service for the home of the place; the settings must have been written."""
        self.user.own()
        done = self.memoryd("service", "install", "--home", str(self.place.home), *options, python=None, **variables)
        assert done.code == 0, done
        return done

    def state(self) -> Any:
        return json.loads(self.memoryd("service", "status", "--json").stdout)

    def drop_in(self, text: str, name: str = "90-test.conf") -> Path:
        """Change the service as a person does."""
        folder = self.unit.with_name(f"{UNIT}.d")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        self.user.own()
        self.user.systemctl("daemon-reload")
        return folder / name

    def events(self, name: str) -> list[dict[str, Any]]:
        told = [json.loads(line) for line in self.user.journal(UNIT) if line.startswith('{"schema"')]
        return [event for event in told if event["event"] == name]

    def wait_for_event(self, name: str, count: int = 1) -> dict[str, Any]:
        wait_until(lambda: len(self.events(name)) >= count, f"{count} events {name}")
        return self.events(name)[count - 1]

    def signal(self, name: str) -> None:
        self.user.systemctl("kill", "--kill-whom=main", f"--signal={name}", UNIT)

    def wait_for_beat(self) -> None:
        """Wait until it has told systemd once more that it is alive."""
        last = self.user.told(UNIT, "WatchdogTimestampMonotonic")
        wait_until(lambda: self.user.told(UNIT, "WatchdogTimestampMonotonic") != last, "a beat")

    def wait_for_restart(self, count: int) -> None:
        """Wait until it was started again so many times by systemd and is ready."""
        self.user.wait_for(UNIT, "NRestarts", str(count))
        self.user.wait_for(UNIT, "ActiveState", "active")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel in it, where every user can reach it; its interpreter."""
    folder = Path(tempfile.mkdtemp(prefix="memoryd-wheel-"))
    folder.chmod(0o755)
    try:
        python = make_environment(folder / "venv")
        install_wheel(python, build_wheel(tmp_path_factory.mktemp("wheel")))
        yield python
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def service(environment: Path) -> Iterator[Service]:
    folder = Path(tempfile.mkdtemp(prefix="memoryd-service-"))
    try:
        place = Place(folder)
        place.codex.mkdir()
        place.configure(discover__min_idle="1s", discover__scan_interval="1s")
        with UserSystemd(folder) as user:
            yield Service(user, place, environment)
    finally:
        shutil.rmtree(folder)


def test_installed_it_is_ready_learns_with_its_own_key_tells_json_and_leaves_nothing_but_the_memory(
    service: Service,
) -> None:
    user, place = service.user, service.place
    before = sorted(user.home.rglob("*"))
    with ModelServer(api_key=KEY) as server:
        place.configure(base_url=server.base_url, key=KEY, discover__min_idle="1s", discover__scan_interval="1s")
        done = service.install("--store-keys", SCRIPTED_API_KEY=KEY)
        assert f"wrote {service.unit}" in done.stdout
        assert "watching for idle sessions" in done.stdout
        a_session_of_now(place.codex, "Always run the linter before you commit.")
        service.wait_for_event("consolidation.published")
        assert "run the linter" in (place.memories / "MEMORY.md").read_text()

    configured = (place.home / "config.toml").read_text()
    place.write_config(configured + '\n[log]\nlevel = "debug"\n')
    assert user.systemctl("reload", UNIT).code == 0
    service.wait_for_event("settings.reloaded")
    user.wait_for(UNIT, "ActiveState", "active")

    key_file = place.home / "credentials" / "SCRIPTED_API_KEY"
    text = service.unit.read_text()
    assert KEY not in text + done.stdout + done.stderr
    assert f'Environment="MEMORYD_HOME={place.home}"' in text
    assert f"LoadCredential=SCRIPTED_API_KEY:{key_file}" in text
    assert [stat.S_IMODE(path.stat().st_mode) for path in (service.unit, key_file)] == [0o644, 0o600]
    assert [line for line in user.journal(UNIT) if json.loads(line)["schema"] != 1] == []
    assert service.memoryd("service", "logs", "--lines", "1").stdout.startswith('{"schema"')

    again = service.install()
    assert f"{service.unit} is as it was" in again.stdout

    gone = service.memoryd("service", "uninstall")
    assert gone.code == 0, gone
    assert f"removed {key_file}" in gone.stdout
    assert sorted(user.home.rglob("*")) == before
    assert user.told(UNIT, "LoadState") == "not-found"
    assert user.told(UNIT, "ActiveState") == "inactive"
    assert not (place.home / "credentials").exists()
    assert (place.memories / "MEMORY.md").exists()


def test_a_hung_daemon_is_ended_by_the_watchdog_and_a_killed_one_comes_back_until_the_limit_of_starts(
    service: Service,
) -> None:
    ends = service.place.folder / "ends"
    noted = f"ExecStopPost=/bin/sh -c 'echo $SERVICE_RESULT >> {ends}'\n"
    service.drop_in(f"{FAST}WatchdogSec=5s\n{noted}[Unit]\nStartLimitBurst=4\n")
    service.install()
    service.wait_for_beat()
    assert service.user.told(UNIT, "NRestarts") == "0", "it keeps systemd content while it lives"
    service.signal("STOP")
    service.wait_for_restart(1)
    assert ends.read_text() == "watchdog\n"

    service.signal("KILL")
    service.wait_for_restart(2)
    service.wait_for_event("daemon.started", 3)
    for count in (3, 4):
        service.signal("KILL")
        service.user.wait_for(UNIT, "NRestarts", str(count))
        wait_until(lambda: service.user.told(UNIT, "ActiveState") in {"active", "failed"}, "its start or its end")
    service.user.wait_for(UNIT, "ActiveState", "failed")

    status = service.memoryd("service", "status")
    assert status.code == 1
    assert "started too often" in status.stdout
    assert service.memoryd("service", "restart").code == 0, "a person may always try again"


def test_wrong_settings_end_it_with_78_and_it_is_not_started_again(service: Service) -> None:
    service.drop_in(FAST)
    service.install()
    good = (service.place.home / "config.toml").read_text()
    service.place.write_config("[extract]\nmodle = 1\n")

    failed = service.memoryd("service", "restart")

    assert failed.code == 1
    assert "exit 78" in failed.complaint
    assert "unknown key extract.modle" in failed.stderr, "the end of its log is shown"
    assert service.user.told(UNIT, "ActiveState") == "failed"
    assert service.user.told(UNIT, "NRestarts") == "0"
    service.place.write_config(good)
    assert service.memoryd("service", "restart").code == 0


def test_it_stops_within_its_grace_while_a_model_hangs_and_gives_the_job_back(service: Service) -> None:
    with ModelServer() as server:
        server.then(Hang())
        service.place.configure(base_url=server.base_url, discover__min_idle="1s", discover__scan_interval="1s")
        service.install()
        a_session_of_now(service.place.codex, "Never deploy the shop on a Friday.")
        wait_until(lambda: bool(server.requests), "the model to be asked")
        stopped = service.user.systemctl("stop", UNIT)

    assert stopped.code == 0
    assert service.user.told(UNIT, "Result") == "success", "it ended by itself: systemd did not kill it"
    assert service.events("job.released")
    assert service.place.query("SELECT status FROM jobs WHERE kind = ?", STAGE1_KIND) == [("pending",)]


def test_after_an_upgrade_the_interpreter_is_gone_and_one_install_brings_the_new_one_and_nothing_else(
    service: Service,
) -> None:
    folder = service.place.folder
    old = make_environment(folder / "old")
    share_packages(old, service.python)
    new = make_environment(folder / """new $HOME ${HOME} %h 'it"s\\x""")
    share_packages(new, service.python)
    service.user.own()
    first = service.memoryd(
        "service", "install", "--home", str(service.place.home), python=old, CODEX_HOME=str(service.place.codex)
    )
    assert first.code == 0, first
    kept = service.drop_in("[Service]\nNice=11\n")
    before = service.unit.read_text()
    pid = service.user.told(UNIT, "MainPID")
    shutil.rmtree(folder / "old")

    found = {each["id"]: each for each in service.state()["findings"]}
    assert found["service_interpreter"]["remedy"] == "memoryd service install"
    assert "interpreter" in service.memoryd("service", "restart").complaint

    upgraded = service.memoryd("service", "install", python=new)
    assert upgraded.code == 0, upgraded
    after = service.unit.read_text()
    assert re.sub("(?m)^ExecStart=.*", "", after) == re.sub("(?m)^ExecStart=.*", "", before)
    assert kept.exists()
    state = json.loads(service.memoryd("service", "status", "--json", python=new).stdout)
    assert (state["running"], state["home"], state["interpreter"]) == (True, str(service.place.home), str(new))
    assert state["pid"] != int(pid)
    assert [each["severity"] for each in state["findings"]] == ["ok"]


def test_hardened_it_writes_to_its_own_folder_alone(service: Service) -> None:
    home = service.place.folder / """ho me $HOME %h 'it"s"""
    home.mkdir()
    service.user.own()
    done = service.memoryd("service", "install", "--harden", "--home", str(home))
    assert done.code == 0, done
    pid = service.user.told(UNIT, "MainPID")
    assert "Read-only file system" in service.user.refuses(pid, "touch", "/var/log/x"), "a folder of this test's own"
    assert service.user.refuses(pid, "touch", str(home / "x")) == ""
    assert (home / "ledger.sqlite3").exists()
    assert "50-hardening.conf" in service.user.told(UNIT, "DropInPaths")
    assert service.memoryd("service", "install", "--no-harden").code == 0
    assert service.user.told(UNIT, "DropInPaths") == ""


def test_hardening_that_the_machine_refuses_is_taken_back_and_the_service_runs_without(service: Service) -> None:
    # Of no effect without PrivateUsers, and fatal with it: systemd cannot set up the mounts.
    service.drop_in("[Service]\nReadWritePaths=/there/is/nothing/here\n")
    done = service.install("--harden", "--json")
    assert "exit 226, NAMESPACE" in done.json["notes"][0]
    assert (done.json["running"], done.json["hardened"]) == (True, False)
    assert [path.name for path in service.unit.with_name(f"{UNIT}.d").iterdir()] == ["90-test.conf"]


def test_beside_a_daemon_in_the_foreground_it_waits_and_takes_over(service: Service) -> None:
    service.user.own()
    foreground = "foreground.service"
    command = [str(service.python), "-P", "-m", "memoryd.control.main", "run", "--home", str(service.place.home)]
    service.user.run("systemd-run", "--user", f"--unit={foreground}", *command)
    wait_until((service.place.home / "memoryd.sock").exists, "the daemon in the foreground")
    done = service.install()
    assert re.search(r"waiting for pid \d+", done.stdout)
    service.user.systemctl("stop", foreground)
    service.wait_for_event("daemon.started")
    wait_until(lambda: service.user.told(UNIT, "StatusText") != "", "its status")
