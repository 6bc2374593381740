"""What the keeping of a person's lines works with, for both memory files: what is guarded, and what became of it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from memoryd.workspace.comparison import excerpt
from memoryd.workspace.outline import Line, Node, Place, place_of, walk

Stack: TypeAlias = Sequence[Node]

_WORD: Final = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True)
class Guarded:
    """One file as it was staged: which of its lines are the person's, and what the person took out of it.

    `live` are the rollout summaries that a run may rest on, `known` those that the staged copy had.
    """

    path: str
    outline: Node
    persons: frozenset[int] = frozenset()
    removed: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()

    def lines(self) -> list[tuple[Stack, Line]]:
        """Return the person's statements with the headings above them, in the order of the file."""
        return [(stack, line) for stack, line in walk(self.outline) if self.is_persons(line)]

    def is_persons(self, line: Line) -> bool:
        """Say whether the person wrote any of a statement's lines."""
        return any(line.number + offset in self.persons for offset in range(len(line.lines)))

    def standing(self) -> frozenset[tuple[Place, str]]:
        """Return what the staged file says, and where."""
        return frozenset((place_of(stack, line), line.key) for stack, line in walk(self.outline))


@dataclass(slots=True)
class Keeping:
    """A result that is being put right: the lines in it that are the person's, and what was wrong with it.

    `moved` are statements of the result that stood in no place of that name before, by what they say: there a person's
    line may stand as well. `made` are headings that code put back, for such a line or as the person's own; `renamed`
    has, by a task group's title in the result and its directory, what the person calls it. `notes` is what new notes
    say: a person's line that a run dropped for them stays away.
    """

    guarded: Guarded
    root: Node
    moved: Mapping[str, Line]
    notes: str = ""
    lines: set[str] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    made: list[Node] = field(default_factory=list)
    renamed: dict[tuple[str, str | None], str] = field(default_factory=dict)

    @classmethod
    def of(cls, guarded: Guarded, root: Node, *, may_move: bool, notes: str = "") -> "Keeping":
        """Begin with a result; a writer that judges meaning may move a person's line, one that does not never does."""
        stood = guarded.standing() if may_move else frozenset()
        moved = {line.key: line for stack, line in walk(root) if (place_of(stack, line), line.key) not in stood}
        return cls(guarded, root, moved if may_move else {}, notes)

    def put(self, node: Node, line: Line, stack: Stack, *, is_homeless: bool = False) -> None:
        """Bring a person's statement into a node, as they wrote it: where the same words stand, else at the end.

        `is_homeless`: the node is not where it stood, so no writer could have kept it there.
        """
        there = node.find(line) or self.moved.get(line.key) or node.find(Line.of(line.lines[:1], under=line.under))
        if there is not None:
            there.lines, there.key = line.lines, line.key
        elif self.is_asked_for(line):
            return
        else:
            node.append(line)
            if not is_homeless:
                self.miss(line, stack)
        self.lines.update(line.lines)

    def miss(self, line: Line, stack: Stack) -> None:
        """Note that a run lost a line of the person's."""
        where = " > ".join(one.heading.lstrip("# ") for one in stack) or "at the top"
        self.lost.append(f"`{excerpt(line.key)}` ({excerpt(where)})")

    def leave_out(self, may: Callable[[Stack, Line], bool]) -> None:
        """Take out what the person took out before, unless it stood in the same place in the meantime."""
        standing = self.guarded.standing()
        doomed: dict[Node, list[Line]] = {}
        for stack, line in walk(self.root):
            is_again = line.key in self.guarded.removed and (place_of(stack, line), line.key) not in standing
            if is_again and may(stack, line):
                doomed.setdefault(stack[-1] if stack else self.root, []).append(line)
        for node, lines in doomed.items():
            node.remove(lines)
            self.again += [line.key for line in lines]

    def complaints(self) -> list[str]:
        """Say what a writer is to put right by itself."""
        path = self.guarded.path
        lost = [
            f"{path}: {what} is a person's own line and is gone; put it back there word for word" for what in self.lost
        ]
        again = [f"{path}: a person deleted `{excerpt(key)}`; leave it out" for key in self.again]
        return lost + again

    def is_asked_for(self, line: Line) -> bool:
        """Say whether a new note speaks of what a line says; whether it asks for the loss, a model has judged."""
        said = set(_WORD.findall(self.notes.casefold()))
        return not said.isdisjoint(_WORD.findall(line.key.casefold()))


def descend(root: Node, stack: Stack) -> Node:
    """Return the node below the headings of these names; those that are missing are added at the end."""
    node = root
    for heading in stack:
        node = node.child(heading.name) or node.add(heading.heading)
    return node
