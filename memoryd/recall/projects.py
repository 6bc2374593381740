"""Which entries of the summary belong to which project, and by which places a project is known.

A project is a directory; where that lies in a git repository, it is the directory within the repository, so that all
worktrees are one. Directories are compared whole, never by a name made of them.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import path as paths
from typing import Final

from memoryd.recall.hook import above, normal, worktree
from memoryd.workspace.handbook import Handbook
from memoryd.workspace.summary import OlderScope, Scope, Summary, Topic

GENERAL: Final = frozenset({"any", "*", "all", "global", "general", "everywhere", "all projects", "any project"})
"""Names of scopes that hold in every project."""
_CWD: Final = re.compile(r"(?:cwd\s*[=:]\s*)?`?([~/].*?)`?/?")


@dataclass(frozen=True, slots=True)
class Place:
    """A directory as it is named, where it really lies, and where in which repository (empty: in none)."""

    named: str
    real: str
    common: str = ""
    inside: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Equal for places of one project."""
        return (self.common, self.inside) if self.common else ("", self.real)


@dataclass(slots=True)
class Project:
    """The scopes (by name) that are given in full in the project's directories."""

    key: tuple[str, str]
    places: list[Place] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)

    @property
    def file(self) -> str:
        """The name of its file in recall/: a digest, which no two projects share."""
        return f"project-{hashlib.sha256(chr(0).join(self.key).encode('utf-8', 'surrogatepass')).hexdigest()[:24]}.md"


def projects_of(
    summary: Summary, handbook: Handbook, *, homes: Collection[str], known: Mapping[str, Place]
) -> list[Project]:
    """Return the projects that the summary has entries of.

    `homes`: the user's home folders. `known`: places of an earlier time, for directories that are gone since.
    """
    projects: dict[tuple[str, str], Project] = {}
    for scope in _scopes(summary):
        for directory in _directories(scope, handbook, homes):
            place = place_of(directory, homes, known)
            project = projects.setdefault(place.key, Project(place.key))
            project.scopes.add(scope.name)
            if place not in project.places:
                project.places.append(place)
    return list(projects.values())


def general_scopes(summary: Summary, handbook: Handbook) -> set[str]:
    """Return the scopes that hold everywhere: by their name, or since all their topics are groups that do."""
    groups = {group.title.casefold(): group for group in handbook.groups}
    found = set()
    for scope in _scopes(summary):
        named = [groups.get(topic.title.casefold()) for topic in _topics(scope)]
        if scope.name.casefold() in GENERAL or (named and all(group and group.cwd is None for group in named)):
            found.add(scope.name)
    return found


def place_of(directory: str, homes: Collection[str], known: Mapping[str, Place]) -> Place:
    """Find out where a directory lies; of one that is gone, what was known of it holds."""
    named = normal(directory)
    if not paths.isdir(directory):
        return known.get(named, Place(named, named))
    real = normal(paths.realpath(directory))
    root, common = worktree(above(real))
    if not common or root in homes:
        return Place(named, real)
    inside = paths.relpath(real, root)
    return Place(named, real, common, "" if inside == "." else inside)


def _directories(scope: Scope | OlderScope, handbook: Handbook, homes: Collection[str]) -> list[str]:
    """A scope is named by its directory, or its topics are task groups that name theirs."""
    named = _CWD.fullmatch(scope.name.strip())
    if named:
        return [] if named[1] == "/" else [_expanded(named[1], homes)]
    titles = {topic.title.casefold() for topic in _topics(scope)} | {scope.name.casefold()}
    cwds = [group.cwd for group in handbook.groups if group.cwd and group.title.casefold() in titles]
    return [_expanded(cwd, homes) for cwd in dict.fromkeys(cwds) if cwd.startswith(("/", "~/")) and cwd != "/"]


def _expanded(directory: str, homes: Collection[str]) -> str:
    home = next(iter(homes), "")
    return paths.join(home, directory[1:].lstrip("/")) if directory.startswith("~") and home else directory


def _scopes(summary: Summary) -> Iterator[Scope | OlderScope]:
    yield from summary.scopes
    yield from summary.older


def _topics(scope: Scope | OlderScope) -> Iterable[Topic]:
    return scope.topics if isinstance(scope, OlderScope) else (topic for day in scope.days for topic in day.topics)
