"""A strict reader of Prometheus' text exposition format, version 0.0.4: what it takes, a scraper takes."""

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{((?:{_LABEL})(?:,{_LABEL})*)\}})? (\S+)")
_HELP = re.compile(rf"# HELP ({_NAME}) ((?:[^\\\n]|\\[\\n])*)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram|summary|untyped)")


@dataclass
class Family:
    """One metric: its help, its type, and the value of each set of labels."""

    help: str
    kind: str = ""
    samples: dict[frozenset[tuple[str, str]], float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Family]:
    """Read it; raises AssertionError for whatever the format does not allow."""
    assert text.endswith("\n"), "the last line ends with a line feed"
    families: dict[str, Family] = {}
    current = ""
    for line in text[:-1].split("\n"):
        if told := _HELP.fullmatch(line):
            current = told[1]
            assert current not in families, f"{current}: the lines of a family stand together"
            families[current] = Family(_unescaped(told[2]))
        elif told := _TYPE.fullmatch(line):
            assert told[1] == current, f"{line}: TYPE follows the HELP of its family"
            assert not families[current].samples, f"{line}: TYPE stands before the samples"
            families[current].kind = told[2]
        else:
            told = _SAMPLE.fullmatch(line)
            assert told, f"no sample: {line!r}"
            assert told[1] == current, f"{line}: stands outside of its family"
            labels = [(name, _unescaped(value)) for name, value in re.findall(_LABEL, told[2] or "")]
            assert len({name for name, _ in labels}) == len(labels), f"{line}: a label stands twice"
            assert frozenset(labels) not in families[current].samples, f"{line}: a sample stands twice"
            families[current].samples[frozenset(labels)] = float(told[len(told.groups())])
    assert all(family.kind and family.samples for family in families.values())
    return families


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)
