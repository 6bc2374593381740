"""memoryd over a whole boot: it lingers, comes back with the user manager, and its log stands in the journal."""

import json
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import booted
from tests.support.wheel import build_wheel, install_wheel, make_environment

WHY_NOT = booted.why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SCRIPT = """\
set -e
chmod o+x {closed}
useradd --create-home --uid 4321 tester
as_tester() {{
  setpriv --reuid=4321 --regid=4321 --init-groups env -i HOME=/home/tester USER=tester PATH=/usr/bin:/bin "$@"
}}
memoryd() {{ as_tester {python} -P -m memoryd.control.main "$@"; }}
told() {{ echo "== $1"; shift; "$@" 2>&1 || echo "exit $?"; }}
told without memoryd service install
systemctl start user@4321.service
told installed memoryd service install
told before memoryd service status --json
loginctl enable-linger tester
told lingering memoryd service status --json
systemctl restart user@4321.service
for _ in $(seq 600); do
  memoryd_is=$(as_tester XDG_RUNTIME_DIR=/run/user/4321 systemctl --user is-active memoryd.service || true)
  [ "$memoryd_is" = active ] && break
  sleep 0.1
done
told again memoryd service status --json
told logs memoryd service logs
told uninstalled memoryd service uninstall
told left find /home/tester/.config
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memoryd-boot-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def parts_of(output: str) -> dict[str, str]:
    return dict(part.split("\n", 1) for part in output.removeprefix("== ").split("\n== "))


def test_a_lingering_service_comes_back_with_the_user_manager_and_the_journal_keeps_its_log(folder: Path) -> None:
    python = make_environment(folder / "venv")
    install_wheel(python, build_wheel(folder))
    needed = [Path(sys.base_prefix), Path(sysconfig.get_path("purelib"))]
    closed = {str(above) for path in needed for above in path.parents}
    scratch = folder / "boot"
    scratch.mkdir()

    script = SCRIPT.format(python=python, closed=" ".join(sorted(closed)))
    output = booted.boot(script, scratch, [*needed, folder / "venv"])

    assert output.startswith("== without"), output
    told = parts_of(output)
    assert "has no session with systemd" in told["without"]
    assert "enable-linger" in told["without"]
    assert "memoryd runs as a service of systemd" in told["installed"]
    assert "--linger" in told["installed"]
    before, lingering, again = (
        json.loads(told[name].partition("\nexit ")[0]) for name in ("before", "lingering", "again")
    )
    assert [each["linger"] for each in (before, lingering, again)] == [False, True, True]
    assert all(each["running"] for each in (before, lingering, again))
    assert again["pid"] != before["pid"]
    own = [line for line in told["logs"].splitlines() if line.startswith("{")]  # systemd says there what it does, too
    events = [json.loads(line)["event"] for line in own]
    assert events.count("daemon.started") == 2
    assert events.count("daemon.stopped") == 1
    assert "removed /home/tester/.config/systemd/user/memoryd.service" in told["uninstalled"]
    assert "No such file" in told["left"]
