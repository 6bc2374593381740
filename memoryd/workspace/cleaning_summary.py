"""memory_summary.md without what rested on evidence that is gone, or written anew from the handbook that is left."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from memoryd.text import byte_length
from memoryd.workspace.forgotten_words import ForgottenWords
from memoryd.workspace.handbook import EVERYWHERE, Mark, Section, TaskGroup, parse_handbook
from memoryd.workspace.outline import Line, Node, read_outline, render_outline
from memoryd.workspace.summary import (
    OLDER_TOPICS,
    VERSION_LINE,
    OlderScope,
    Part,
    Summary,
    Topic,
    render_summary,
)

_INDEX: Final = Part.INDEX.casefold()
_OLDER: Final = OLDER_TOPICS.casefold()
MAX_KEYWORDS: Final = 8
MAX_PREFERENCES: Final = 12


@dataclass(frozen=True, slots=True)
class Lost:
    """What the summary may no longer speak of: groups by title and cwd (letter case folded), and words.

    `persons` are the lines that are a person's, and stay. `is_nothing`: no evidence went.
    """

    titles: frozenset[str] = frozenset()
    cwds: frozenset[str] = frozenset()
    words: ForgottenWords = field(default_factory=ForgottenWords)
    persons: frozenset[str] = frozenset()
    is_nothing: bool = True


def clean_summary(text: str, lost: Lost) -> tuple[str, list[str]]:
    """Return a summary without what was lost, and what that was; one that loses nothing comes back to the byte."""
    root = read_outline(text)
    removed: list[str] = []
    for part in root.children:
        if part.name == _INDEX:
            for node in list(part.children):
                _clean_index(part, node, lost, removed)
        else:
            _clean_part(part, lost, removed)
    return (render_outline(root), removed) if removed else (text, [])


def summary_of_handbook(handbook_text: str, *, max_bytes: int) -> str:
    """Write a summary that says only what the handbook says: its groups, and what the person stated for all of them."""
    groups = parse_handbook(handbook_text).groups
    stated = [
        bullet.text
        for group in groups
        if group.cwd is None
        for bullet in group.sections.get(Section.PREFERENCES, ())
        if bullet.mark is Mark.STATED
    ]
    summary = Summary(preferences=tuple(stated[:MAX_PREFERENCES]), older=tuple(_older(groups)))
    for lean in (summary, _without(summary, desc=True), _without(summary, desc=True, keywords=True)):
        text = render_summary(lean)
        if byte_length(text) <= max_bytes:
            break
    return text


def _older(groups: Collection[TaskGroup]) -> list[OlderScope]:
    scopes: dict[str, list[Topic]] = {}
    for group in groups:
        keywords = tuple(dict.fromkeys(word for task in group.tasks for word in task.keywords))[:MAX_KEYWORDS]
        scopes.setdefault(group.cwd or EVERYWHERE, []).append(Topic(group.title, keywords, group.scope))
    return [OlderScope(name, tuple(topics)) for name, topics in scopes.items()]


def _without(summary: Summary, *, desc: bool, keywords: bool = False) -> Summary:
    def lean(topic: Topic) -> Topic:
        return replace(topic, desc="" if desc else topic.desc, keywords=() if keywords else topic.keywords)

    older = tuple(replace(scope, topics=tuple(map(lean, scope.topics))) for scope in summary.older)
    return replace(summary, older=older)


def _clean_part(part: Node, lost: Lost, removed: list[str]) -> None:
    """Clean profile, preferences or tips: a bullet goes whole, of prose the sentences go."""
    for line in part.statements:
        if _is_persons(line, lost) or not lost.words.are_in(line.key) or line.lines[0] == VERSION_LINE:
            continue
        removed.append(line.key)
        rest = "" if line.is_bullet else lost.words.without(line.key)
        if rest:
            line.lines, part.is_touched = (rest,), True
        else:
            part.remove([line])


def _clean_index(parent: Node, node: Node, lost: Lost, removed: list[str], scope: str = "") -> None:
    """Clean a scope or a day, and drop it when nothing is left below it."""
    scope = scope if node.level > 3 and scope not in ("", _OLDER) else node.name
    before = len(removed)
    for child in list(node.children):
        _clean_index(node, child, lost, removed, scope)
    topics = [line for line in node.statements if line.under is None]
    for line in topics:
        _clean_topic(node, line, lost, removed, is_lost=scope in lost.cwds)
    if len(removed) > before and not node.statements and not node.children:
        parent.children.remove(node)
        parent.is_touched = True


def _clean_topic(node: Node, topic: Line, lost: Lost, removed: list[str], *, is_lost: bool) -> None:
    if _is_persons(topic, lost):
        return
    below = [line for line in node.statements if line.under is topic]
    title, colon, row = topic.lines[0].partition(": ")
    if is_lost or not lost.titles.isdisjoint(_titles(topic)) or lost.words.are_in(title):
        removed.extend(line.key for line in (topic, *below))
        node.remove([topic])
        return
    for line in [line for line in below if not _is_persons(line, lost) and lost.words.are_in(line.key)]:
        removed.append(line.key)
        node.remove([line])
    kept = [word for word in row.split(", ") if not lost.words.are_in(word)]
    if colon and len(kept) < len(row.split(", ")):
        removed.append(topic.key)
        topic.lines, node.is_touched = (f"{title}: {', '.join(kept)}".rstrip(), *topic.lines[1:]), True


def _titles(topic: Line) -> set[str]:
    """A title may hold `: ` itself: each way to divide the row is a name for it."""
    parts = topic.key.casefold().split(": ")
    return {": ".join(parts[:length]).removesuffix(":") for length in range(1, len(parts) + 1)}


def _is_persons(line: Line, lost: Lost) -> bool:
    return any(row in lost.persons for row in line.lines)
