"""Measure redaction, and write what was found to tests/bench/results/redact.{json,md}.

    python -m tests.bench.redact

The text is what sessions hold: words and outputs of the recorded sessions of every agent, program text and prose of
this repository, with a secret in every 256 KB. In each round memoryd and json take turns, and medians are compared; a
plain loop over the same shapes, which is slow, is timed once over a part. Hostile texts are measured at one and two
times a length: what takes more than 2.5 times as long is not linear.
"""

import argparse
import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import process_time

from memoryd.redact import Redactor
from memoryd.redact_rules import shape_sources
from tests.support.secrets import HOSTILE, SHAPES

REPOSITORY = Path(__file__).parents[3]
RESULTS = Path(__file__).parents[1] / "results"
MEGABYTE = 1_000_000
PIECE_BYTES = 64_000
"""About what a long tool output holds: evidence is redacted item by item."""
PIECES_PER_SECRET = 4
KB_PER_SECRET = PIECES_PER_SECRET * PIECE_BYTES // 1000
LEAST_SAID = 40
WANTED_MB_PER_SECOND = 15.0
WANTED_GROWTH = 2.5
HOSTILE_CHARS = 400_000


def main() -> int:
    parser = argparse.ArgumentParser(description="redaction beside a plain loop over the same rules, and json")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=6)
    options = parser.parse_args()
    texts = {"sessions": sessions(), "programs": programs(), "prose": prose()}
    samples = {name: pieces(text, options.megabytes) for name, text in texts.items()}
    samples["all"] = [piece for some in zip(*samples.values(), strict=False) for piece in some]
    speeds = {name: speeds_over(some, options.rounds) for name, some in samples.items()}
    growth = {piece[:24]: growth_of(piece) for piece in HOSTILE}
    report = {
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": options.rounds,
        "megabytes_each": options.megabytes,
        "mb_per_second": speeds,
        "growth_at_twice_the_length": growth,
        "worst_growth": max(growth.values()),
        "met": speeds["all"]["memoryd"] >= WANTED_MB_PER_SECOND and max(growth.values()) <= WANTED_GROWTH,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "redact.json").write_text(json.dumps(report, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")
    text = markdown(report, speeds, growth)
    (RESULTS / "redact.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def sessions() -> str:
    """Return what was said and printed in the recorded sessions of every agent: all longer strings of their JSON."""
    found = sorted(path for path in (REPOSITORY / "tests" / "fixtures").rglob("*.json*") if path.suffix != ".zst")
    said: list[str] = []
    for path in found:
        text = path.read_text(encoding="utf-8", errors="replace")
        for document in [text] if path.suffix == ".json" else text.splitlines():
            with suppress(ValueError):
                said += strings_in(json.loads(document))
    return "\n".join(text for text in said if len(text) >= LEAST_SAID)


def strings_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings_in(each)


def programs() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "memoryd").rglob("*.py")))


def prose() -> str:
    folders = (REPOSITORY, REPOSITORY / "memoryd", REPOSITORY / ".github")
    found = {path for folder in folders for path in folder.rglob("*.md") if "fixtures" not in path.parts}
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(found))


def pieces(text: str, megabytes: int) -> list[str]:
    """Cut a text, repeated as often as needed, into pieces of which every fourth holds a secret."""
    whole = text * (megabytes * MEGABYTE // len(text) + 1)
    secrets = list(SHAPES.values())
    cuts = range(0, megabytes * MEGABYTE, PIECE_BYTES)
    half = PIECE_BYTES // 2
    found = []
    for number, at in enumerate(cuts):
        secret = "" if number % PIECES_PER_SECRET else secrets[number // PIECES_PER_SECRET % len(secrets)]
        found.append(f"{whole[at : at + half]}\n{secret}\n{whole[at + half : at + 2 * half]}")
    return found


def speeds_over(some: list[str], rounds: int) -> dict[str, float]:
    """Return megabytes a second of processor time by contender; the contenders take turns."""
    redactor, plain = Redactor(), [re.compile(source) for _, _, source in shape_sources()]

    contenders: dict[str, Callable[[], object]] = {
        "memoryd": lambda: [redactor.clean(piece) for piece in some],
        "json there and back": lambda: [json.loads(json.dumps(piece)) for piece in some],
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            taken[name].append(seconds(work))
    size = sum(len(piece.encode("utf-8", "surrogatepass")) for piece in some) / MEGABYTE
    speeds = {name: round(size / median(times), 1) for name, times in taken.items()}
    few = some[: max(1, len(some) // 8)]

    def loop() -> None:
        for piece in few:
            for pattern in plain:
                for _ in pattern.finditer(piece):
                    pass

    return speeds | {"plain loop": round(sum(len(piece.encode()) for piece in few) / MEGABYTE / seconds(loop), 2)}


def growth_of(piece: str) -> float:
    """Return how many times as long twice a hostile text takes; the best of three, since noise only adds."""
    redactor = Redactor()
    once, twice = (piece * (times * HOSTILE_CHARS // len(piece)) for times in (1, 2))
    short = min(seconds(lambda: redactor.clean(once)) for _ in range(3))
    long = min(seconds(lambda: redactor.clean(twice)) for _ in range(3))
    return round(long / short, 2)


def seconds(work: Callable[[], object]) -> float:
    begun = process_time()
    work()
    return max(process_time() - begun, 1e-6)


def markdown(report: dict[str, object], speeds: dict[str, dict[str, float]], growth: dict[str, float]) -> str:
    setting = f"{report['date']}; {report['machine']}, load {report['load']}; {report['rounds']} rounds over"
    lines = [
        "# Redaction, measured",
        "",
        f"{setting} {report['megabytes_each']} MB of each, a secret in every {KB_PER_SECRET} KB",
        "",
        "| MB/s of processor time | memoryd | plain loop | json there and back | times the plain loop |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, speed in speeds.items():
        ratio = speed["memoryd"] / speed["plain loop"]
        cells = (speed["memoryd"], speed["plain loop"], speed["json there and back"], f"{ratio:.1f}")
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    worst = max(growth, key=lambda piece: growth[piece])
    wanted = (
        f"at least {WANTED_MB_PER_SECOND:g} MB/s over all, at most {WANTED_GROWTH:g} times the time for twice the text"
    )
    hostile = f"Of {len(growth)} hostile texts of {HOSTILE_CHARS:,} characters, twice the length took"
    ratios = f"{growth[worst]:g} times as long at worst (`{worst!r}`), {median(growth.values()):g} times in the middle"
    lines += ["", f"Wanted: {wanted}: {'met' if report['met'] else 'missed'}.", "", f"{hostile} {ratios}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
