"""How the service stands: values that `service status` prints, that an install is judged by and that doctor reads."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CONFIGURATION: Final = 78
GAVE_UP: Final = "; it was started too often within five minutes, and is left alone now"
MEANING: Final = {
    CONFIGURATION: "its settings are wrong: `memoryd config check` says what",
    203: "its interpreter cannot be started",
    217: "systemd could not set up its user namespace",
    218: "systemd could not set up its capabilities",
    226: "systemd could not set up its name spaces",
    243: "systemd could not read its credentials",
}
"""What exit codes mean: ours, and those of systemd.exec(5) that happen here."""
RESULTS: Final = {
    "success": "it was stopped",
    "start-limit-hit": "it could not be started",
    "watchdog": "it hung, and was ended",
    "timeout": "it did not start or stop in time",
    "signal": "it was killed",
    "core-dump": "it crashed",
    "oom-kill": "it was ended for want of memory",
}
"""What systemd's results mean that are no exit code (systemd.service(5))."""


@dataclass(frozen=True, slots=True)
class State:
    """One look at the service. `manager` is systemd or launchd; None: it did not say.

    `activity` is the manager's own word (active, failed, running, ...); `said` is what the daemon reports;
    `has_given_up`: the limit of starts was reached.
    """

    manager: str
    file: Path
    is_installed: bool
    is_running: bool = False
    activity: str = "inactive"
    pid: int | None = None
    said: str = ""
    is_enabled: bool | None = None
    exit_status: int | None = None
    result: str = ""
    restarts: int | None = None
    has_given_up: bool = False
    linger: bool | None = None
    is_hardened: bool = False
    interpreter: Path | None = None
    home: str | None = None
    drop_ins: tuple[str, ...] = field(default=())

    @property
    def is_interpreter_gone(self) -> bool:
        """Tell whether the service names an interpreter that is no longer there: it cannot start again."""
        try:
            return self.interpreter is not None and not self.interpreter.exists()
        except (OSError, ValueError):  # no path that anything could have
            return True

    @property
    def how_it_ended(self) -> str:
        """Say how its last run ended, as far as that is known."""
        return self._last_end + (GAVE_UP if self.has_given_up else "")

    @property
    def _last_end(self) -> str:
        if self.exit_status is None or self.result in RESULTS:
            return RESULTS.get(self.result) or self.result or self.activity
        meaning = MEANING.get(self.exit_status)
        return f"exit {self.exit_status}: {meaning}" if meaning else f"exit {self.exit_status} ({self.result})"

    def as_json(self) -> dict[str, object]:
        """Return it as data."""
        return {
            "manager": self.manager,
            "file": str(self.file),
            "installed": self.is_installed,
            "running": self.is_running,
            "activity": self.activity,
            "pid": self.pid,
            "status": self.said,
            "enabled": self.is_enabled,
            "exit_status": self.exit_status,
            "result": self.result,
            "restarts": self.restarts,
            "linger": self.linger,
            "gave_up": self.has_given_up,
            "hardened": self.is_hardened,
            "interpreter": str(self.interpreter) if self.interpreter else None,
            "interpreter_exists": None if self.interpreter is None else not self.is_interpreter_gone,
            "home": self.home,
            "drop_ins": list(self.drop_ins),
        }
