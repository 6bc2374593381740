"""`memoryd explain [PATH|THREAD]`: what memoryd makes of one session, and why. Reads; sends nothing; needs no sync."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control import newest, wording
from memoryd.control.console import print_json
from memoryd.control.explained import lines
from memoryd.control.finding import Found, find_session
from memoryd.control.knowledge import Known, from_ledger, judge, seen_now
from memoryd.control.prospects import of_session, stand
from memoryd.daemon.house import configured_agents
from memoryd.errors import SourceError, UsageError
from memoryd.ledger.overview import JobRow
from memoryd.ledger.sessions import SessionRow
from memoryd.ledger.states import Status
from memoryd.pipeline import prompting
from memoryd.pipeline.discover import effective_backfill, mode_of_row
from memoryd.pipeline.eligibility import UNREADABLE, Exclusion, ReadingFound, Waiting, Window, waiting, window
from memoryd.pipeline.extract import BYTES_PER_TOKEN, facts_of, input_budget
from memoryd.pipeline.loading import Loaded, cut_off, find_relatives, is_cut_off, load
from memoryd.redact import Redactor
from memoryd.sources.items import MemoryMode
from memoryd.text import on_one_line
from memoryd.workspace.layout import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the session."""
    parser.add_argument(
        "session",
        metavar="PATH|THREAD",
        nargs="?",
        help="a session's file, or its thread id (default: list the newest sessions)",
    )
    parser.add_argument("--show-input", action="store_true", help="print the request as it would be sent")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Explain one session. Raises UsageError when there is no such session, or none of the input that is asked for."""
    environ = config.environ()
    settings = config.load(args.home, environ=environ)
    if args.session is None:
        return _list_newest(settings, environ, as_json=args.json)
    if on_one_line(args.session) != args.session.strip():
        raise UsageError(
            "this name holds bytes that are no text, or characters that cannot be shown: no session is read under it",
            remedy="rename the file",
        )
    known = asyncio.run(from_ledger(settings, args.session, str(Path(args.session).absolute())))
    agents = configured_agents(settings, environ)
    found = find_session(agents, args.session, known.row.path if known.row else None)
    clock = SystemClock()
    now, standing = clock.now(), asyncio.run(stand(settings, clock))
    told = explain(settings, found, known, now=now)
    told["next"] = asdict(of_session(told, standing, now=now))
    if args.json:
        print_json(told)
    elif not args.show_input:
        print("\n".join(lines(told, now=now)))
    elif told["input"] is None:
        raise UsageError(f"there is no input to show: {told['problem']}")
    else:
        print(told["input"])
    return 0


def _list_newest(settings: Settings, environ: Mapping[str, str], *, as_json: bool) -> int:
    agents = configured_agents(settings, environ)
    sessions = newest.newest(agents)
    if as_json:
        print_json([newest.as_json(session) for session in sessions])
    else:
        print("\n".join(newest.lines(sessions, agents, now=SystemClock().now())))
    return 0


def explain(settings: Settings, found: Found, known: Known, *, now: float) -> dict[str, Any]:
    """Return everything that can be said of a session: identity, eligibility, evidence, and what came of it.

    What cannot be read is said (`problem`), not raised.
    """
    redactor = Redactor(settings.privacy.patterns)
    problem, loaded = found.session.problem, None
    try:
        if problem is None:
            known = seen_now(settings, found.session, known, redactor)
            loaded = _read(settings, found, known, redactor)
    except SourceError as error:
        problem = str(error)
    row = known.row
    verdict: str | None = UNREADABLE
    if row is not None:
        left_out = judge(settings, row)
        verdict = left_out or (UNREADABLE if loaded is None else _verdict(settings, row, known, loaded, now))
    return {
        **_identity(found, known),
        "reset_at": known.reset_at if row is not None and is_cut_off(row, known.reset_at) else None,
        "problem": redactor.clean(problem) if problem else None,
        "eligible": verdict is None,
        "reason": str(verdict) if verdict else None,
        "rule": wording.rule(verdict),
        "eligible_at": row.updated_at + settings.discover.min_idle if row and verdict == Waiting.TOO_FRESH else None,
        "evidence": None if loaded is None else _evidence(loaded, *_budget(settings, known), redactor),
        "input": None if loaded is None or row is None else _input(row, loaded),
        **_outcome(known),
    }


def _budget(settings: Settings, known: Known) -> tuple[int, float]:
    provider = settings.provider_for("extract").provider
    budget_tokens = input_budget(settings.extract.max_input_tokens, provider.context_window)
    return budget_tokens, known.bytes_per_token or BYTES_PER_TOKEN


def _read(settings: Settings, found: Found, known: Known, redactor: Redactor) -> Loaded:
    tokens, bytes_per_token = _budget(settings, known)
    reader = found.session.agent.reader
    relatives = find_relatives(reader, known.older)
    return load(
        reader,
        found.session.file,
        settings=settings,
        redactor=redactor,
        home=Home(settings.home).path,
        budget_tokens=tokens,
        bytes_per_token=bytes_per_token,
        relatives=relatives if known.row is None else cut_off(relatives, known.row, known.reset_at),
    )


def _verdict(settings: Settings, row: SessionRow, known: Known, loaded: Loaded, now: float) -> str | None:
    """Say what keeps a session that no rule leaves out from being extracted now, None when nothing does."""
    covered = (row.covered_updated_at, row.covered_bytes) == (row.updated_at, row.record_bytes)
    if row.user_mode != "enabled":
        if loaded.memory_mode is MemoryMode.DISABLED:
            return Exclusion.MEMORY_DISABLED
        guard = settings.extract.disable_on_external_context and loaded.evidence.external
        if loaded.memory_mode is MemoryMode.POLLUTED or guard:
            return Exclusion.POLLUTED
    if covered:
        return row.finding or "covered"
    if held := waiting(row.updated_at, _window(settings, known, now)):
        return held
    if loaded.evidence.human_messages == 0:
        return ReadingFound.NO_HUMAN_MESSAGE
    return _of_job(known.job, now)


def _window(settings: Settings, known: Known, now: float) -> Window:
    offline = settings.provider_for("extract").provider.kind == config.OFFLINE
    return window(
        now=now,
        discover=settings.discover,
        useful_from=now - settings.consolidate.max_unused if known.useful_from is None else known.useful_from,
        first_start_at=int(now) if known.first_start_at is None else known.first_start_at,
        backfill=effective_backfill(settings, offline=offline, agreed=known.agreed),
    )


def _of_job(job: JobRow | None, now: float) -> str | None:
    """Say what keeps an eligible session's job from running now, None when nothing does."""
    if job is None:
        return None
    if job.status is Status.ERROR:
        return "out_of_attempts"
    if job.status is Status.RUNNING:
        return "running"
    return job.wait_reason if (job.ready_at or 0) > now else None


def _identity(found: Found, known: Known) -> dict[str, Any]:
    session, row = found.session, known.row
    head = session.head
    elsewhere = {str(one.file.path): one.agent.reader.name for one in found.same_id}
    copies = {path: agent for path, agent in known.copies if path != str(session.file.path)} | elsewhere
    return {
        "thread_id": row.thread_id if row else head and head.thread_id,
        "agent": session.agent.reader.name if head or row else None,
        "path": str(session.file.path),
        "kind": row and row.kind,
        "cwd": row and row.cwd,
        "git_branch": row and row.git_branch,
        "parent_id": row and row.parent_id,
        "copies": [{"path": path, "agent": agent} for path, agent in sorted(copies.items())],
        "relatives": [_relative(other, is_older=True) for other in known.older]
        + [_relative(other, is_older=False) for other in known.younger],
        "memory_mode": row and mode_of_row(row),
        "chosen_mode": row and row.user_mode,
        "started_at": row and row.started_at,
        "last_record_at": row and row.updated_at,
        "record_bytes": row and row.record_bytes,
    }


def _relative(row: SessionRow, *, is_older: bool) -> dict[str, Any]:
    exists = Path(row.path.partition("#")[0]).exists()
    return {
        "thread_id": row.thread_id,
        "path": row.path,
        "is_older": is_older,
        "is_withheld": row.is_withheld,
        "is_gone": not exists,
        "ended_at": row.updated_at,
    }


def _evidence(loaded: Loaded, budget_tokens: int, bytes_per_token: float, redactor: Redactor) -> dict[str, Any]:
    evidence = loaded.evidence
    unknown: Counter[str] = Counter()
    for name, number in loaded.unknown.items():
        unknown[redactor.clean(name)] += number
    return {
        "items_kept": evidence.items_kept,
        "human_messages": evidence.human_messages,
        "bytes": len(evidence.text.encode()),
        "budget_bytes": int(budget_tokens * bytes_per_token),
        "budget_tokens": budget_tokens,
        "tiers": {str(tier): {"kept": use.kept, "cut": use.cut} for tier, use in evidence.tiers.items()},
        "dropped": dict(loaded.dropped + evidence.dropped),
        "redactions": dict(evidence.redactions),
        "bad_lines": loaded.bad_lines,
        "unknown": dict(unknown),
        "external": evidence.external,
    }


def _input(row: SessionRow, loaded: Loaded) -> str:
    parts = prompting.stage1_question_parts(facts_of(row, loaded), loaded.evidence.text)
    return f"{parts.instructions}\n\n{parts.opening}"


def _outcome(known: Known) -> dict[str, Any]:
    job, output = known.job, known.output
    return {
        "job": job
        and {
            "status": job.status.value,
            "last_error": job.last_error,
            "ready_at": job.ready_at,
            "wait_reason": job.wait_reason,
            "started_at": job.started_at,
            "finished_at": job.finished_at,
        },
        "attempts": [
            {
                "started_at": attempt.started_at,
                "outcome": attempt.outcome,
                "error": attempt.error,
                "requests": attempt.requests,
                "tokens": attempt.tokens_in + attempt.tokens_out,
                "model": attempt.model,
            }
            for attempt in known.attempts
        ],
        "spent": _spent(known),
        "remembered": output is not None,
        "memory": output
        and {
            "generated_at": output.generated_at,
            "covers_until": output.updated_at,
            "summary_file": f"rollout_summaries/{output.stem}.md" if output.stem else None,
            "is_consolidated": output.selected_for_phase2,
            "consolidated_at": known.consolidated_at,
            "held_because": known.held_because,
            "usage_count": output.usage_count,
            "last_usage": output.last_usage,
        },
    }


def _spent(known: Known) -> Mapping[str, float]:
    return {
        "requests": sum(attempt.requests for attempt in known.attempts),
        "tokens_in": sum(attempt.tokens_in for attempt in known.attempts),
        "tokens_out": sum(attempt.tokens_out for attempt in known.attempts),
        "tokens_cached": sum(attempt.tokens_cached for attempt in known.attempts),
        "cost": round(sum(attempt.cost for attempt in known.attempts), 6),
    }
