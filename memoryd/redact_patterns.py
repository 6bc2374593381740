"""The user's own patterns (privacy.patterns): read, and refused when they could take for ever.

Python's engine tries alternatives one after the other, so that a pattern which can match the same text in many ways
takes exponential time on a text that nearly matches. Such a pattern is told by its parse tree: a repetition in which
nothing fixed separates what is repeated, or whose alternatives begin alike. What is left costs at most STEPS steps for
each place of a window of WINDOW characters, whatever the text.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias

from memoryd.errors import ConfigError

WINDOW: Final = 4_096
"""Characters within which a pattern is tried at a time."""
OVERLAP: Final = 1_024
"""What the next window sees of the one before: matches of up to this length are never cut."""
CUSTOM: Final = "custom"
STEPS: Final = 20_000
"""Ways in which the repetitions of a pattern may share out the same characters."""

_parser: Any = import_module("re._parser")
_OTHERS: Final = frozenset({0xE9, 0x4E2D})
_ALPHABET: Final = frozenset(range(128)) | _OTHERS
"""Samples of all characters; of what is not ASCII two stand for the rest, in a set as in what it leaves out."""
_Argument: TypeAlias = Any
"""What a node of the parse tree holds: a shape for each operator, which nothing but re's own sources describes."""
_Tree: TypeAlias = Sequence[tuple[Any, _Argument]]


def read_pattern(pattern: str) -> re.Pattern[str]:
    """Compile one of the user's patterns. Raises ConfigError when it is none, or one that could take too long."""
    try:
        compiled, tree = _read(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"privacy.patterns: {pattern!r} is not a regular expression: {error}",
            remedy="correct it, or put a backslash before what is meant literally",
        ) from error
    if why := why_slow(tree, compiled.flags):
        raise ConfigError(
            f"privacy.patterns: {pattern!r} could take for ever: {why}",
            remedy="repeat fewer things, or fewer times ({1,40} in place of +), or put something fixed between them",
        )
    return compiled


def slow_because(pattern: str) -> str | None:
    """Say why a sound pattern could take for ever, None when it could not."""
    compiled, tree = _read(pattern)
    return why_slow(tree, compiled.flags)


def _read(pattern: str) -> tuple[re.Pattern[str], _Tree]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern), _parser.parse(pattern)


def kind_of(pattern: re.Pattern[str]) -> str:
    """Return what the secrets of a pattern are called: the name of its first named group, if it has one."""
    name = next(iter(pattern.groupindex), CUSTOM).lower()
    return name if name.isascii() else CUSTOM


def matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield where a pattern matches, in windows that overlap: twice the text costs twice the time.

    Matches may overlap each other at the edges of windows, and none that is longer than a window is found whole.
    """
    for start in range(0, max(1, len(text) - OVERLAP), WINDOW - OVERLAP):
        for match in pattern.finditer(text, start, start + WINDOW):
            if match.end() > match.start():
                yield match.span()


def why_slow(tree: _Tree, flags: int) -> str | None:
    """Say what makes a pattern slow, None when nothing does."""
    for operator, argument in _all_nodes(tree):
        if str(operator) == "GROUPREF":
            return "it refers back to what a group matched"
        if _is_repeat(operator) and argument[1] > 1 and (why := _why_ambiguous(argument[2], flags)):
            return why
    if _ways(list(_steps(tree, flags))) > STEPS:
        return "several of its repetitions can match the same characters"
    return None


def _why_ambiguous(body: _Tree, flags: int) -> str | None:
    """Say why what is repeated could be read in several ways."""
    inner = [repeat for repeat in _repeats(body) if repeat[0] != repeat[1]]
    taken = frozenset().union(*(_characters(each[2], flags) for each in inner))
    separators = [_characters([node], flags) for node in body if str(node[0]) in ("LITERAL", "IN", "NOT_LITERAL")]
    if inner and not any(fixed and not fixed & taken for fixed in separators):
        return "a repetition stands in another, and nothing fixed separates its rounds"
    for operator, argument in _all_nodes(body):
        if str(operator) != "BRANCH":
            continue
        firsts = [_first([*branch, *body], flags) for branch in argument[1]]
        if any(one & other for at, one in enumerate(firsts) for other in firsts[:at]):
            return "alternatives that begin alike are repeated"
    return None


_Step: TypeAlias = tuple[frozenset[int], int]
"""What a part of a pattern matches, and how many lengths it may have: 1 for what is fixed."""


def _steps(tree: _Tree, flags: int) -> Iterator[_Step]:
    """Yield the parts of a pattern in order; of alternatives, what all of them match in as many ways as the freest."""
    for operator, argument in tree:
        if _is_repeat(operator):
            yield _characters(argument[2], flags), min(int(argument[1]), WINDOW) - int(argument[0]) + 1
        elif str(operator) == "BRANCH":
            ways = [_ways([*_steps(branch, flags), _END]) for branch in argument[1]]
            yield _characters([(operator, argument)], flags), max(ways)
        elif below := _below(operator, argument):
            for each in below:
                yield from _steps(each, flags)
        elif characters := _matched(operator, argument, flags):
            yield characters, 1


_END: Final[_Step] = (frozenset(), 1)


def _ways(steps: list[_Step]) -> int:
    """Return in how many ways the parts can share out one character, repeated, before the match fails after all.

    What is fixed and does not match that character parts them; the last part cannot fail any more.
    """
    worst = 1
    for char in _ALPHABET:
        ways = 1
        for characters, lengths in steps[:-1]:
            if char in characters:
                ways *= lengths
                worst = max(worst, ways)
            elif lengths == 1:
                ways = 1
    return worst


def _is_repeat(operator: object) -> bool:
    return str(operator) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def _repeats(tree: _Tree) -> Iterator[tuple[int, int, _Tree]]:
    """Yield (least, most, what) of every repetition, those inside others too."""
    for operator, argument in _all_nodes(tree):
        if _is_repeat(operator):
            yield int(argument[0]), int(argument[1]), argument[2]


def _all_nodes(tree: _Tree) -> Iterator[tuple[Any, Any]]:
    for operator, argument in tree:
        yield operator, argument
        for below in _below(operator, argument):
            yield from _all_nodes(below)


def _below(operator: object, argument: _Argument) -> list[_Tree]:
    """Return the trees that a node holds."""
    name = str(operator)
    if _is_repeat(operator):
        return [argument[2]]
    if name == "BRANCH":
        return list(argument[1])
    if name == "SUBPATTERN":
        return [argument[-1]]
    if name == "ATOMIC_GROUP":
        return [argument]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [argument[1]]
    if name == "GROUPREF_EXISTS":
        return [tree for tree in argument[1:] if tree]
    return []


def _characters(tree: _Tree, flags: int) -> frozenset[int]:
    """Return the characters that anything in a tree matches."""
    found: frozenset[int] = frozenset()
    for operator, argument in _all_nodes(tree):
        found |= _matched(operator, argument, flags)
    return found


def _first(tree: _Tree, flags: int) -> frozenset[int]:
    """Return the characters that a match of a tree can begin with; more than those where it may begin with nothing."""
    found: frozenset[int] = frozenset()
    for operator, argument in tree:
        name = str(operator)
        if name == "AT" or name.startswith("ASSERT"):
            continue
        below = _below(operator, argument)
        found |= frozenset().union(*(_first(each, flags) for each in below)) | _matched(operator, argument, flags)
        if not (_is_repeat(operator) and argument[0] == 0):
            return found
    return found


def _matched(operator: object, argument: _Argument, flags: int) -> frozenset[int]:
    """Return the characters that one node matches by itself."""
    name = str(operator)
    if name == "ANY":
        return _ALPHABET
    if name == "LITERAL":
        return _members([(operator, argument)], flags)
    if name == "NOT_LITERAL":
        return (_ALPHABET - _members([(operator, argument)], flags)) | _OTHERS
    if name != "IN":
        return frozenset()
    negated = str(argument[0][0]) == "NEGATE"
    found = _members(argument[negated:], flags)
    return (_ALPHABET - found) | _OTHERS if negated else found


def _members(members: _Tree, flags: int) -> frozenset[int]:
    """Return what any member of a set stands for: characters, ranges of them, or classes such as digits."""
    found = frozenset(char for char in _ALPHABET for kind, value in members if _is_member(char, str(kind), value))
    if flags & re.IGNORECASE:
        found |= {ord(chr(char).swapcase()) for char in found if char < 128}
    return found


def _is_member(char: int, kind: str, value: _Argument) -> bool:
    if kind == "RANGE":
        return value[0] <= char <= value[1] or (char > 127 and value[1] > 127)
    if kind == "CATEGORY":
        letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).rpartition("_")[2]]
        return re.match(f"\\{letter.upper() if '_NOT_' in str(value) else letter}", chr(char)) is not None
    return bool(value == char) or (char > 127 and value > 127)
