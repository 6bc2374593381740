"""All that the ledger holds at one instant, and where it is not what the model says."""

import sqlite3
from dataclasses import dataclass, fields

from tests.ledger.model import Job, Model, Row

_JOB_COLUMNS = ", ".join(field.name for field in fields(Job))

_QUERIES = {
    "jobs": f"SELECT {_JOB_COLUMNS} FROM jobs ORDER BY kind, job_key",
    "sessions": """SELECT thread_id, updated_at, record_bytes, queued_updated_at, queued_bytes, covered_updated_at,
                   covered_bytes, polluted_at IS NOT NULL FROM sessions ORDER BY thread_id""",
    "outputs": """SELECT thread_id, source_updated_at, raw_memory, usage_count, last_usage, selected_for_phase2,
                  selected_for_phase2_source_updated_at FROM stage1_outputs ORDER BY thread_id""",
    "attempts": """SELECT id, kind, job_key, epoch, outcome, requests, tokens_in, ended_at IS NOT NULL
                   FROM attempts ORDER BY id""",
    "requests": "SELECT id, attempt_id, at, tokens_in FROM requests ORDER BY id",
    "publications": "SELECT commit_id, state FROM publications ORDER BY id",
    "usage_events": """SELECT thread_id, message_key FROM usage_events WHERE thread_id <> ''
                       ORDER BY thread_id, message_key""",
    "claims": """SELECT c.text, c.status, c.valid_from, c.invalidated_at, t.thread_id
                 FROM claims AS c LEFT JOIN claim_threads AS t ON t.claim_id = c.id ORDER BY c.id""",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """The rows of every table that a history touches."""

    tables: dict[str, list[Row]]
    jobs: tuple[Job, ...]


def look(conn: sqlite3.Connection) -> Picture:
    """Read everything from one snapshot."""
    conn.execute("BEGIN")
    tables = {name: conn.execute(query).fetchall() for name, query in _QUERIES.items()}
    conn.execute("ROLLBACK")
    return Picture(tables, tuple(Job(*row) for row in tables["jobs"]))


def differences(picture: Picture, model: Model) -> list[str]:
    """Name the tables that differ, with what they hold and what they should."""
    return [
        f"{name}: the ledger holds\n  {picture.tables[name]}\nand should hold\n  {rows}"
        for name, rows in _expected(model).items()
        if picture.tables[name] != rows
    ]


_JOB_FIELDS = tuple(field.name for field in fields(Job))


def _expected(model: Model) -> dict[str, list[Row]]:
    return {
        "jobs": [tuple(getattr(model.jobs[key], name) for name in _JOB_FIELDS) for key in sorted(model.jobs)],
        "sessions": [(name, *row.pairs, int(row.polluted)) for name, row in sorted(model.sessions.items())],
        "outputs": [
            (
                name,
                row.source_updated_at,
                row.text,
                row.usage_count,
                row.last_usage,
                int(row.selected is not None),
                row.selected,
            )
            for name, row in sorted(model.outputs.items())
        ],
        "attempts": [
            (number, *run.key, run.epoch, run.outcome, run.requests, run.tokens, int(run.outcome is not None))
            for number, run in model.runs.items()
        ],
        "requests": [(number, *row) for number, row in model.requests.items()],
        "publications": [tuple(row) for row in model.publications],
        "usage_events": sorted(model.citations),
        "claims": [
            (claim.text, claim.status, claim.valid_from, claim.invalidated_at, thread)
            for claim in model.claims
            for thread in claim.threads
        ],
    }
