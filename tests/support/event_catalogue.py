"""The catalogue of log events as README shows it: `python -m tests.support.event_catalogue` writes it there anew."""

import sys
from pathlib import Path

from memoryd import logs

README = Path(__file__).parents[2] / "README.md"
BEGIN = "<!-- events: begin -->"
END = "<!-- events: end -->"


def catalogue() -> str:
    """Return a table of every event: its level, its meaning, and the fields that are its own."""
    rows = [
        f"| `{name}` | {event.level} | {event.meaning} | {', '.join(event.fields)} |"
        for name, event in sorted(logs.EVENTS.items())
    ]
    return "\n".join(["| event | level | what it means | fields |", "| --- | --- | --- | --- |", *rows])


def written_into(readme: str) -> str:
    """Return README with the catalogue of now."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{catalogue()}\n\n{END}{after}"


def main() -> int:
    README.write_text(written_into(README.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
