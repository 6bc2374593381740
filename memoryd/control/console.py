"""How commands talk: plain lines on stdout, JSON where asked, progress bars on a terminal and log lines elsewhere."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memoryd import logs
from memoryd.clock import in_calendar
from memoryd.config import Settings
from memoryd.daemon.progress import Progress, Step
from memoryd.redact import Redactor

log = logs.get()

STAGES = {"discover": "reading sessions", "extract": "remembering", "consolidate": "consolidating"}


def start_logging(settings: Settings, *, beside_bars: bool = False) -> None:
    """Begin to log as the settings say; what their patterns call a secret is one in the log too.

    `beside_bars`: on a terminal the bars tell what goes on, so only warnings may cut through them.
    """
    level = settings.log.level
    if beside_bars and sys.stderr.isatty() and level == "info":
        level = "warning"
    logs.configure(settings.log.format, level, redactor=Redactor(settings.privacy.patterns))


def print_json(data: Mapping[str, object] | list[object]) -> None:
    """Print one JSON document on stdout."""
    print(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def plural(count: int, noun: str) -> str:
    """Render `1 session`, `2 sessions`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def moment(instant: float | None) -> str:
    """Render epoch seconds in local time for people: `2026-11-29 09:38:15`."""
    if instant is None:
        return "never"
    return in_calendar(instant).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def size_of(count: int | None) -> str:
    """Render a number of bytes: `735 bytes`, `5.4 KiB`, `59 GiB`."""
    number = float(count or 0)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "bytes" or number >= 10 else f"{number:.1f} {unit}"


def span(seconds: float) -> str:
    """Render a length of time roughly: `3 h 20 min`."""
    minutes = int(abs(seconds)) // 60
    if minutes == 0:
        return f"{int(abs(seconds))} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    return " ".join(f"{value} {unit}" for value, unit in parts if value)[:24]


def when(instant: float | None, now: float) -> str:
    """Render an instant for people, absolute and relative: `2026-11-29 09:38:15 (3 h 20 min ago)`, `... (in 5 min)`."""
    if instant is None:
        return "never"
    gap = instant - now
    if abs(gap) < 1:
        return f"{moment(instant)} (now)"
    return f"{moment(instant)} ({f'in {span(gap)}' if gap > 0 else f'{span(gap)} ago'})"


@contextmanager
def progress_reporter() -> Iterator[Progress]:
    """Give a callable for a pass's steps: bars (rich, on stderr) on a terminal, log lines elsewhere."""
    if not sys.stderr.isatty():
        yield _log_step
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import (
        Progress as Bars,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, int] = {}

        def show(step: Step) -> None:
            if step.stage not in tasks:
                tasks[step.stage] = bars.add_task(STAGES[step.stage], total=None)
            bars.update(bars.task_ids[tasks[step.stage]], completed=step.done, total=step.total or None)

        yield show


def _log_step(step: Step) -> None:
    log.info("pass.progressed", stage=step.stage, done=step.done, total=step.total, note=step.note)
