"""`memoryd demo`: the whole pipeline in a throw-away home, with the offline writer: no key, no network.

On the bundled sessions, or with --mine on the person's own; nothing leaves the machine, and nothing is written outside
the throw-away home. It is `sync` on other settings: one code path.
"""

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memoryd import config, logs
from memoryd.clock import Clock, SystemClock
from memoryd.config import Settings
from memoryd.control.commands.sync import summary_lines
from memoryd.control.console import print_json, progress_reporter
from memoryd.control.demo_sessions.install import install
from memoryd.daemon.house import open_house
from memoryd.daemon.passes import as_json, run_pass
from memoryd.daemon.progress import Progress
from memoryd.errors import UsageError
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE, Home, prepare

PREFIX = "memoryd-demo-"


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `demo`."""
    parser.add_argument(
        "--mine", action="store_true", help="use your own recorded sessions; nothing leaves the machine"
    )
    parser.add_argument("--keep", action="store_true", help="keep the throw-away home, and say where it is")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Run it. Exit 0 when the folder was accepted."""
    environ = config.environ()
    logs.configure("auto", "warning")
    with _throw_away(args.home, keep=args.keep) as home:
        clock = SystemClock()
        settings = demo_settings(home, environ, mine=args.mine, now=clock.now())
        if not args.json:
            print(_greeting(settings, environ, mine=args.mine))
        with progress_reporter() as progress:
            result = asyncio.run(remember(settings, environ, clock, progress))
        if args.json:
            print_json(result | {"home": str(home), "kept": args.keep, "summary": _read(home, SUMMARY_FILE)})
        else:
            print("\n".join(_story(home, result, keep=args.keep)))
    return int(str(result["exit_code"]))


def demo_settings(home: Path, environ: Mapping[str, str], *, mine: bool, now: float) -> Settings:
    """Make the settings of a demo: the offline writer on the bundled sessions (installed into the home) or one's own.

    Neither the person's config.toml nor MEMORYD_* variables have a say: a demo sends nothing, whatever they name.
    """
    clean = {name: value for name, value in environ.items() if not name.upper().startswith("MEMORYD_")}
    overrides: dict[str, object] = {
        "sources.agents": ["codex"],
        "extract.provider": config.OFFLINE,
        "consolidate.provider": config.OFFLINE,
        "consolidate.debounce": "0s",
        "consolidate.min_interval": "0s",
        # One's own history may be older than a daemon would begin with; looking at it costs nothing here.
        "limits.backfill": "all",
        "discover.min_idle": "0s" if mine else "6h",
        "consolidate.max_unused": "3650d" if mine else "30d",
    }
    if not mine:
        codex_home = home / "demo-codex"
        install(codex_home, now=now)
        overrides |= {
            "sources.roots": {"codex": [str(codex_home)]},
            "limits.backfill": "recent",
            "discover.max_age": "30d",
        }
    return config.load(home, environ=clean, overrides=overrides)


async def remember(
    settings: Settings, environ: Mapping[str, str], clock: Clock, progress: Progress
) -> dict[str, object]:
    """Make one pass, as `sync` does."""
    async with open_house(settings, clock=clock, environ=environ, role="demo") as context:
        return as_json(await run_pass(context, progress=progress))


@contextmanager
def _throw_away(named: Path | None, *, keep: bool) -> Iterator[Path]:
    """Give a home that goes away again, unless it was named or is to be kept. A home in use is refused."""
    if named is not None:
        home = Path(named).absolute()
        if home.is_dir() and any(home.iterdir()):
            raise UsageError(f"{home} is not empty", remedy="name a folder that is new or empty, or leave --home out")
        prepare(Home(home))
        yield home
        return
    home = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        yield home
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)


def _greeting(settings: Settings, environ: Mapping[str, str], *, mine: bool) -> str:
    if not mine:
        return "memoryd demo: sessions that come with memoryd, the offline writer, no key, no network."
    roots = ", ".join(str(root) for root in config.agent_home("codex", settings, environ))
    return f"memoryd demo: your own Codex sessions in {roots}, the offline writer; nothing leaves this machine."


def _story(home: Path, result: Mapping[str, object], *, keep: bool) -> list[str]:
    """Tell what was done, show the summary, and say where everything lies."""
    told = ["", *summary_lines(result), ""]
    summary = _read(home, SUMMARY_FILE)
    if summary:
        told += [f"--- {SUMMARY_FILE} " + "-" * 40, summary.rstrip(), "-" * 60, ""]
    else:
        told += ["No memory was written: the lines above say why.", ""]
    return [*told, *_where(home, kept=keep or not home.name.startswith(PREFIX))]


def _where(home: Path, *, kept: bool) -> list[str]:
    """Say where everything lies, or lay."""
    house = Home(home)
    places = {
        house.memories / SUMMARY_FILE: "what an agent is given at the start of a session (shown above)",
        house.memories / MEMORY_FILE: "the handbook, which agents search",
        house.memories / "rollout_summaries": "one summary a session",
        house.memories / ".git": "every change and its reason (git log)",
        house.ledger_file: "jobs, and what each session taught (SQLite)",
    }
    width = max(len(str(path.relative_to(home))) for path in places)
    told = [f"{'Everything lies' if kept else 'Everything lay'} in {home}:"]
    told += [f"  {path.relative_to(home)!s:<{width}}  {meaning}" for path, meaning in places.items() if path.exists()]
    if kept:
        return [
            *told,
            "Remove that folder to remove everything. Your own memory would lie in ~/.memoryd: `memoryd init`",
        ]
    return [
        *told,
        "That folder is gone again; `memoryd demo --keep` leaves it for a look around.",
        "Your own memory would lie in ~/.memoryd in the same way: `memoryd init`, then `memoryd sync`.",
    ]


def _read(home: Path, name: str) -> str:
    try:
        return (Home(home).memories / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
