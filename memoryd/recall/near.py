"""Which directories that entries hold in are the project of a directory: the same tree, or the same repository."""

import os
from collections.abc import Iterable
from typing import Any

from memoryd.recall.hook import above, normal, worktree
from memoryd.recall.ready import known_places, read_index
from memoryd.workspace.layout import Home


def scopes_here(home: Home, cwd: str, scopes: Iterable[str]) -> frozenset[str]:
    """Return those of the scopes that a session in `cwd` is in, or, where it lies in a repository, that lie below it.

    A scope is a directory; one that is a user's home, or the root, is a project of its own and not of what lies below.
    Directories of other worktrees are known from what recall/ was made of; nothing else of them is looked at.
    """
    index: dict[str, Any] = read_index(home)
    roofs = {"/", *index.get("homes", ())}
    given = normal(os.path.abspath(cwd))  # noqa: PTH100 (compares directories as the hook does)
    real = normal(os.path.realpath(given))
    ways = [*above(given), *above(real)]
    root, common = worktree(above(real))
    inside = os.path.relpath(real, root) if common and root not in roofs else None
    places = known_places(index)
    here = set()
    for scope in scopes:
        named = normal(scope) if os.path.isabs(scope) else scope  # noqa: PTH117 (as above)
        place = places.get(named)
        spots = {named, place.real if place else named}
        if spots & {given, real} or spots & (set(ways) - roofs):
            here.add(scope)
        elif inside is not None and (_is_below(named, root) or (place is not None and place.common == common)):
            theirs = place.inside if place is not None and place.common == common else os.path.relpath(named, root)
            if _meet(inside, theirs):
                here.add(scope)
    return frozenset(here)


def _is_below(directory: str, root: str) -> bool:
    return directory == root or directory.startswith(root.rstrip("/") + "/")


def _meet(one: str, other: str) -> bool:
    """Say whether one of two directories of a repository lies in the other; "." and "" are its root."""
    first, second = (() if path in {".", ""} else tuple(path.split("/")) for path in (one, other))
    length = min(len(first), len(second))
    return first[:length] == second[:length]
