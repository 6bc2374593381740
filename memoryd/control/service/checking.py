"""What `doctor` and `service status` find wrong with the service: a pure decider over one look at it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memoryd.control.checked import Checked
from memoryd.control.service.ground import Wish
from memoryd.control.service.state import State

INSTALL: Final = "memoryd service install"


def judge(state: State, installed: Wish | None, home: Path, usual_home: Path) -> list[Checked]:
    """Return what there is to say of the service, at least one finding. `home` is the one that is looked at."""
    if not state.is_installed:
        return [
            Checked(
                "service",
                "ok",
                f"no service is installed: memoryd runs while `memoryd run` does; `{INSTALL}` installs it",
            )
        ]
    serves = Path(state.home) if state.home else usual_home
    if serves != home:
        return [Checked("service", "ok", f"the service is for another home, {serves}")]
    found = [*_of_interpreter(state), *_of_keys(installed), *_of_run(state), *_of_linger(state)]
    named = f"the service runs (pid {state.pid}, {state.manager})"
    return found or [Checked("service", "ok", named + (", hardened" if state.is_hardened else ""))]


def _of_interpreter(state: State) -> Iterator[Checked]:
    if state.is_interpreter_gone:
        yield Checked(
            "service_interpreter",
            "error",
            f"the interpreter that {state.file} names is gone: {state.interpreter}; the service cannot start again",
            INSTALL,
        )


def _of_keys(installed: Wish | None) -> Iterator[Checked]:
    for name, path in installed.credentials.items() if installed else ():
        if not path.is_file():
            yield Checked("service_key", "error", f"the key file of {name}, {path}, is gone", f"{INSTALL} --store-keys")
        elif path.stat().st_mode & 0o077:
            yield Checked("service_key", "error", f"the key file of {name} can be read by others", f"chmod 600 {path}")


def _of_run(state: State) -> Iterator[Checked]:
    if state.activity == "unknown":
        yield Checked(
            "service_manager", "warning", f"{state.manager} does not answer, so nobody knows whether it runs", INSTALL
        )
    elif not state.is_running:
        yield Checked(
            "service_stopped",
            "error",
            f"the service is installed and does not run: {state.activity}; {state.how_it_ended}",
            "`memoryd service logs` says why, `memoryd service restart` tries again",
        )
    elif state.is_enabled is False:
        yield Checked(
            "service_disabled", "warning", "the service runs, and will not start with your next session", INSTALL
        )


def _of_linger(state: State) -> Iterator[Checked]:
    if state.is_running and state.linger is False:
        yield Checked(
            "service_linger",
            "ok",
            f"the service runs (pid {state.pid}, {state.manager}), and stops when you log out:"
            f" `{INSTALL} --linger` lets it go on",
        )
