"""What keeps a program from writing where it should not: the best that this machine has, found out once by trying.

Best first: a unit of the user's systemd, bubblewrap, Landlock, nothing. The file system is read-only but for the run's
own folders; the first two also show an empty MEMORYD_HOME. The network stays open: the program has to reach its
provider. Sources of the options: systemd.exec(5), systemd.resource-control(5), bwrap(1).
"""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from memoryd.llm.command import landlock
from memoryd.llm.command.process import Launch, run

PROBE_SECONDS: Final = 10.0
PROBE: Final = (
    'read -r asked && [ "$asked" = probe ] && echo x > "$1/inside" && if (echo x > "$2/outside") 2>/dev/null;'
    " then exit 9; fi"
)
MEMORY_MAX: Final = "4G"
TASKS_MAX: Final = "512"
BUS_VARIABLES: Final = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
SPARE_SECONDS: Final = 30
"""The unit's own time limit is the last resort: it comes this long after the one that is watched here."""


class Mechanism(StrEnum):
    """What confines, best first."""

    SYSTEMD = "systemd"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may write, and what it should not see (MEMORYD_HOME, but for what lies in `writable`)."""

    writable: tuple[Path, ...]
    hidden: Path
    seconds: float


@dataclass(frozen=True, slots=True)
class Tools:
    """Where the programs that confine are, empty when they are not there, and how to reach the user's systemd."""

    systemd_run: str = ""
    systemctl: str = ""
    bwrap: str = ""
    bus: tuple[tuple[str, str], ...] = ()

    @classmethod
    def found_in(cls, environ: Mapping[str, str]) -> "Tools":
        """Look for them on PATH."""
        path = environ.get("PATH", "")
        found = {name: shutil.which(name, path=path) or "" for name in ("systemd-run", "systemctl", "bwrap")}
        bus = tuple((name, environ[name]) for name in BUS_VARIABLES if environ.get(name))
        return cls(found["systemd-run"], found["systemctl"], found["bwrap"], bus)


class Confiner:
    """Finds out at the first run what works here, and remembers. `note` is told what was found."""

    def __init__(
        self,
        tools: Tools,
        *,
        note: Callable[[Mechanism], Awaitable[None]],
        allowed: tuple[Mechanism, ...] = tuple(Mechanism),
    ) -> None:
        self._tools = tools
        self._note = note
        self._allowed = allowed
        self._found: Mechanism | None = None
        self._looking = asyncio.Lock()

    async def mechanism(self, scratch: Path, hidden: Path) -> Mechanism:
        """Return what confines here; `scratch` is an existing folder below `hidden` in which to try."""
        async with self._looking:
            if self._found is None:
                await self.remember(await self._find(scratch, hidden))
                assert self._found is not None
            return self._found

    async def remember(self, mechanism: Mechanism) -> None:
        """Take a mechanism as the best there is, and tell so."""
        self._found = mechanism
        await self._note(mechanism)

    def confined(self, mechanism: Mechanism, launch: Launch, bounds: Bounds) -> Launch:
        """Return the launch with its confinement around it."""
        return confined(mechanism, launch, bounds, self._tools)

    async def _find(self, scratch: Path, hidden: Path) -> Mechanism:
        for mechanism in self._allowed:
            if mechanism is Mechanism.NONE:
                break
            if is_at_hand(mechanism, self._tools) and await holds(mechanism, self._tools, scratch, hidden):
                return mechanism
        return Mechanism.NONE


def is_at_hand(mechanism: Mechanism, tools: Tools) -> bool:
    """Say whether a mechanism could work here at all."""
    match mechanism:
        case Mechanism.SYSTEMD:
            return bool(tools.systemd_run and tools.systemctl and tools.bus)
        case Mechanism.BUBBLEWRAP:
            return bool(tools.bwrap)
        case Mechanism.LANDLOCK:
            return landlock.version() > 0
        case Mechanism.NONE:
            return True


async def holds(mechanism: Mechanism, tools: Tools, scratch: Path, hidden: Path) -> bool:
    """Try it: a program must read its input and write inside its folder, and not beside it."""
    inside, outside = (Path(tempfile.mkdtemp(dir=scratch)) for _ in range(2))
    bounds = Bounds((inside,), hidden, PROBE_SECONDS)
    probe = Launch(("/bin/sh", "-c", PROBE, "sh", str(inside), str(outside)), {}, inside, scratch)
    ended = await run(confined(mechanism, probe, bounds, tools), b"probe\n", seconds=PROBE_SECONDS)
    return ended.code == 0 and (inside / "inside").exists() and not (outside / "outside").exists()


def confined(mechanism: Mechanism, launch: Launch, bounds: Bounds, tools: Tools) -> Launch:
    """Return the launch with a mechanism around it. Pure but for a new name of a unit; all paths must be real ones."""
    match mechanism:
        case Mechanism.SYSTEMD:
            unit = f"memoryd-command-{secrets.token_hex(8)}.service"
            return replace(
                launch,
                argv=_systemd(launch, bounds, tools, unit),
                environ={**launch.environ, **dict(tools.bus)},
                stop=("/usr/bin/env", "-i", *_assignments(tools.bus), tools.systemctl, "--user", "stop", unit),
            )
        case Mechanism.BUBBLEWRAP:
            return replace(launch, argv=_bubblewrap(launch, bounds, tools))
        case Mechanism.LANDLOCK:
            return replace(launch, writable=bounds.writable)
        case Mechanism.NONE:
            return launch


def _systemd(launch: Launch, bounds: Bounds, tools: Tools, unit: str) -> tuple[str, ...]:
    """Values of variables are not written here, where `ps` would show them: systemd-run takes them over by name."""
    writable = " ".join(_quoted(path) for path in bounds.writable)
    properties = (
        f"RuntimeMaxSec={int(bounds.seconds) + SPARE_SECONDS}",
        f"MemoryMax={MEMORY_MAX}",
        f"TasksMax={TASKS_MAX}",
        "PrivateUsers=yes",
        "ProtectSystem=strict",
        "ProtectHome=read-only",  # /home, /root and /run/user are left out of the line above
        f"TemporaryFileSystem={_quoted(bounds.hidden)}:ro",
        f"BindPaths={writable}",
        f"ReadWritePaths={writable}",
        "NoNewPrivileges=yes",
        "KillMode=control-group",
        "KillSignal=SIGKILL",
        "LimitCORE=0",
        "UMask=0077",
        f"WorkingDirectory={launch.cwd}",
    )
    options = [word for each in properties for word in ("-p", each)]
    variables = [word for name in launch.environ for word in ("-E", name)]
    return (
        *(tools.systemd_run, "--user", "--wait", "--pipe", "--collect", "--quiet", f"--unit={unit}"),
        *options,
        *variables,
        "--",
        *launch.argv,
    )


def _bubblewrap(launch: Launch, bounds: Bounds, tools: Tools) -> tuple[str, ...]:
    binds = [word for path in bounds.writable for word in ("--bind", str(path), str(path))]
    return (
        *(tools.bwrap, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", str(bounds.hidden)),
        *binds,
        *("--remount-ro", str(bounds.hidden), "--chdir", str(launch.cwd), "--"),
        *launch.argv,
    )


def _assignments(pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in pairs)


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace(":", "\\:")
    return f'"{escaped}"'
