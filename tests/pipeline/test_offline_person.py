"""I10: what a person adds to the memory stays, and what they delete stays away, whatever the offline writer does."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.ledger.outputs import SelectedOutput
from memoryd.workspace.git import Repository
from memoryd.workspace.handbook import Section, parse_handbook
from memoryd.workspace.layout import ALWAYS_THERE, MEMORY_FILE, SUMMARY_FILE, Home, prepare
from memoryd.workspace.outline import Line, Node, Place, place_of, read_outline, render_outline, walk
from tests.support.consolidations import Shared
from tests.support.offline_sessions import extract, final, flat, human, run, selected

SHOP, INFRA = "/home/dev/shop", "/home/dev/infra"


def a_session(number: int) -> SelectedOutput:
    cwd = SHOP if number % 2 else INFRA
    items = flat(
        human(f"Please always build with tool{number}, never by hand."),
        run(f"make part{number}", 2, f"Error: no part{number}"),
        run(f"make part{number} FORCE=1"),
        human(f"From now on name branches after ticket{number}."),
        final(f"Part {number} is built."),
    )
    return selected(extract(items, cwd=cwd), number=number, cwd=cwd, days_ago=5 - number)


SESSIONS = [a_session(number) for number in range(1, 5)]
STATED = (*(section.casefold() for section in Section), "general tips")


def a_folder(root: Path) -> Shared:
    home = Home(root / "home")
    prepare(home)
    return Shared(home, Repository(home.git_dir, home.memories, environ={"PATH": os.environ["PATH"]}))


def stated(root: Node, path: str) -> list[tuple[tuple[Node, ...], Line]]:
    """The statements that a person may delete in this test, with their headings."""
    depth = 1 if path == MEMORY_FILE else 0
    return [(stack, line) for stack, line in walk(root) if len(stack) > depth and stack[depth].name in STATED]


class Person:
    """Edits the folder, and remembers what must be there and what must not."""

    def __init__(self, folder: Shared) -> None:
        self.folder = folder
        self.mine: dict[tuple[str, str], frozenset[str]] = {}
        self.gone: set[tuple[str, Place, str]] = set()
        self.count = 0

    def add(self, path: str, where: int, how: int) -> None:
        root = read_outline(self.folder.text(path))
        places = stated(root, path)
        if not places:
            return
        stack, neighbour = places[where % len(places)]
        self.count += 1
        text, cited = f"- my own rule {self.count}", frozenset[str]()
        if path == MEMORY_FILE:
            group = parse_handbook(render_outline(stack[0])).groups[0]
            task = group.tasks[where % len(group.tasks)] if group.tasks else None
            if how % 3 == 0 and task is not None:
                text += f" [Task {task.number}]{' [stated]' if how % 2 else ''}"
                cited = frozenset(row.path for row in task.summary_files)
            elif how % 3 == 1:
                text += " [ad-hoc note]"
        body = stack[-1].body
        body.insert(body.index(neighbour) + how % 2, Line.of((text,)))
        self.folder.write(path, render_outline(root))
        self.mine[path, f"my own rule {self.count}"] = cited

    def delete(self, path: str, where: int) -> None:
        root = read_outline(self.folder.text(path))
        places = stated(root, path)
        if not places:
            return
        stack, line = places[where % len(places)]
        stack[-1].body.remove(line)
        self.folder.write(path, render_outline(root))
        self.mine.pop((path, line.key), None)
        self.gone.add((path, place_of(stack, line), line.key))

    def check(self, chosen: list[SelectedOutput]) -> None:
        live = {f"rollout_summaries/{output.stem}.md" for output in chosen}
        says = {path: self.folder.says(path) for path in ALWAYS_THERE}
        for (path, key), cited in list(self.mine.items()):
            stands = [place for place, said in says[path] if said == key]
            if cited and not cited & live:
                assert not stands, (path, key)
                del self.mine[path, key]
            else:
                assert len(stands) == 1, (path, key, self.folder.text(path))
        for path, place, key in self.gone:
            assert (place, key) not in says[path], (path, place, key, self.folder.text(path))


STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(ALWAYS_THERE), st.integers(0, 40), st.integers(0, 11)),
    st.tuples(st.just("delete"), st.sampled_from(ALWAYS_THERE), st.integers(0, 40), st.just(0)),
    st.tuples(st.just("consolidate"), st.just(""), st.integers(0, 15), st.just(0)),
)


@settings(max_examples=int(os.environ.get("EXAMPLES", "5")), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=3, max_size=8), st.integers(1, 15))
def test_what_a_person_adds_stays_and_what_they_delete_stays_away(
    steps: list[tuple[str, str, int, int]], last: int
) -> None:
    with TemporaryDirectory() as root:
        folder = a_folder(Path(root))
        folder.consolidate(SESSIONS)
        person = Person(folder)
        for act, path, where, how in [*steps, ("consolidate", "", last, 0)]:
            if act == "add":
                person.add(path, where, how)
            elif act == "delete":
                person.delete(path, where)
            else:
                chosen = [one for number, one in enumerate(SESSIONS) if where >> number & 1]
                folder.consolidate(chosen)
                person.check(chosen)
                assert not folder.consolidate(chosen), "a second consolidation found something to do"
                assert folder.text(SUMMARY_FILE).startswith("v1\n")
