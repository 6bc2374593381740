"""The state of the house as metrics, in Prometheus' text exposition format (version 0.0.4), from the JSON of `status`.

Names are kept for good: README lists them, and a test compares. A scraper reads what a timer writes to a file.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Labels = Mapping[str, str]


MEANING: Final = {
    "memoryd_info": "always 1; the version stands in its label",
    "memoryd_up": "1 while a daemon runs",
    "memoryd_start_time_seconds": "since when the daemon runs (epoch seconds); absent while none does",
    "memoryd_degraded": "1 when something needs a look: `memoryd status` exits with 1",
    "memoryd_findings": "findings of health, by severity and id",
    "memoryd_jobs": "jobs, by kind and status",
    "memoryd_waiting_jobs": "jobs that wait for a time, by kind and reason",
    "memoryd_last_success_time_seconds": "when a job of the kind last succeeded (epoch seconds); absent before",
    "memoryd_requests_today": "requests of this UTC day",
    "memoryd_tokens_today": "tokens of this UTC day, in and out",
    "memoryd_cost_dollars_today": "US dollars of this UTC day, where prices are set",
    "memoryd_requests_per_day_limit": "limits.requests_per_day",
    "memoryd_tokens_per_day_limit": "limits.tokens_per_day",
    "memoryd_cost_dollars_per_day_limit": "limits.cost_per_day; 0 means no cap",
    "memoryd_left_out_sessions": "sessions that are left out or rest, by reason",
    "memoryd_disk_bytes": "bytes below MEMORYD_HOME, by part",
    "memoryd_disk_free_bytes": "bytes that the disk has left",
}


def exposition(report: Mapping[str, Any]) -> str:
    """Render the metrics; families without a sample are left out."""
    told = []
    for name, samples in _samples(report).items():
        if samples:
            told += [f"# HELP {name} {_escaped(MEANING[name])}", f"# TYPE {name} gauge"]
            told += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    return "\n".join(told) + "\n"


def _samples(report: Mapping[str, Any]) -> dict[str, list[tuple[Labels, float]]]:
    stages, today, disk, findings = report["stages"], report["today"], report["disk"], report["health"]
    return {
        "memoryd_info": [({"version": report["version"]}, 1)],
        "memoryd_up": [({}, report["running"])],
        "memoryd_start_time_seconds": [({}, report["since"])] if report["running"] else [],
        "memoryd_degraded": [({}, any(item["severity"] != "info" for item in findings))],
        "memoryd_findings": _counted(findings, "severity", "id"),
        "memoryd_jobs": [
            ({"kind": kind, "status": status}, stage[status])
            for kind, stage in stages.items()
            for status in ("pending", "running", "done", "error")
        ],
        "memoryd_waiting_jobs": _counted(report["waiting"], "kind", "reason"),
        "memoryd_last_success_time_seconds": [
            ({"kind": kind}, stage["last_success_at"])
            for kind, stage in stages.items()
            if stage["last_success_at"] is not None
        ],
        "memoryd_requests_today": [({}, today["requests"])],
        "memoryd_tokens_today": [({}, today["tokens"])],
        "memoryd_cost_dollars_today": [({}, today["cost"])],
        "memoryd_requests_per_day_limit": [({}, today["caps"]["requests_per_day"])],
        "memoryd_tokens_per_day_limit": [({}, today["caps"]["tokens_per_day"])],
        "memoryd_cost_dollars_per_day_limit": [({}, today["caps"]["cost_per_day"])],
        "memoryd_left_out_sessions": [({"reason": reason}, n) for reason, n in sorted(report["excluded"].items())],
        "memoryd_disk_bytes": [({"part": part}, size or 0) for part, size in disk.items() if part != "free"],
        "memoryd_disk_free_bytes": [({}, disk["free"])] if disk["free"] is not None else [],
    }


def _counted(items: Iterable[Mapping[str, Any]], *names: str) -> list[tuple[Labels, float]]:
    """Count what bears the same values under `names`: a sample's labels stand but once."""
    counts: dict[tuple[str, ...], int] = {}
    for item in items:
        values = tuple(str(item[name]) for name in names)
        counts[values] = counts.get(values, 0) + 1
    return [(dict(zip(names, values, strict=True)), number) for values, number in sorted(counts.items())]


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value, quotes=True)}"' for name, value in labels.items()) + "}"


def _escaped(text: str, *, quotes: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if quotes else escaped


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
