"""How `memoryd status` tells a person what it found: sections of rows, as plain lines or as a terminal's screen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memoryd.control import sizes
from memoryd.control.console import plural, size_of, span, when
from memoryd.control.obstacles import Obstacle
from memoryd.control.overview import Picture
from memoryd.control.wording import job_name, meaning_of_wait, todo_of_rest
from memoryd.ledger.states import JobKind
from memoryd.pipeline.eligibility import MEANING, Waiting
from memoryd.text import spelled_out

if TYPE_CHECKING:
    from rich.console import Group

MOST_WAITS: Final = 8
WIDEST_LABEL: Final = 44
STAGES: Final = {
    JobKind.STAGE1: "sessions (memory_stage1)",
    JobKind.CONSOLIDATE: "memory folder (memory_consolidate_global)",
}
DOING: Final = {JobKind.STAGE1: "extracts", JobKind.CONSOLIDATE: "works on"}
COLOURS: Final = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what, and what of it; `style` is a colour of rich's."""

    label: str
    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under a heading."""

    title: str
    rows: Sequence[Row]


def headline(picture: Picture) -> str:
    """Say whether it runs, and since when."""
    report = picture.report
    if not report["running"]:
        return f"memoryd {report['version']}: not running"
    return f"memoryd {report['version']}: running (pid {report['pid']}, since {when(report['since'], picture.now)})"


def sections(picture: Picture) -> list[Section]:
    """Return what one screen holds, top to bottom; sections without a row are left out."""
    report = picture.report
    told = [
        Section("now", list(_now(picture))),
        Section("waits", list(_waits(picture))),
        Section("last success", list(_stages(report["stages"], picture.now))),
        Section("spent today (UTC)", list(_today(picture))),
        Section("left out, until the session or a setting changes", list(_left_out(picture))),
        Section("on disk", list(_disk(report["disk"]))),
        Section("health", list(_health(report["health"]))),
    ]
    return [section for section in told if section.rows]


def lines(picture: Picture) -> list[str]:
    """Tell it in plain lines."""
    told = [headline(picture)]
    for section in sections(picture):
        told.append(section.title)
        width = min(max(len(row.label) for row in section.rows), WIDEST_LABEL)
        told += [f"  {row.label:<{width}}  {row.text}".rstrip() for row in section.rows]
    return told


def screen(picture: Picture) -> "Group":
    """Tell it as what rich draws."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    head = Text(headline(picture), style="bold green" if picture.report["running"] else "bold")
    drawn: list[Text | Padding] = [head]
    for section in sections(picture):
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for row in section.rows:
            table.add_row(Text(spelled_out(row.label), style=row.style), Text(spelled_out(row.text)))
        drawn += [Text(section.title, style="bold cyan"), Padding(table, (0, 0, 0, 2))]
    return Group(*drawn)


def _now(picture: Picture) -> Iterator[Row]:
    report, now = picture.report, picture.now
    for job in report["doing"]:
        reason = picture.why.get(f"{job['kind']} {job['key']}", "")
        since = f"since {when(job['since'], now)}"
        doing = f"{DOING[JobKind(job['kind'])]} {job_name(job['kind'], job['key'])}"
        yield Row(doing, f"{since}: {reason}" if reason else since, "green")
    if report["doing"]:
        yield from (_obstacle(each, now, "and") for each in picture.obstacles if each.reason == "lock")
        return
    for each in picture.obstacles:
        yield _obstacle(each, now, "does nothing")
    if picture.ready:
        verb = "is" if picture.ready == 1 else "are"
        taken = "taken now, one after the other" if report["running"] else "taken by the next pass"
        yield Row("ready", f"{plural(picture.ready, 'job')} {verb} {taken}")
    elif not picture.obstacles:
        yield Row("does nothing", _idle(picture))


def _obstacle(each: Obstacle, now: float, label: str) -> Row:
    times = [f"since {when(each.since, now)}"] if each.since is not None else []
    times += [f"until {when(each.until, now)}"] if each.until is not None else []
    return Row(label, f"{each.reason}: {', '.join([each.message, *times])}; {each.remedy}", "yellow")


def _idle(picture: Picture) -> str:
    """Say why a daemon that nothing keeps from working does nothing."""
    report, now = picture.report, picture.now
    firsts = [(float(job["until"]), str(job["reason"])) for job in report["waiting"]]
    firsts += [(each.first_at, reason) for reason, each in picture.resting.items() if each.first_at is not None]
    if firsts:
        until, reason = min(firsts)
        return f"nothing is due before {when(until, now)}: {reason}; what waits is told below"
    last = max((stage["last_success_at"] or 0 for stage in report["stages"].values()), default=0)
    since = f" since {when(last, now)}" if last else ""
    return (
        f"no new input{since}: everything that may be read is covered;"
        f" the sessions folders are looked at every {span(picture.scan_seconds)}"
    )


def _waits(picture: Picture) -> Iterator[Row]:
    report, now = picture.report, picture.now
    for job in report["waiting"][:MOST_WAITS]:
        why = f"{job['reason']}: {meaning_of_wait(job['reason'])}"
        yield Row(job_name(job["kind"], job["key"]), f"until {when(job['until'], now)}; {why}")
    if len(report["waiting"]) > MOST_WAITS:
        yield Row("", f"and {len(report['waiting']) - MOST_WAITS} more: `memoryd jobs` lists them")
    for reason, each in sorted(picture.resting.items()):
        first = f"the first is due {when(each.first_at, now)}" if each.first_at is not None else todo_of_rest(reason)
        first = f"never by itself: {first}" if reason == Waiting.TOO_OLD else first
        history = f"; first start {when(picture.first_start_at, now)}" if reason == "consent" else ""
        yield Row(plural(each.count, "session"), f"{first}; {reason}: {MEANING[reason]}{history}")


def _stages(stages: Mapping[str, Any], now: float) -> Iterator[Row]:
    for kind, stage in stages.items():
        dead = f", {stage['error']} out of attempts" if stage["error"] else ""
        counts = f"{stage['pending']} pending, {stage['running']} running, {stage['done']} done{dead}"
        yield Row(STAGES[JobKind(kind)], f"{when(stage['last_success_at'], now)}; jobs: {counts}")


def _today(picture: Picture) -> Iterator[Row]:
    today = picture.report["today"]
    caps = today["caps"]
    yield Row("requests", f"{today['requests']:,} of {caps['requests_per_day']:,}")
    yield Row("tokens", f"{today['tokens']:,} of {caps['tokens_per_day']:,}")
    if today["requests"] and not picture.has_prices:
        yield Row("cost", "not known: no prices are set for the provider")
        return
    cap = caps["cost_per_day"]
    yield Row("cost", f"{today['cost']:.2f}" + (f" of {cap:.2f} USD" if cap else " USD, without a cap"))


def _left_out(picture: Picture) -> Iterator[Row]:
    for reason, number in sorted(picture.report["excluded"].items()):
        if reason not in picture.resting:
            yield Row(f"{number} {reason}", MEANING.get(reason, reason))


def _disk(disk: Mapping[str, int | None]) -> Iterator[Row]:
    taken = {part: size for part, size in disk.items() if part in sizes.MEANING and size}
    told = ", ".join(f"{part} {size_of(size)}" for part, size in taken.items()) or "nothing yet"
    free = f"; {size_of(disk['free'])} are free" if disk["free"] is not None else ""
    yield Row(size_of(sum(taken.values())), f"{told}{free}")


def _health(findings: Sequence[Mapping[str, str]]) -> Iterator[Row]:
    if not findings:
        yield Row("ok", "nothing needs a look", "green")
    for item in findings:
        yield Row(item["severity"], f"{item['message']} -> {item['remedy']}", COLOURS[item["severity"]])
