"""Structured logs: one event a line, each named in one catalogue; no session or memory text, no key, no local variable.

JSON lines on stderr, readable lines on a terminal. Records of libraries (standard logging) take the same way out.
"""

import logging
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import Processor

from memoryd.clock import SystemClock
from memoryd.redact import Redactor
from memoryd.text import spelled_out

SCHEMA = 1
TALKATIVE = (
    "httpx",
    "httpcore",
    "apscheduler",
    "watchfiles",
    "asyncio",
    "aiosqlite",
)  # httpx logs whole addresses at info
CANONICAL = frozenset(
    {"job.completed", "job.deferred", "job.failed", "job.lease_lost", "job.postponed", "job.released"}
)
"""How a run ended: one line for each, however many end alike."""
MOST_ALIKE = 5
REPEAT_SECONDS = 3_600.0
"""So many lines that say the same are written within so long; the next one after that says how many were left out."""
MOST_REMEMBERED = 1_000
FIRST = ("schema", "at", "level", "event")
Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the catalogue: how loud it is, what it means, and the fields it may carry besides those of BOUND."""

    level: Level
    meaning: str
    fields: tuple[str, ...] = ()


# Bound once around a job or a service; `session` is the thread of an extraction, `attempt` the number of the run in
# the ledger, which `memoryd jobs show` lists; `repeated` says how many lines alike were left out before this one.
BOUND = ("kind", "job_key", "session", "attempt", "epoch", "worker", "service", "repeated")
OUTCOME = ("duration_ms", "requests", "tokens_in", "tokens_out", "tokens_cached", "cost")  # what a job took

EVENTS: dict[str, Event] = {
    "accounts.pruned": Event(
        "info",
        "Requests older than 180 days became sums by day and model; old runs that nothing shows went.",
        ("requests", "count"),
    ),
    "backup.skipped": Event("warning", "No copy of the ledger was made today so far.", ("reason", "detail")),
    "checkpoint.prevented": Event(
        "debug", "A reader that stays open keeps the ledger's log from being cut.", ("bytes",)
    ),
    "clock.believed": Event("info", "The clock is right again or proved itself; retention goes on.", ("at_wall",)),
    "clock.doubted": Event(
        "warning",
        "The clock is earlier than what is stored, or jumped by over 30 days: nothing is forgotten for its age.",
        ("reason", "at_wall", "believed_at"),
    ),
    "clock.jumped": Event(
        "warning", "The wall clock was set, or the machine slept; timers are set anew.", ("seconds", "slept")
    ),
    "command.confined": Event("info", "What confines the programs of providers of kind command.", ("mechanism",)),
    "command.unconfined": Event(
        "warning", "Nothing here confines the programs of providers of kind command: they run as the user does."
    ),
    "consolidation.published": Event("info", "A new version of the memory is in place.", ("commit", "selected")),
    "consolidation.refused": Event(
        "info", "The agent was refused calls: other paths than its own, wrong arguments.", ("count", "kinds")
    ),
    "consolidation.rejected": Event(
        "warning", "Acceptance turned a result down; the old memory stands, and the job says why.", ("count",)
    ),
    "consolidation.tidied": Event(
        "warning", "A run left files where none belong; they were moved to quarantine/.", ("count",)
    ),
    "consolidation.unchanged": Event("info", "Nothing to rewrite: no model was asked.", ("selected",)),
    "daemon.exhausted": Event(
        "error",
        "The daemon passed a bound far above what it needs: it ends its jobs, and then itself to be started anew.",
        ("what", "has", "bound"),
    ),
    "daemon.started": Event("info", "Services run.", ("agents", "provider", "version", "pid", "home")),
    "daemon.stopped": Event("info", "Leases are given back and stores closed.", ("reason",)),
    "folder.edited": Event("info", "A person changed the memory folder; consolidation takes it in.", ("notes",)),
    "folder.cleared": Event(
        "warning", "What stood in the place of a folder of the memory was moved beside it.", ("names",)
    ),
    "folder.missing": Event(
        "warning", "The memory folder is gone with its history; consolidation rebuilds it.", ("folder",)
    ),
    "folder.restored": Event("warning", "The memory folder was emptied; its last version was put back.", ("count",)),
    "history.postponed": Event("warning", "The history could not be bounded; a later try goes on.", ("error",)),
    "history.shortened": Event("info", "The oldest changes of the memory became one.", ("count", "commit")),
    "copies.removed": Event("info", "Copies of the ledger went with what was purged.", ("names",)),
    "forgetting.completed": Event(
        "info", "What was to be forgotten is gone wherever it was asked for.", ("deed", "count", "removed")
    ),
    "forgetting.postponed": Event("warning", "A forgetting is not done yet; a later try goes on.", ("error",)),
    "forgetting.started": Event("info", "A person asked to forget; from here on it is certain.", ("count", "purge")),
    "memory.cleaned": Event("info", "Code alone took out what rested on evidence that is gone.", ("commit", "removed")),
    "import.completed": Event(
        "info", "Another agent's memory was imported; nothing was sent.", ("agent", "count", "files", "left_out")
    ),
    "job.claimed": Event("debug", "A worker holds a job.", ("watermark",)),
    "job.completed": Event("info", "A job is done.", (*OUTCOME, "outcome", "reason")),
    "job.crashed": Event("error", "A job met an error that nobody foresaw; it counts as failed.", ("error_class",)),
    "job.deferred": Event(
        "warning", "A job waits; the attempt was not counted.", (*OUTCOME, "reason", "retry_at", "error")
    ),
    "job.enqueued": Event("info", "Work was found.", ("count",)),
    "job.failed": Event(
        "error", "A job failed and the attempt counts.", (*OUTCOME, "error_class", "retry_at", "error")
    ),
    "job.lease_lost": Event("warning", "Another holder has the job; nothing was written.", (*OUTCOME, "error")),
    "job.released": Event("info", "A job was given back at shutdown, claimable at once."),
    "job.reopened": Event("info", "What died under another version, model or prompt is tried anew.", ("count",)),
    "job.postponed": Event(
        "info", "A job waits for what a warning has named already.", (*OUTCOME, "reason", "retry_at")
    ),
    "job.reclaimed": Event("warning", "A memoryd that was killed held jobs; they can be claimed again.", ("count",)),
    "ledger.copied": Event("info", "The day's copy of the ledger was made.", ("path", "removed")),
    "ledger.misplaced": Event("warning", "The ledger lies where it should not.", ("warning",)),
    "ledger.replaced": Event(
        "error",
        "The ledger was damaged: it was set aside whole, and a backup or a new one took its place.",
        ("problem", "folder", "source", "means"),
    ),
    "log.rotated": Event("info", "The log file was full, and a new one begun; three older ones are kept.", ("path",)),
    "loop.delayed": Event(
        "warning", "The event loop stood still: an overloaded or stopped machine, or a fault.", ("seconds",)
    ),
    "memory.adopted": Event(
        "warning", "The ledger is new, and what the memory folder is made of was read back from it.", ("count",)
    ),
    "output.pruned": Event("info", "Rows that nothing uses any more were removed.", ("count",)),
    "pass.progressed": Event("info", "A pass over the sessions went on.", ("stage", "done", "total", "note")),
    "proposal.accepted": Event("info", "A person accepted a result that waited.", ("number", "commit")),
    "proposal.rejected": Event(
        "info", "A person refused a result; what it took in stays out until changed.", ("number", "commit", "held")
    ),
    "provider.rearmed": Event(
        "info",
        "A provider answers again, or its key or network has changed: its jobs are tried.",
        ("provider", "count"),
    ),
    "reading.degraded": Event("warning", "Lines of a session were not understood and skipped.", ("bad_lines",)),
    "rebuilding.finished": Event("warning", "A rebuilding that was interrupted was brought to its end.", ("folder",)),
    "recall.postponed": Event(
        "warning", "What agents read could not be brought up to date; it is tried again.", ("error",)
    ),
    "recall.refreshed": Event("info", "The summary that agents read was rewritten.", ("commit",)),
    "reply.repaired": Event("info", "A model was asked once more for what it should have said.", ("error",)),
    "request.refused": Event("warning", "The control socket refused a request.", ("error",)),
    "request.settled": Event("debug", "A model answered or refused.", ("provider", "model", "outcome", *OUTCOME)),
    "request.unsettled": Event("warning", "A request's true cost cannot be written; its estimate stays.", ("error",)),
    "root.missing": Event("warning", "A folder of a configured agent does not exist.", ("agent", "path")),
    "rules.changed": Event(
        "warning", "What counts as a secret has changed: stored rows were redacted once more.", ("count", "folder")
    ),
    "scan.completed": Event("debug", "The folders were looked through.", ("seen", "opened", "enqueued", "duration_ms")),
    "search.refreshed": Event("debug", "What search finds was brought in step with files.", ("files", "count")),
    "service.crashed": Event(
        "error", "A service met an error that nobody foresaw.", ("error", "error_class", "retry_in")
    ),
    "service.failed": Event("error", "A service stopped on an error and starts again.", ("error", "retry_in")),
    "session.excluded": Event("info", "A session is left out after all: its last word says so.", ("reason",)),
    "session.unreadable": Event("warning", "A session file cannot be read.", ("agent", "path", "error")),
    "settings.refused": Event(
        "error",
        "New settings cannot be used; the old ones hold, and `memoryd status` says why.",
        ("error",),
    ),
    "settings.reloaded": Event(
        "info", "memoryd goes on with new settings; jobs end with those they began with.", ("changed", "count", "held")
    ),
    "sessions.dwindled": Event(
        "warning", "Most sessions of an agent are gone; no memory goes with them.", ("agent", "before", "present")
    ),
    "stage.stalled": Event(
        "warning", "A stage has work and had no success for longer than its settings let expect.", ("count", "seconds")
    ),
    "start.awaited": Event(
        "warning", "Another program holds the lock, or keeps the ledger locked: it is waited for.", ("error", "seconds")
    ),
    "start.abandoned": Event(
        "error", "Too many starts failed in a short time: memoryd stays down until it is started.", ("count", "seconds")
    ),
    "storage.paused": Event(
        "warning", "No space or a read-only disk: nothing is spent until it is back.", ("error", "retry_in")
    ),
    "storage.resumed": Event("info", "There is room again: work goes on.", ("since",)),
    "tool.failed": Event("error", "A fault of ours in a tool that an agent called.", ("tool", "detail")),
    "undo.completed": Event("info", "Changes of the memory were taken back.", ("commit", "count", "held")),
    "usage.credited": Event("info", "Citations were counted.", ("count",)),
    "usage.exceeded": Event(
        "warning", "The daemon has more memory (MB) or open descriptors than it should.", ("what", "has", "bound")
    ),
    "watcher.failed": Event("warning", "The watcher failed; scans go on.", ("error", "retry_in", "roots")),
}


def _stamp(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["schema"] = SCHEMA
    return event


_COMMON: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    _stamp,
)


def configure(
    format: Literal["auto", "json", "console"],  # noqa: A002 - the name of the setting
    level: Level,
    stream: TextIO | None = None,
    *,
    redactor: Redactor | None = None,
    monotonic: Callable[[], float] | None = None,
    most_alike: int = MOST_ALIKE,
) -> None:
    """Set up logging for this process; calling it again replaces what was set up before (a reload).

    `stream` is stderr unless given. "auto" is readable lines on a terminal and JSON elsewhere. `redactor` takes secrets
    out of every text, the user's own patterns included; the built-in rules hold without one. Of warnings
    that say the same, `most_alike` are written within REPEAT_SECONDS of `monotonic`.
    """
    out = stream or sys.stderr
    readable = format == "console" or (format == "auto" and out.isatty())
    cleaning = _Cleaning(redactor or Redactor())
    last = _readable_processors(out, cleaning) if readable else _json_processors(cleaning)
    handler = logging.StreamHandler(out)
    handler.addFilter(_Repeats(monotonic or SystemClock().monotonic, most_alike))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_COMMON, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    _replace_root_handler(handler, level.upper())


def get() -> structlog.stdlib.BoundLogger:
    """Return memoryd's logger. Modules hold it from their import on; until `configure`, warnings alone reach stderr."""
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger("memoryd"),
        processors=[structlog.stdlib.filter_by_level, *_COMMON, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logger


def bind(**fields: object) -> AbstractContextManager[None]:
    """Give every event inside the `with` block, in this task and those it starts, the same fields."""
    return structlog.contextvars.bound_contextvars(**fields)


def _replace_root_handler(handler: logging.Handler, level: str) -> None:
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old.formatter, structlog.stdlib.ProcessorFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel("ERROR" if level == "ERROR" else "WARNING")


def _json_processors(cleaning: "_Cleaning") -> list[Processor]:
    traceback = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))
    return [traceback, cleaning, _in_order, structlog.processors.JSONRenderer(default=str)]


def _readable_processors(out: TextIO, cleaning: "_Cleaning") -> list[Processor]:
    renderer = structlog.dev.ConsoleRenderer(colors=out.isatty(), timestamp_key="at", pad_event_to=28)
    return [structlog.processors.format_exc_info, cleaning, _without_schema, _spelled_out, renderer]


def _without_schema(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event.pop("schema", None)
    return event


def _spelled_out(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Let no name of a file steer the terminal that the line stands on; JSON does so by itself."""
    return {key: spelled_out(value) if isinstance(value, str) else value for key, value in event.items()}


def _in_order(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: event[key] for key in FIRST if key in event} | {k: v for k, v in event.items() if k not in FIRST}


class _Repeats(logging.Filter):
    """Leaves out warnings and errors that say the same again and again, and counts them; never the line of a job."""

    def __init__(self, monotonic: Callable[[], float], most_alike: int) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._most_alike = most_alike
        self._said: dict[tuple[str, ...], _Said] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line is written; one that follows others which were not says how many those were."""
        event = record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}
        if record.levelno < logging.WARNING or event.get("event") in CANONICAL:
            return True
        key, now = _alike(event), self._monotonic()
        said = self._said.pop(key, None)
        if said is None or now - said.since >= REPEAT_SECONDS:
            left_out = said.left_out if said else 0
            said = _Said(now)
            if left_out:
                event["repeated"] = left_out
        self._said[key] = said  # the one that was said last is the last to be forgotten
        if len(self._said) > MOST_REMEMBERED:
            del self._said[next(iter(self._said))]
        said.count += 1
        if said.count > self._most_alike:
            said.left_out += 1
            return False
        return True


@dataclass(slots=True)
class _Said:
    """What was said lately: since when (monotonic seconds), how often, and how often not."""

    since: float
    count: int = 0
    left_out: int = 0


def _alike(event: Mapping[str, object]) -> tuple[str, ...]:
    """Return what lines have in common that say the same: all of their words, numbers aside."""
    return tuple(
        f"{key}={re.sub(r'[0-9]+', '#', value)}"
        for key, value in sorted(event.items())
        if isinstance(value, str) and key != "at"
    )


class _Cleaning:
    """The step that takes secrets out of every text of an event, however deep."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {key: self._clean(value) for key, value in event.items()}

    def _clean(self, value: object) -> object:
        if isinstance(value, str):
            return self._redactor.clean(value)
        if isinstance(value, Mapping):
            return {key: self._clean(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(inner) for inner in value]
        return value if isinstance(value, int | float | None) else self._redactor.clean(str(value))
