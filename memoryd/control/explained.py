"""How `memoryd explain` tells a person what it found: a heading per question, a line per answer, no code words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from memoryd.control import wording
from memoryd.control.console import moment, plural, span, when
from memoryd.control.job_told import OUTCOMES, STATES, told_of
from memoryd.control.prospects import Prospect
from memoryd.ledger.states import Outcome, Status
from memoryd.sources.items import SessionKind

Told = Mapping[str, Any]

DRIVERS: Final[Mapping[str, str]] = {
    SessionKind.INTERACTIVE: "a person",
    SessionKind.NONINTERACTIVE: "a script (a non-interactive run)",
    SessionKind.SUBAGENT: "another agent (a sub-agent's session)",
    SessionKind.MEMORY_RUN: "the agent's own memory",
}
RESET: Final = "you reset the memory then (`memoryd reset --relearn` begins anew with everything)"
RESET_ROWS: Final = "rows from before you reset the memory, or that an older session holds too"
COMPRESSED = ".zst"
ARCHIVE = "/archived_sessions/"


def lines(told: Told, *, now: float) -> list[str]:
    """Tell it, top to bottom: whose session it is, whether it is remembered, what is taken of it, what came of it."""
    return [*_identity(told, now), *_verdict(told, now), *_evidence(told), *_outcome(told, now)]


def _row(name: str, text: str) -> str:
    return f"  {name:<12} {text}"


def _identity(told: Told, now: float) -> Iterator[str]:
    name = told["thread_id"] or "a file that is no session"
    yield f"{told['agent']} session {name}" if told["agent"] else name
    yield _row("file", told["path"])
    yield from (_row("same session", _copy(copy, told)) for copy in told["copies"])
    if told["last_record_at"] is None:
        return
    branch = f" (branch {told['git_branch']})" if told["git_branch"] else ""
    yield _row("project", (told["cwd"] or "unknown: the file does not name a folder") + branch)
    yield _row("driven by", DRIVERS[told["kind"]])
    if told["parent_id"]:
        yield _row("comes from", f"session {told['parent_id']}")
    began = f"{moment(told['started_at'])} to " if told["started_at"] else ""
    ended = f"{moment(told['last_record_at'])}, {span(max(0.0, now - told['last_record_at']))} ago"
    unit = "rows" if "#" in told["path"] else "bytes"
    yield _row("recorded", f"{began}{ended}; {told['record_bytes']:,} {unit}")
    yield from (_row("shares", _relative(relative)) for relative in told["relatives"])
    if told["reset_at"]:
        yield _row("was reset", f"nothing is taken of what was recorded up to {moment(told['reset_at'])}: {RESET}")
    if told["chosen_mode"]:
        yield _row("your choice", wording.BY_HAND[told["chosen_mode"]])


def _copy(copy: Told, told: Told) -> str:
    path = str(copy["path"])
    if copy["agent"] not in {None, told["agent"]}:
        return f"{path}: {copy['agent']} has the same id; one id is one session, read from the file above"
    kind = "compressed" if path.endswith(COMPRESSED) else "archived" if ARCHIVE in path else "another"
    return f"{path}: {kind} copy, not read again"


def _relative(relative: Told) -> str:
    name = relative["thread_id"]
    if not relative["is_older"]:
        return f"rows with {name}, which is younger: they are taken from here"
    if relative["is_withheld"] and relative["is_gone"]:
        until = moment(relative["ended_at"])
        return f"rows with {name}, which was left out and is gone: nothing is taken of what was said up to {until}"
    if relative["is_withheld"]:
        return f"rows with {name}, which is older and left out: they are taken from neither"
    if relative["is_gone"]:
        return f"rows with {name}, which is older and whose file is gone: they are taken from here"
    return f"rows with {name}, which is older: they are taken from there"


def _verdict(told: Told, now: float) -> Iterator[str]:
    if told["eligible"]:
        yield _row("verdict", f"to be remembered: {told['rule']}")
    else:
        verdict = "extracted" if told["reason"] == "covered" else "not extracted"
        yield _row("verdict", f"{verdict} ({told['reason']}): {told['rule']}")
    if told["problem"]:
        yield _row("problem", told["problem"])
    prospect = Prospect(**told["next"])
    yield _row("next", told_of(prospect, now))
    yield _row("to do", prospect.todo)


def _evidence(told: Told) -> Iterator[str]:
    evidence: Told | None = told["evidence"]
    if evidence is None:
        return
    yield (
        f"What a model would get to read: {plural(evidence['items_kept'], 'item')}, {evidence['bytes']:,} bytes"
        f" of at most {evidence['budget_bytes']:,}"
    )
    for tier, use in evidence["tiers"].items():
        cut = f", {use['cut']} cut for want of room" if use["cut"] else ""
        yield _row(f"{use['kept']:>6}", f"{tier}{cut}")
    left_out = [
        (number, RESET_ROWS if reason == "copied" and told["reset_at"] else wording.dropped(reason))
        for reason, number in sorted(evidence["dropped"].items())
    ]
    left_out += [
        (number, f"records of the unknown type {kind}") for kind, number in sorted(evidence["unknown"].items())
    ]
    left_out += [(evidence["bad_lines"], "unreadable lines")] if evidence["bad_lines"] else []
    if left_out:
        yield "What is left out:"
        yield from (_row(f"{number:>6}", what) for number, what in left_out)
    if evidence["redactions"]:
        yield "Secrets that are replaced before anything is sent or stored:"
        for kind, number in sorted(evidence["redactions"].items()):
            yield _row(f"{number:>6}", kind.replace("_", " "))


def _outcome(told: Told, now: float) -> Iterator[str]:
    yield "What came of it:"
    if job := told["job"]:
        waits = f" until {when(job['ready_at'], now)}, {job['wait_reason']}" if job["wait_reason"] else ""
        error = f": {job['last_error']}" if job["last_error"] else ""
        yield _row("job", f"{STATES[Status(job['status'])]}{waits}{error}")
        yield from (_row("attempt", _attempt(attempt, now)) for attempt in told["attempts"])
        spent = told["spent"]
        tokens = spent["tokens_in"] + spent["tokens_out"]
        cost = f", {spent['cost']} US dollars" if spent["cost"] else ""
        yield _row("spent", f"{plural(spent['requests'], 'request')}, {tokens:,} tokens{cost}")
    else:
        yield _row("job", "none yet")
    yield _row("memory", _memory(told["memory"], now))


def _attempt(attempt: Told, now: float) -> str:
    end = OUTCOMES[Outcome(attempt["outcome"])] if attempt["outcome"] else "still running"
    model = f" with {attempt['model']}" if attempt["model"] else ""
    error = f": {attempt['error']}" if attempt["error"] else ""
    return f"{when(attempt['started_at'], now)}, {end}{model}{error}"


def _memory(memory: Told | None, now: float) -> str:
    if memory is None:
        return "none"
    told = f"written {when(memory['generated_at'], now)}"
    if memory["held_because"]:
        told += f", kept out of the memory folder until the session grows: {memory['held_because']}"
    elif memory["consolidated_at"]:
        told += f", in the memory folder since {when(memory['consolidated_at'], now)}"
    elif memory["is_consolidated"]:
        told += ", in the memory folder in an earlier state"
    else:
        told += ", not yet in the memory folder"
    if memory["usage_count"]:
        told += f", cited {plural(memory['usage_count'], 'time')}"
    return told
