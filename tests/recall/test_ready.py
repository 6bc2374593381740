"""recall/: which session is given which text, by where it runs."""

import json
import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from memoryd.errors import StorageError
from memoryd.recall import hook
from memoryd.recall.ready import Circumstances, refresh
from memoryd.sections import Recall
from memoryd.workspace.layout import Home, prepare
from memoryd.workspace.mending import empty_folder

COMMIT = "a" * 40
HEAD = "v1\n\n## User Profile\n\nA person who likes tabs.\n\n## User preferences\n\n- Use tabs.\n\n## General Tips\n\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


def secret(place: object) -> str:
    """What only the entries of a project say."""
    return f"only told in {str(place).replace('/', ' ')} itself"


def remember(home: Home, *places: object, handbook: str = "") -> None:
    """Let the memory hold an entry for each place."""
    scopes = "".join(
        f"### {place}\n\n#### 2026-11-29\n\n- topic of {place}: words\n  - desc: {secret(place)}\n\n"
        for place in places
    )
    (home.memories / "memory_summary.md").write_text(f"{HEAD}## What's in Memory\n\n{scopes}### Older Memory Topics\n")
    (home.memories / "MEMORY.md").write_text(handbook)


def make(home: Home, *, homes: tuple[str, ...] = (), commit: str = COMMIT, **recall: object) -> bool:
    return refresh(home, commit, Circumstances(Recall.model_validate(recall), homes))


def given(home: Home, cwd: object, *, agent: str = "claude", session: str = "") -> str:
    return hook.given(str(home.recall), str(cwd), agent=agent, session=session)


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder), *words],
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(folder)},
    )


def a_repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


def test_a_project_is_told_in_full_where_it_is_and_named_elsewhere(home: Home) -> None:
    remember(home, "/src/app", "/src/other")
    make(home)
    inside = given(home, "/src/app/deep/down")
    assert secret("/src/app") in inside
    assert "- topic of /src/other: words" in inside
    assert secret("/src/other") not in inside
    assert "- Use tabs." in inside
    elsewhere = given(home, "/elsewhere")
    assert "- topic of /src/app: words" in elsewhere
    assert "only told in" not in elsewhere


def test_with_scope_all_every_project_is_told_in_full_everywhere(home: Home) -> None:
    remember(home, "/src/app", "/src/other")
    make(home, scope="all")
    text = given(home, "/elsewhere")
    assert secret("/src/app") in text
    assert secret("/src/other") in text


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ("/a-b", "/a/b"),
        ("/a/b", "/a-b"),
        ("/src/app", "/src/app2"),
        ("/src/app", "/src/App"),
        ("/仕事/店", "/仕事/店舗"),
        ("/my work/the shop", "/my work/the"),
        ("/src/café", "/src/cafe"),
        ("/src/a:b", "/src/a"),
        ("/src/a#b", "/src/a b"),
    ],
)
def test_directories_are_compared_whole(home: Home, known: str, other: str) -> None:
    remember(home, known, other)
    make(home)
    assert secret(known) in given(home, f"{known}/x")
    assert secret(other) not in given(home, f"{known}/x")
    assert secret(other) in given(home, other)
    assert secret(known) not in given(home, other)


def test_one_directory_in_two_spellings_is_one_project(home: Home) -> None:
    remember(home, "/src/cafe\u0301/")
    make(home)
    for spelling in ("/src/caf\u00e9", "/src//cafe\u0301/./sub", "/src/x/../caf\u00e9/"):
        assert "only told in" in given(home, spelling)


def test_a_nested_directory_belongs_to_the_nearest_known_project(home: Home) -> None:
    remember(home, "/src", "/src/app")
    make(home)
    assert secret("/src/app") in given(home, "/src/app/deep")
    assert secret("/src") not in given(home, "/src/app/deep")
    assert secret("/src") in given(home, "/src/tools")


def test_a_symlink_leads_to_the_project(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "real project"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    remember(home, real)
    make(home)
    assert secret(real) in given(home, tmp_path / "link")
    remember(home, tmp_path / "link")
    make(home, commit="b" * 40)
    assert secret(tmp_path / "link") in given(home, real / "sub")


def test_a_deleted_directory_is_known_by_its_name_and_a_renamed_one_is_new(home: Home, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    remember(home, old)
    make(home)
    old.rename(tmp_path / "new")
    assert secret(old) in given(home, old)
    assert secret(old) not in given(home, tmp_path / "new")
    assert f"topic of {old}" in given(home, tmp_path / "new")


def test_worktrees_of_one_repository_are_one_project(home: Home, tmp_path: Path) -> None:
    repository = a_repository(tmp_path / "shop")
    git(repository, "worktree", "add", "-q", str(tmp_path / "far" / "feature"))
    other = a_repository(tmp_path / "other")
    remember(home, repository, other)
    make(home)
    text = given(home, tmp_path / "far" / "feature" / "src")
    assert secret(repository) in text
    assert secret(other) not in text


def test_a_worktree_that_is_gone_still_belongs_to_its_repository(home: Home, tmp_path: Path) -> None:
    repository = a_repository(tmp_path / "shop")
    worktree = tmp_path / "feature"
    git(repository, "worktree", "add", "-q", str(worktree))
    remember(home, worktree)
    make(home)
    git(repository, "worktree", "remove", str(worktree))
    make(home, commit="b" * 40)
    assert secret(worktree) in given(home, repository)


def test_folders_of_a_repository_are_projects_of_their_own_and_its_root_is_all_of_them(
    home: Home, tmp_path: Path
) -> None:
    repository = a_repository(tmp_path / "mono")
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    one, two = repository / "one", repository / "two"
    for folder in (one, two, tmp_path / "tree" / "one"):
        folder.mkdir()
    remember(home, one, two)
    make(home)
    in_tree = given(home, tmp_path / "tree" / "one")
    assert secret(one) in in_tree
    assert secret(two) not in in_tree
    assert {secret(one) in given(home, repository), secret(two) in given(home, repository)} == {True}


def test_a_submodule_is_a_project_of_its_own(home: Home, tmp_path: Path) -> None:
    repository, inner = a_repository(tmp_path / "shop"), a_repository(tmp_path / "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    remember(home, repository / "lib")
    make(home)
    assert secret(repository / "lib") in given(home, repository / "lib")
    assert secret(repository / "lib") not in given(home, repository)


def test_what_was_learned_in_the_home_folder_itself_is_not_that_of_all_below(home: Home, tmp_path: Path) -> None:
    user = a_repository(tmp_path / "user")
    (user / "new").mkdir()
    remember(home, user)
    make(home, homes=(str(user),))
    assert secret(user) in given(home, user)
    assert secret(user) not in given(home, user / "new")


HANDBOOK = """\
# Task Group: Checkout
scope: the shop
applies_to: cwd=/src/shop; reuse_rule=there only

## Task 1: it was done

# Task Group: Style
scope: all
applies_to: cwd=any; reuse_rule=everywhere
"""


def test_a_scope_that_is_no_path_belongs_where_its_task_groups_do(home: Home) -> None:
    remember(home, "The shop", "How we write", "No one knows", handbook=HANDBOOK)
    path = home.memories / "memory_summary.md"
    text = path.read_text().replace("topic of The shop", "Checkout").replace("topic of How we write", "Style")
    path.write_text(text)
    make(home)
    shop, elsewhere = given(home, "/src/shop/x"), given(home, "/elsewhere")
    assert secret("The shop") in shop
    assert secret("The shop") not in elsewhere
    assert secret("How we write") in elsewhere
    assert secret("No one knows") not in elsewhere


def test_recall_is_made_once_for_each_commit_and_setting_and_old_files_go(home: Home) -> None:
    remember(home, "/src/app")
    assert make(home) is True
    assert make(home) is False
    names = {path.name for path in home.recall.iterdir()}
    assert {"everywhere.md", "index.json"} < names
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.recall.iterdir()} == {0o600}
    assert make(home, exclude_cwd=["/src/*"]) is True
    assert given(home, "/src/app") == ""
    remember(home, "/src/other")
    assert make(home, commit="b" * 40) is True
    after = {path.name for path in home.recall.iterdir()}
    assert len(after) == 3
    assert after != names
    assert json.loads((home.recall / "index.json").read_text())["commit"] == "b" * 40


def test_a_file_that_went_missing_is_made_again(home: Home) -> None:
    remember(home, "/src/app")
    make(home)
    (home.recall / "everywhere.md").unlink()
    assert make(home) is True


@pytest.mark.parametrize("index", ["", "[]", "{}", "rubbish", '{"format": 1}'])
def test_an_index_that_says_nothing_is_made_anew(home: Home, index: str) -> None:
    (home.recall / "index.json").write_text(index)
    assert make(home) is True
    (home.recall / "index.json").write_text(index)
    assert given_quietly(home, "/src") == ""


def given_quietly(home: Home, cwd: str) -> str:
    said = json.dumps({"cwd": cwd, "hook_event_name": "SessionStart"}).encode()
    try:
        return hook.reply(str(home.recall), "claude", "SessionStart", said)
    except (ValueError, KeyError, TypeError):
        return ""


def test_a_pause_for_all_leaves_nothing_to_read(home: Home) -> None:
    remember(home, "/src/app")
    make(home)
    make(home, scope="off")
    assert given(home, "/src/app") == ""
    assert {path.name: path.stat().st_size for path in home.recall.glob("*.md")} == {"everywhere.md": 0}


def test_a_session_of_which_the_person_said_so_is_given_nothing(home: Home) -> None:
    remember(home, "/src/app")
    bare, other = "0194f5a6-89ab-7cde-8123-456789abcdef", "opencode:ses_1"
    refresh(home, COMMIT, Circumstances(Recall(), (), (bare, other)))
    assert given(home, "/src/app", session=bare.upper()) == ""
    assert given(home, "/src/app", agent="opencode", session="ses_1") == ""
    assert given(home, "/src/app", agent="qwen", session="ses_1") != ""


@pytest.mark.parametrize("glob", ["/src/app", "/src/*", "/src/app/", "/*/app", "/src/a[p]p"])
def test_an_excluded_folder_and_what_lies_below_it_is_given_nothing(home: Home, glob: str) -> None:
    remember(home, "/src/app")
    make(home, exclude_cwd=[glob])
    assert given(home, "/src/app") == given(home, "/src/app/deep") == ""
    assert given(home, "/elsewhere") != ""


def test_a_symlink_does_not_lead_around_an_exclusion(home: Home, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "private")
    remember(home, "/src/app")
    make(home, exclude_cwd=[str(tmp_path / "private")])
    assert given(home, tmp_path / "link") == ""


def test_what_is_used_most_is_ranked_by_the_sessions_behind_it(home: Home) -> None:
    groups = "".join(
        f"# Task Group: topic {n}\nscope: x\napplies_to: cwd=/src/app; reuse_rule=x\n\n## Task 1: t\n\n"
        f"### rollout_summary_files\n\n- rollout_summaries/stem-{n}.md\n\n"
        for n in range(60)
    )
    topics = "".join(f"- topic {n}: words\n  - desc: {'so it is ' * 20}\n" for n in range(60))
    (home.memories / "MEMORY.md").write_text(groups)
    (home.memories / "memory_summary.md").write_text(
        f"{HEAD}## What's in Memory\n\n### /src/app\n\n#### 2026-11-29\n\n{topics}\n### Older Memory Topics\n"
    )
    used: Mapping[str, tuple[int, int]] = {"stem-59": (2, 5)}
    refresh(home, COMMIT, Circumstances(Recall(), (), (), used))
    text = given(home, "/src/app")
    assert "topic 59:" in text
    assert "topic 58:" not in text


def test_a_memory_in_which_nothing_is_left_is_given_to_nobody(home: Home) -> None:
    empty_folder(home.memories)
    refresh(home, COMMIT, Circumstances(Recall()))
    assert given(home, "/src/app") == ""


def test_a_place_that_cannot_be_written_is_a_clear_error(home: Home) -> None:
    (home.recall / "everywhere.md").mkdir()
    (home.recall / "everywhere.md" / "file").touch()
    with pytest.raises(StorageError, match="cannot write"):
        make(home)
    assert [path.name for path in home.recall.iterdir()] == ["everywhere.md"]


def test_a_folder_to_which_a_link_leads_is_not_emptied(home: Home, tmp_path: Path) -> None:
    """I7."""
    remember(home, "/home/dev/shop")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text("a person's")
    home.recall.rmdir()
    home.recall.symlink_to(elsewhere)
    with pytest.raises(StorageError, match="is a symlink"):
        make(home)
    assert [path.name for path in elsewhere.iterdir()] == ["mine.txt"]
