"""Putting an entry into a settings text and taking it out again leaves everything else as it was, to the byte."""

import json
import random
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.control.connecting.codex import TOML_BEGIN, TOML_END
from memoryd.control.connecting.edits import Block, JsonEntry, Unusable
from memoryd.control.connecting.json_edit import Seam
from memoryd.control.connecting.jsonc import STRICT, Dialect, NotJson, parse
from memoryd.control.connecting.target import MARKDOWN_BEGIN, MARKDOWN_END

JSONC = Dialect(comments=True, trailing_commas=True)
SHAPE = re.compile(r"ours \w+")
GROUP = {"matcher": "startup", "hooks": [{"type": "command", "command": "ours 1", "timeout": 10}]}
HOOK = JsonEntry(("hooks", "SessionStart"), GROUP, "ours 1", SHAPE)
HOOK_JSONC = JsonEntry(("hooks", "SessionStart"), GROUP, "ours 1", SHAPE, JSONC)
LINE = JsonEntry(("instructions",), "/ours", "/ours", re.compile("/ours"), JSONC)
NAMES = st.sampled_from(["hooks", "SessionStart", "Stop", "instructions", "model", "a b", 'q"', "", "ключ"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 99)
    | st.sampled_from([1.5, "x", "{", "/* no */", "// no", 'a"b', "\\", "日本"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
OTHER_HOOKS = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(st.just({"type": "command", "command": "theirs"}), max_size=2)}),
    max_size=2,
)
DOCUMENTS = st.dictionaries(
    NAMES.filter(lambda name: name not in ("hooks", "instructions")), VALUES, max_size=4
).flatmap(
    lambda rest: st.fixed_dictionaries(
        {},
        optional={
            "hooks": st.fixed_dictionaries({}, optional={"SessionStart": OTHER_HOOKS, "Stop": OTHER_HOOKS}),
            "instructions": st.lists(st.sampled_from(["a.md", "b.md"]), max_size=3),
        },
    ).map(lambda known: shuffled(known | rest))
)


def shuffled(document: dict[str, Any]) -> dict[str, Any]:
    """Order does not stand in a dictionary's equality, but in a file it does: sort by something arbitrary."""
    return dict(sorted(document.items(), key=lambda pair: hash_of(pair[0])))


def hash_of(name: str) -> int:
    return sum(ord(letter) * (place + 7) for place, letter in enumerate(name)) % 97


class Writer:
    """Writes a document as some person or program might: any layout, comments and trailing commas where allowed."""

    def __init__(self, seed: int, dialect: Dialect) -> None:
        self.random = random.Random(seed)
        self.dialect = dialect
        self.line_end = self.random.choice(["\n", "\n", "\r\n"])
        self.unit = self.random.choice(["  ", "    ", "\t", " "])

    def write(self, document: Any) -> str:
        return self.filler() + self.value(document, "") + self.random.choice(["", self.line_end, self.line_end * 2])

    def value(self, value: Any, indent: str) -> str:
        if isinstance(value, dict):
            members = [self.member(key, inner, indent + self.unit) for key, inner in value.items()]
            return self.children("{", members, "}", indent)
        if isinstance(value, list):
            return self.children("[", [self.value(inner, indent + self.unit) for inner in value], "]", indent)
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5)

    def member(self, key: str, value: Any, indent: str) -> str:
        return f"{json.dumps(key, ensure_ascii=False)}{self.space()}:{self.space()}{self.value(value, indent)}"

    def children(self, opening: str, written: list[str], closing: str, indent: str) -> str:
        style = self.random.choice(["lines", "lines", "one line", "chaos"])
        text = opening
        for index, child in enumerate(written):
            comma = "" if index == len(written) - 1 and not self.trailing() else ","
            text += self.lead(style, indent + self.unit) + child + self.between(style) + comma + self.comment(style)
        return text + (self.lead(style, indent) if written or self.random.random() < 0.3 else "") + closing

    def lead(self, style: str, indent: str) -> str:
        if style == "lines":
            return self.line_end + indent
        return self.random.choice(["", " "]) if style == "one line" else self.filler()

    def between(self, style: str) -> str:
        return self.filler() if style == "chaos" else ""

    def comment(self, style: str) -> str:
        if not self.dialect.comments or self.random.random() < 0.8:
            return ""
        return " /* c, } */" if style == "one line" else f" // c ] {self.line_end}"

    def trailing(self) -> bool:
        return self.dialect.trailing_commas and self.random.random() < 0.5

    def space(self) -> str:
        return self.random.choice(["", " ", "  "])

    def filler(self) -> str:
        choices = ["", "", " ", self.line_end, f"{self.line_end}{self.line_end}\t"]
        choices += [f"// {{ {self.line_end}", "/* x\n, */"] if self.dialect.comments else []
        return self.random.choice(choices)


def meaning(text: str, dialect: Dialect) -> Any:
    return parse(text.removeprefix("\ufeff"), dialect).plain()


@given(DOCUMENTS, st.integers(0, 10**6), st.sampled_from([(HOOK, STRICT), (HOOK_JSONC, JSONC), (LINE, JSONC)]))
def test_any_document_takes_an_entry_in_and_gives_it_out_again(
    document: dict[str, Any], seed: int, how: tuple[JsonEntry, Dialect]
) -> None:
    entry, dialect = how
    text = Writer(seed, dialect).write(document)
    assert meaning(text, dialect) == document
    changed, seam = entry.insert(text)
    expected: Any = json.loads(json.dumps(document))
    place = expected
    for name in entry.path[:-1]:
        place = place.setdefault(name, {})
    place.setdefault(entry.path[-1], []).append(entry.value)
    assert meaning(changed, dialect) == expected
    assert entry.mine(changed) == entry.mark
    assert entry.mine(text) is None
    assert entry.remove(changed, seam) == text
    assert entry.remove(text, seam) == text


@given(DOCUMENTS, st.integers(0, 10**6), VALUES)
def test_what_a_person_adds_after_ours_survives_its_removal(document: dict[str, Any], seed: int, value: Any) -> None:
    """Two insertions, the first taken out: as if only the second had been made, up to white space."""
    text = Writer(seed, JSONC).write(document)
    theirs = JsonEntry(("hooks", "SessionStart"), {"theirs": value}, "-", SHAPE, JSONC)
    changed, seam = HOOK_JSONC.insert(text)
    both, _ = theirs.insert(changed)
    alone, _ = theirs.insert(text)
    left = HOOK_JSONC.remove(both, seam)
    assert meaning(left, JSONC) == meaning(alone, JSONC)
    assert "".join(left.split()).replace(",", "") == "".join(alone.split()).replace(",", "")


@given(st.text(), st.sampled_from([STRICT, Dialect(comments=True), JSONC]))
def test_what_is_no_json_is_said_to_be_none(text: str, dialect: Dialect) -> None:
    try:
        expected = json.loads(text, parse_constant=unknown, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        if dialect is STRICT:
            with pytest.raises(NotJson):
                parse(text, dialect)
    else:
        assert parse(text, dialect).plain() == expected


def unknown(name: str) -> None:
    raise ValueError(name)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("twice")
    return dict(pairs)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "a name in quotation marks is missing"),
        ('{"a" 1}', "a colon is missing"),
        ('{"a": 1\n "b": 2}', "a comma or } is missing at line 2"),
        ('{"a": 1,}', "a comma stands before }"),
        ('{"a": tru}', "no JSON value"),
        ('{"a": NaN}', "no JSON value"),
        ('{"a": }', "a value is missing"),
        ('{"a": "x\n"}', "a string is not closed"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": 1} x', "after the end"),
        ('// c\n{"a": 1}', "no JSON value"),
        ("[" * 300, "too deep"),
        ("1" * 5000, "too long"),
        ("[]", "the whole document is no object"),
        ('{"hooks": []}', "hooks is no object"),
        ('{"hooks": null}', "hooks is no object"),
        ('{"hooks": {"SessionStart": {}}}', "hooks.SessionStart is no list"),
    ],
)
def test_a_broken_document_is_refused_with_its_reason(text: str, complaint: str) -> None:
    with pytest.raises(Unusable, match=re.escape(complaint)):
        HOOK.insert(text)


def test_the_entry_looks_like_its_neighbours() -> None:
    text = '{\n\t"model": "opus", // fast\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n'
    changed, _ = JsonEntry(("hooks", "SessionStart"), {"a": [1]}, "-", SHAPE, JSONC).insert(text)
    assert changed == (
        '{\n\t"model": "opus", // fast\n\t"hooks": {\n\t\t"Stop": [],\n\t\t"SessionStart": [\n\t\t\t{\n\t\t\t\t"a": ['
        "\n\t\t\t\t\t1\n\t\t\t\t]\n\t\t\t}\n\t\t]\n\t}\n}\n"
    )


def test_a_byte_order_mark_and_an_empty_file_are_kept() -> None:
    changed, seam = HOOK.insert('\ufeff{"a": 1}')
    assert changed.startswith('\ufeff{"a": 1, "hooks"')
    assert HOOK.remove(changed, seam) == '\ufeff{"a": 1}'
    made, _ = HOOK.insert("")
    assert json.loads(made) == {"hooks": {"SessionStart": [GROUP]}}
    assert made.endswith("}\n")


def test_of_a_group_that_holds_other_hooks_too_only_ours_is_cut() -> None:
    changed, seam = HOOK.insert("{}")
    both = changed.replace('"timeout": 10\n', '"timeout": 30\n').replace(
        '"hooks": [\n          {', '"hooks": [\n          {"type": "command", "command": "theirs"},\n          {'
    )
    left = HOOK.remove(both, seam)
    group = {"matcher": "startup", "hooks": [{"type": "command", "command": "theirs"}]}
    assert json.loads(left) == {"hooks": {"SessionStart": [group]}}


def test_another_homes_entry_is_seen_and_never_taken_for_ours() -> None:
    other = JsonEntry(HOOK.path, GROUP, "ours 2", SHAPE)
    changed, seam = HOOK.insert("{}")
    assert other.mine(changed) is None
    assert other.others(changed) == "ours 1"
    assert HOOK.others(changed) is None
    assert other.remove(changed, seam) == changed


def check_toml(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unusable(str(error)) from None


MARKDOWN = Block(MARKDOWN_BEGIN, MARKDOWN_END, ("@/ours",), "@/ours", lambda _text: None)
TOML = Block(TOML_BEGIN, TOML_END, ("[[hooks.SessionStart]]", "ours = 1"), "ours = 1", check_toml)
TOML_LINES = st.lists(
    st.sampled_from(
        ['model = "x"', "# a comment", "", "[features]", "[[hooks.Stop]]", "x = '''\n'''", "[mcp_servers.a]"]
    ),
    max_size=6,
)


@given(st.text(), st.sampled_from(["", "\n", "\r\n"]))
def test_any_markdown_takes_a_block_in_and_gives_it_out_again(text: str, end: str) -> None:
    changed, seam = MARKDOWN.insert(text + end)
    assert MARKDOWN.mine(changed) == "@/ours"
    assert MARKDOWN.remove(changed, seam) == text + end
    added = MARKDOWN.remove(changed + "added\n", seam)
    assert added.startswith(text + end)
    assert added.endswith("added\n")
    assert added.removeprefix(text + end).removesuffix("added\n") in ("", "\n", "\r\n")


@given(TOML_LINES, st.booleans())
def test_any_toml_takes_a_block_in_and_gives_it_out_again(lines: list[str], ended: bool) -> None:
    text = "\n".join(lines) + "\n" * ended
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(Unusable):
            TOML.insert(text)
        return
    changed, seam = TOML.insert(text)
    after = tomllib.loads(changed)
    assert after["hooks"].pop("SessionStart") == [{"ours": 1}]
    assert before.get("hooks", {}) == after["hooks"]
    assert TOML.remove(changed, seam) == text


@pytest.mark.parametrize("text", ["hooks = {Stop = []}\n", "[hooks]\nSessionStart = []\n", "hooks = 1\n"])
def test_toml_that_leaves_no_place_for_a_block_is_refused(text: str) -> None:
    with pytest.raises(Unusable):
        TOML.insert(text)


def test_a_block_of_another_home_is_left_alone() -> None:
    other = Block(MARKDOWN_BEGIN, MARKDOWN_END, ("@/other",), "@/other", lambda _text: None)
    changed, _ = MARKDOWN.insert("words\n")
    assert other.mine(changed) is None
    assert "@/ours" in str(other.others(changed))
    assert other.remove(changed, Seam()) == changed
