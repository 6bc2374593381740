"""Which scopes are the project that somebody asks from: its tree, its repository in any worktree, and nothing else."""

import json
from pathlib import Path

import pytest

from memoryd.recall.hook import INDEX
from memoryd.recall.near import scopes_here
from memoryd.recall.ready import FORMAT, Circumstances, refresh
from memoryd.sections import Recall
from memoryd.workspace.layout import Home, prepare


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


def a_repository(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def a_worktree(folder: Path, of: Path) -> Path:
    folder.mkdir(parents=True)
    inside = of / ".git" / "worktrees" / folder.name
    inside.mkdir(parents=True)
    (inside / "commondir").write_text("../..\n")
    (folder / ".git").write_text(f"gitdir: {inside}\n")
    return folder


def made_ready(home: Home, *scopes: Path) -> None:
    """Make recall/ from a summary that names these directories."""
    named = "\n\n".join(f"### {scope}\n\n#### 2026-11-29\n\n- topic {scope.name}: words" for scope in scopes)
    (home.memories / "memory_summary.md").write_text(f"v1\n\n## What's in Memory\n\n{named}\n")
    refresh(home, "a" * 40, Circumstances(Recall(), ("/home/dev",)))


@pytest.mark.parametrize(
    ("cwd", "here"),
    [
        ("/src/shop", {"/src/shop"}),
        ("/src/shop/", {"/src/shop"}),
        ("/src/shop/api/v1", {"/src/shop"}),
        ("/src/shop/../shop/api", {"/src/shop"}),
        ("/src/shopping", set()),
        ("/src", set()),
        ("/home/dev", {"/home/dev"}),
        ("/home/dev/src/x", set()),
        ("/", {"/"}),
    ],
)
def test_a_directory_is_of_the_scopes_above_it_that_are_no_home(home: Home, cwd: str, here: set[str]) -> None:
    made_ready(home)

    assert scopes_here(home, cwd, ["/src/shop", "/home/dev", "/", "/src/bank", "global", "unknown"]) == here


def test_a_link_leads_to_what_it_names(home: Home, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (tmp_path / "link").symlink_to(shop)

    assert scopes_here(home, str(tmp_path / "link" / "api"), [str(shop)]) == {str(shop)}


def test_worktrees_of_a_repository_are_one_project(home: Home, tmp_path: Path) -> None:
    main = a_repository(tmp_path / "shop")
    other = a_worktree(tmp_path / "shop-fix", main)
    made_ready(home, main)

    assert scopes_here(home, str(other), [str(main), str(tmp_path / "bank")]) == {str(main)}
    assert scopes_here(home, str(other / "api"), [str(main)]) == {str(main)}


def test_at_the_root_of_a_repository_its_folders_are_searched_and_from_one_its_neighbours_are_not(
    home: Home, tmp_path: Path
) -> None:
    main = a_repository(tmp_path / "mono")
    scopes = [str(main / "api"), str(main / "ui"), str(main)]
    made_ready(home, *(Path(scope) for scope in scopes))

    assert scopes_here(home, str(main), scopes) == set(scopes)
    assert scopes_here(home, str(main / "api" / "v1"), scopes) == {str(main / "api"), str(main)}


def test_without_an_index_the_tree_alone_tells(home: Home) -> None:
    assert scopes_here(home, "/src/shop/api", ["/src/shop"]) == {"/src/shop"}
    (home.recall / INDEX).write_text(json.dumps({"format": FORMAT, "homes": ["/src"]}))
    assert scopes_here(home, "/src/shop", ["/src", "/src/shop"]) == {"/src/shop"}
