"""`memoryd explain PATH|THREAD`: what memoryd makes of one session, and why. Reads; sends nothing; needs no sync."""

import argparse
import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import moment, print_json, span
from memoryd.daemon.house import configured_agents
from memoryd.errors import SourceError, UsageError
from memoryd.ledger import jobs, meta, outputs, sessions
from memoryd.ledger.database import Ledger
from memoryd.ledger.lineage import older_relatives
from memoryd.ledger.sessions import SessionRow
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline import prompting
from memoryd.pipeline.context import Agent
from memoryd.pipeline.discover import CONSENT_KEY, effective_backfill, mode_of_row, presentable
from memoryd.pipeline.eligibility import MEANING, Traits, Waiting, Window, exclusion, waiting, window
from memoryd.pipeline.extract import BYTES_PER_TOKEN, input_budget
from memoryd.pipeline.loading import Loaded, find_relatives, load
from memoryd.pipeline.session_facts import SessionFacts
from memoryd.redact import Redactor
from memoryd.sources.items import SessionFile, SessionHead, SessionTail
from memoryd.text import on_one_line
from memoryd.workspace.layout import Home

MEANING_OF_WAIT: Mapping[str, str] = {
    "debounce": "more sessions may follow soon, and one run serves them all (consolidate.debounce)",
    "min_interval": "the last consolidation was less than consolidate.min_interval ago",
    "backoff": "the last try failed, and the next one waits",
    "crash": "it ended without a word several times",
    "rate_limited": "the provider's limit is reached",
    "provider_overloaded": "the provider is overloaded",
    "provider_unreachable": "the provider cannot be reached: no network, or it is down",
    "misconfigured": "a setting stopped working while it ran: see the job's error",
    "key_refused": "the provider refuses the key: check api_key_env or api_key_file",
    "model_unknown": "the provider does not know the model: check extract.model, consolidate.model and base_url",
    "budget": "today's cap is spent (limits)",
    "disk_full": "the disk is full or read-only",
    "git_missing": "there is no git program",
    "abandoned": "a memoryd that was killed held it; it is taken over when the lease runs out (ledger.lease)",
}

RULES: Mapping[str, str] = {
    "covered": "nothing was recorded since it was extracted",
    "running": "it is being extracted now",
    "out_of_attempts": "every try failed; `memoryd jobs show` has the history, `memoryd jobs retry` tries again",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A session, located: its agent, its file, and what its beginning and end say."""

    agent: Agent
    file: SessionFile
    head: SessionHead
    tail: SessionTail


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the session."""
    parser.add_argument("session", metavar="PATH|THREAD", help="a session's file, or its thread id")
    parser.add_argument("--show-input", action="store_true", help="print the request as it would be sent")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Explain one session. Exit 2 when there is no such session."""
    environ = config.environ()
    settings = config.load(args.home, environ=environ)
    if on_one_line(args.session) != args.session.strip():
        raise UsageError(
            "this name holds bytes that are no text, or characters that cannot be shown: no session is read under it",
            remedy="rename the file",
        )
    known = asyncio.run(_from_ledger(settings, args.session, Path(args.session).absolute()))
    found = _locate(configured_agents(settings, environ), args.session, known.get("path"))
    told = explain(settings, found, known, now=SystemClock().now())
    if args.json:
        print_json(told)
    elif args.show_input:
        print(told["input"])
    else:
        print("\n".join(lines(told)))
    return 0


def explain(settings: Settings, found: Found, known: Mapping[str, Any], *, now: float) -> dict[str, Any]:
    """Return everything that can be said of a session: identity, eligibility, evidence, and what came of it."""
    redactor = Redactor(settings.privacy.patterns)
    found = replace(found, head=presentable(found.head, redactor))
    head, tail, home = found.head, found.tail, Home(settings.home)
    mode = tail.memory_mode or head.memory_mode
    traits = Traits(
        head.kind,
        head.cwd,
        known.get("memory_mode") or mode,
        head.ephemeral,
        head.originator,
        is_wanted=known.get("is_wanted", False),
    )
    reason = known.get("forgotten") or exclusion(
        traits, sources=settings.sources, memoryd_home=home.path, user_homes=settings.user_homes
    )
    when = _window(settings, known, now)
    held = None if reason else waiting(tail.last_record_at, when)
    covered = known.get("covered") == (tail.last_record_at, tail.record_bytes)
    provider = settings.provider_for("extract").provider
    loaded = load(
        found.agent.reader,
        found.file,
        settings=settings,
        redactor=redactor,
        home=home.path,
        budget_tokens=input_budget(settings.extract.max_input_tokens, provider.context_window),
        bytes_per_token=BYTES_PER_TOKEN,
        relatives=find_relatives(found.agent.reader, known.get("relatives", ())),
    )
    found_by_reading = known.get("finding") or "covered"
    verdict = reason or held or (found_by_reading if covered else _of_job(known.get("job"), now))
    return {
        "thread_id": head.thread_id,
        "agent": head.agent,
        "path": str(found.file.path),
        "kind": head.kind.value,
        "cwd": head.cwd,
        "git_branch": head.git_branch,
        "parent_id": head.parent_id,
        "copies": [{"path": path, "agent": agent} for path, agent in known.get("copies", ())],
        "relatives": [_relative(row) for row in known.get("relatives", ())],
        "memory_mode": mode.value,
        "started_at": head.started_at,
        "last_record_at": tail.last_record_at,
        "record_bytes": tail.record_bytes,
        "eligible": verdict is None,
        "reason": str(verdict) if verdict else None,
        "rule": _rule(verdict),
        "eligible_at": tail.last_record_at + settings.discover.min_idle if held is Waiting.TOO_FRESH else None,
        "evidence": _evidence(loaded),
        "job": known.get("job"),
        "remembered": known.get("remembered", False),
        "input": _input(found, loaded),
    }


def lines(told: Mapping[str, Any]) -> list[str]:
    """Tell it to a person."""
    evidence = told["evidence"]
    age = span(max(0.0, SystemClock().now() - told["last_record_at"]))
    text = [
        f"{told['agent']} session {told['thread_id']}",
        f"  file      {told['path']}",
        f"  project   {told['cwd'] or 'unknown'}" + (f" (branch {told['git_branch']})" if told["git_branch"] else ""),
        f"  last record {moment(told['last_record_at'])}, {age} ago; {told['record_bytes']} bytes",
        f"  verdict   {'eligible now' if told['eligible'] else 'not extracted: ' + told['reason']}: {told['rule']}",
    ]
    text += [f"  also at   {copy['path']}" + _same_session(copy, told) for copy in told["copies"]]
    text += [f"  shares    what {each['thread_id']} holds too: {each['owner']}" for each in told["relatives"]]
    if told["eligible_at"]:
        text.append(f"            eligible from {moment(told['eligible_at'])} if it stays idle")
    text.append(f"  evidence  {evidence['items_kept']} items, {evidence['human_messages']} of them a person's")
    text += [f"  tier      {tier}: {use['kept']} kept, {use['cut']} cut" for tier, use in evidence["tiers"].items()]
    text += [f"  dropped   {number} {what}" for what, number in evidence["dropped"].items()]
    text += [f"  redacted  {number} {kind}" for kind, number in evidence["redactions"].items()]
    if evidence["bad_lines"]:
        text.append(f"  skipped   {evidence['bad_lines']} unreadable lines")
    if job := told["job"]:
        waits = f", waits until {moment(job['ready_at'])}" if job["wait_reason"] else ""
        text.append(f"  job       {job['status']}{waits}" + (f": {job['last_error']}" if job["last_error"] else ""))
    text.append(f"  memory    {'there is one' if told['remembered'] else 'none'}")
    return text


async def _from_ledger(settings: Settings, wanted: str, path: Path) -> dict[str, Any]:
    """Return what the ledger knows of the session, as far as there is a ledger."""
    file = Home(settings.home).ledger_file
    if not file.exists():
        return {}
    async with await Ledger.open(file, clock=SystemClock(), read_only=True) as ledger:
        known: dict[str, Any] = {
            "first_start": await ledger.read(meta.get, "first_start_at"),
            "agreed": await ledger.read(meta.get, CONSENT_KEY),
        }
        row = await ledger.read(sessions.by_path, str(path)) or await ledger.read(sessions.get, wanted)
        if row is None:
            return known
        detail = await ledger.read(jobs.show, JobKind.STAGE1, row.thread_id)
        if detail is not None:
            job = detail.job
            known["job"] = {
                "status": job.status.value,
                "last_error": job.last_error,
                "ready_at": job.ready_at,
                "wait_reason": job.wait_reason,
            }
        known |= {
            "path": row.path,
            "is_wanted": row.user_mode is sessions.UserMode.ENABLED,
            "finding": row.finding,
            "copies": await ledger.read(sessions.copies, row.thread_id),
            "relatives": await ledger.read(older_relatives, row),
            "memory_mode": mode_of_row(row) if row.user_mode or row.polluted_at else None,
            "forgotten": row.excluded if row.excluded == sessions.FORGOTTEN else None,
            "covered": (row.covered_updated_at, row.covered_bytes),
            "remembered": await ledger.read(outputs.get, row.thread_id) is not None,
        }
        return known


def _locate(agents: Mapping[str, Agent], wanted: str, known_path: str | None) -> Found:
    """Find the session's file: the path given, the one the ledger knows, or a search through the sessions folders."""
    path = Path(known_path or wanted).absolute()
    if path.exists():
        candidates = [(agent, agent.reader.locate(path)) for agent in agents.values()]
    else:
        candidates = [
            (agent, file)
            for agent in agents.values()
            for file in agent.reader.find(agent.homes)
            if wanted in file.path.name
        ]
    problems = []
    for agent, file in candidates:
        try:
            head = agent.reader.head(file)
            if path.exists() or head.thread_id.startswith(wanted):
                return Found(agent, file, head, agent.reader.tail(file))
        except SourceError as error:
            problems.append(str(error))
    if problems:
        raise UsageError(problems[0])
    raise UsageError(
        f"there is no session {wanted!r} in the folders of {', '.join(agents) or 'any agent: none is configured'}",
        remedy="give a session file's path, or a thread id; `memoryd init` configures agents",
    )


def _relative(row: SessionRow) -> dict[str, Any]:
    """Say of an older relative whose the shared rows are."""
    owner = f"nobody's, as that session is left out ({row.excluded or 'memory_mode'})" if row.is_withheld else "its own"
    if not Path(row.path.partition("#")[0]).exists():
        until = f"nobody's, up to {moment(row.updated_at)}, when it ended" if row.is_withheld else "this session's now"
        owner = f"{until}: its file is gone"
    return {"thread_id": row.thread_id, "path": row.path, "is_withheld": row.is_withheld, "owner": owner}


def _same_session(copy: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    other = copy["agent"] not in {None, told["agent"]}
    return f" ({copy['agent']}): one id is one session, read from the file above" if other else ""


def _window(settings: Settings, known: Mapping[str, Any], now: float) -> Window:
    offline = settings.provider_for("extract").provider.kind == config.OFFLINE
    return window(
        now=now,
        discover=settings.discover,
        max_unused=settings.consolidate.max_unused,
        first_start_at=int(known.get("first_start") or now),
        backfill=effective_backfill(settings, offline=offline, agreed=known.get("agreed")),
    )


def _rule(verdict: str | None) -> str:
    if verdict is None:
        return "it is extracted by the next pass"
    return RULES.get(verdict) or MEANING.get(verdict) or MEANING_OF_WAIT.get(verdict, verdict)


def _of_job(job: Mapping[str, Any] | None, now: float) -> str | None:
    """Say what keeps an eligible session's job from running now, None when nothing does."""
    if job is None:
        return None
    if job["status"] == Status.ERROR:
        return "out_of_attempts"
    if job["status"] == Status.RUNNING:
        return "running"
    return job["wait_reason"] if (job["ready_at"] or 0) > now else None


def _evidence(loaded: Loaded) -> dict[str, Any]:
    evidence = loaded.evidence
    return {
        "items_kept": evidence.items_kept,
        "human_messages": evidence.human_messages,
        "bytes": len(evidence.text.encode()),
        "tiers": {str(tier): {"kept": use.kept, "cut": use.cut} for tier, use in evidence.tiers.items()},
        "dropped": dict(loaded.dropped + evidence.dropped),
        "redactions": dict(evidence.redactions),
        "bad_lines": loaded.bad_lines,
    }


def _input(found: Found, loaded: Loaded) -> str:
    facts = SessionFacts(
        thread_id=found.head.thread_id,
        agent=found.head.agent,
        cwd=found.head.cwd,
        git_branch=found.head.git_branch,
        started_at=found.head.started_at,
        updated_at=found.tail.last_record_at,
    )
    return prompting.stage1_question_parts(facts, loaded.evidence.text).opening
