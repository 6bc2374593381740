"""What the checks of `doctor` look at."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.clock import Clock
from memoryd.config import Settings, Stage
from memoryd.control.checked import Checked
from memoryd.control.connecting.selftest import Given
from memoryd.daemon.probing import Probe
from memoryd.workspace.layout import Home


@dataclass(frozen=True, slots=True)
class Patient:
    """What checks look at. `ask` sends the smallest real request of a stage; None: nothing may be sent.

    `given` says what an agent's session that starts in `cwd` should be given. `proc` is where the system tells its
    limits.
    """

    settings: Settings
    environ: Mapping[str, str]
    clock: Clock
    ask: Callable[[Stage], Awaitable[Probe]] | None
    cwd: Path
    given: Given
    proc: Path = Path("/proc")

    @property
    def home(self) -> Home:
        """Where everything lies."""
        return Home(self.settings.home)


Check = Callable[[Patient], Awaitable[list[Checked]]]
