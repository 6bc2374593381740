"""The history is cut off from whatever git the person has set up: each hostile thing alone, and nothing of it runs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.redact import Redactor
from memoryd.workspace.authorship import has_person_commit, person_lines, removed_by_person
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MEMORY_FILE, Home
from memoryd.workspace.publish import prepare_commit, put_in_place
from memoryd.workspace.repository import ensure
from memoryd.workspace.staging import stage
from tests.workspace.factories import MEMORY, NOW, a_home, files, git, write_files

TRAP = '#!/bin/sh\necho "$0 $*" >> "{traces}"\nexec cat\n'
"""A program that notes that it ran, and passes on what it is given."""


class Enemy:
    """A person's git set-up that would change what memoryd records, or would run something."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "person"
        self.home.mkdir()
        self.traces = folder / "traces"
        self.trap = folder / "trap"
        self.trap.write_text(TRAP.replace("{traces}", str(self.traces)))
        self.trap.chmod(0o755)
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    def settings(self) -> str:
        """Every setting known to run a program or to change what is recorded."""
        hooks = self.home / "hooks"
        hooks.mkdir(exist_ok=True)
        for hook in ("pre-commit", "reference-transaction", "post-commit", "post-index-change", "fsmonitor-watchman"):
            (hooks / hook).write_text(self.trap.read_text())
            (hooks / hook).chmod(0o755)
        (self.home / "ignore").write_text("*\n")
        (self.home / "ignored").write_text("")
        (self.home / "mailmap").write_text("memoryd <memoryd@localhost.invalid> <person@localhost.invalid>\n")
        (self.home / "attributes").write_text("* text eol=crlf filter=evil diff=evil merge=evil\n")
        return f"""\
[core]
	hooksPath = {hooks}
	excludesFile = {self.home}/ignore
	attributesFile = {self.home}/attributes
	fsmonitor = {self.trap}
	autocrlf = true
	sshCommand = {self.trap}
	pager = {self.trap}
	editor = {self.trap}
	splitIndex = true
	commitGraph = true
	sparseCheckout = true
[init]
	templateDir = {self.home}/template
	defaultBranch = elsewhere
	defaultObjectFormat = sha256
[commit]
	gpgSign = true
	template = {self.home}/nowhere
[tag]
	gpgSign = true
[log]
	showSignature = true
	follow = true
[gpg]
	program = {self.trap}
[i18n]
	commitEncoding = latin1
	logOutputEncoding = utf-16
[diff]
	external = {self.trap}
	noprefix = true
	renames = copies
[diff "evil"]
	textconv = {self.trap}
	command = {self.trap}
[filter "evil"]
	clean = {self.trap}
	smudge = {self.trap}
	required = true
[merge]
	conflictStyle = diff3
[merge "evil"]
	driver = {self.trap}
[alias]
	log = !{self.trap}
	update-ref = !{self.trap}
[color]
	ui = always
[user]
	name = somebody
	useConfigOnly = true
[blame]
	ignoreRevsFile = {self.home}/ignored
[mailmap]
	file = {self.home}/mailmap
[safe]
	directory = /nowhere
"""

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def in_home(enemy: Enemy, _home: Home) -> None:
    enemy.write(enemy.home / ".gitconfig", enemy.settings())


def in_xdg(enemy: Enemy, _home: Home) -> None:
    enemy.write(enemy.home / "xdg/git/config", enemy.settings())
    enemy.write(enemy.home / "xdg/git/ignore", "*\n")
    enemy.write(enemy.home / "xdg/git/attributes", "* filter=evil\n")
    enemy.environ["XDG_CONFIG_HOME"] = str(enemy.home / "xdg")


def in_named_files(enemy: Enemy, _home: Home) -> None:
    enemy.write(enemy.home / "global", enemy.settings())
    enemy.environ |= {
        "GIT_CONFIG_GLOBAL": str(enemy.home / "global"),
        "GIT_CONFIG_SYSTEM": str(enemy.home / "global"),
        "GIT_CONFIG_NOSYSTEM": "0",
        "GIT_CONFIG": str(enemy.home / "global"),
    }


def in_environment(enemy: Enemy, _home: Home) -> None:
    enemy.environ |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(enemy.home / "hooks"),
        "GIT_CONFIG_PARAMETERS": "'commit.gpgsign=true'",
    }
    enemy.settings()


def broken_config(enemy: Enemy, _home: Home) -> None:
    enemy.write(enemy.home / ".gitconfig", "[broken\n")


def templates(enemy: Enemy, _home: Home) -> None:
    enemy.write(enemy.home / "template/hooks/reference-transaction", enemy.trap.read_text())
    (enemy.home / "template/hooks/reference-transaction").chmod(0o755)
    enemy.write(enemy.home / "template/info/exclude", "*\n")
    enemy.write(enemy.home / ".gitconfig", f"[init]\n\ttemplateDir = {enemy.home}/template\n")
    enemy.environ["GIT_TEMPLATE_DIR"] = str(enemy.home / "template")


def inherited(enemy: Enemy, _home: Home) -> None:
    other = enemy.home / "other"
    other.mkdir()
    git(other, "init", "-q")
    enemy.environ |= {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(other / "objects"),
        "GIT_COMMON_DIR": str(other / ".git"),
        "GIT_NAMESPACE": "else",
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_AUTHOR_NAME": "somebody",
        "GIT_AUTHOR_EMAIL": "somebody@localhost.invalid",
        "GIT_COMMITTER_DATE": "1970-01-01T00:00:00Z",
        "GIT_EXTERNAL_DIFF": str(enemy.trap),
        "GIT_DIFF_OPTS": "--unified=99",
        "GIT_SSH_COMMAND": str(enemy.trap),
        "GIT_ASKPASS": str(enemy.trap),
        "GIT_PAGER": str(enemy.trap),
        "GIT_EDITOR": str(enemy.trap),
        "GIT_EXEC_PATH": str(enemy.home),
        "GIT_TRACE": str(enemy.traces),
        "GIT_TRACE2_EVENT": str(enemy.traces),
        "GIT_REFLOG_ACTION": "evil",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ICASE_PATHSPECS": "1",
        "GIT_QUARANTINE_PATH": str(other),
        "GIT_SHALLOW_FILE": str(other / "shallow"),
        "GIT_GRAFT_FILE": str(other / "grafts"),
        "GIT_REPLACE_REF_BASE": "refs/evil",
    }


def ignore_files(enemy: Enemy, home: Home) -> None:
    enemy.write(home.memories / ".gitignore", "*\n")
    enemy.write(home.memories / "skills/.gitignore", "*\n")
    enemy.write(home.memories / ".gitattributes", "* export-ignore -text filter=evil diff=evil\n")
    enemy.write(home.memories / ".mailmap", "memoryd <memoryd@localhost.invalid> <person@localhost.invalid>\n")


def in_the_repository(enemy: Enemy, home: Home) -> None:
    """What `git config` without --global writes; the attributes make git use it."""
    with (home.git_dir / "config").open("a") as config:
        config.write(enemy.settings())
    enemy.write(home.git_dir / "info/exclude", "*\n")
    enemy.write(home.git_dir / "info/attributes", "* text eol=crlf filter=evil diff=evil merge=evil\n")
    enemy.write(home.git_dir / "info/sparse-checkout", "nothing\n")
    for hook in ("reference-transaction", "post-index-change", "pre-commit"):
        enemy.write(home.git_dir / "hooks" / hook, enemy.trap.read_text())
        (home.git_dir / "hooks" / hook).chmod(0o755)


def dying_of_settings(enemy: Enemy, home: Home) -> None:
    """Settings of which a git dies as soon as it reads them, whatever `-c` says after them."""
    enemy.write(
        home.git_dir / "config",
        (home.git_dir / "config").read_text()
        + """\
[blame]
	ignoreRevsFile = /nowhere
[diff]
	algorithm = nonsense
	orderFile = /nowhere
	context = nonsense
	interHunkContext = -3
	wsErrorHighlight = nonsense
	dirstat = nonsense
[merge]
	conflictStyle = nonsense
[log]
	date = nonsense
	diffMerges = nonsense
	showRoot = false
[format]
	pretty = %H nonsense
[color]
	diff = nonsense
	blame = nonsense
[mailmap]
	blob = nonsense
[core]
	packedRefsTimeout = -1
	filesRefLockTimeout = -1
""",
    )


def said_to_be_bare(enemy: Enemy, home: Home) -> None:
    git(home.memories, "config", "core.bare", "true")


def with_a_work_tree_elsewhere(enemy: Enemy, home: Home) -> None:
    (enemy.home / "work").mkdir()
    git(home.memories, "config", "core.worktree", str(enemy.home / "work"))


def with_grafts_and_replacements(enemy: Enemy, home: Home) -> None:
    enemy.write(home.git_dir / "info/grafts", "")
    enemy.write(home.git_dir / "refs/replace/.keep", "")


HOSTILE: list[Callable[[Enemy, Home], None]] = [
    in_home,
    in_xdg,
    in_named_files,
    in_environment,
    broken_config,
    templates,
    inherited,
    ignore_files,
    in_the_repository,
    dying_of_settings,
    said_to_be_bare,
    with_a_work_tree_elsewhere,
    with_grafts_and_replacements,
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.__name__)
def test_a_hostile_set_up_has_no_say_and_runs_nothing(
    tmp_path: Path, redactor: Redactor, hostile: Callable[[Enemy, Home], None]
) -> None:
    """I7; one round of all that is asked of git: stage, diff, commit, publish, merge, blame and log."""
    home, enemy = a_home(tmp_path), Enemy(tmp_path)
    ensure(Repository(home.git_dir, home.memories, environ={"PATH": os.environ["PATH"]}))
    hostile(enemy, home)
    others = sorted(path for path in enemy.home.rglob("*"))
    repo = Repository(home.git_dir, home.memories, environ=enemy.environ)

    first = a_run(home, repo, redactor, files(), "first")
    mine = "- my own line [Task 1] [stated]\n"
    write_files(home.memories, {MEMORY_FILE: MEMORY + mine, "mine.md": "é\r\nmine\n"})
    second = a_run(home, repo, redactor, {MEMORY_FILE: "> New.\n\n" + MEMORY + mine}, "second")

    assert (repo.head(), repo.accepted()) == (second, second)
    assert repo.read(second, MEMORY_FILE) == ("> New.\n\n" + MEMORY + mine).encode()
    assert repo.read(second, "mine.md") == "é\r\nmine\n".encode()
    assert [(commit.subject, commit.author) for commit in repo.log(limit=9)] == [
        ("second é", "memoryd"),
        ("Keep a person's edits of the memory folder", "person"),
        ("first é", "memoryd"),
    ]
    assert len(first) == 40
    assert person_lines(repo, second, MEMORY_FILE) == {("> New.\n\n" + MEMORY + mine).count("\n")}
    assert has_person_commit(repo, second, MEMORY_FILE)
    assert removed_by_person(repo, second)[MEMORY_FILE] == frozenset()
    changes = repo.diff(first, second, max_bytes=100_000).decode()
    assert "--- a/MEMORY.md\n+++ b/MEMORY.md\n" in changes
    assert "\x1b" not in changes
    assert not enemy.traces.exists(), enemy.traces.read_text()
    assert sorted(path for path in enemy.home.rglob("*")) == others
    assert ensure(repo) is None


def a_run(home: Home, repo: Repository, redactor: Redactor, contents: dict[str, str], subject: str) -> str:
    """Stage, write and publish; what a person wrote meanwhile is merged."""
    staged = stage(home, repo, subject, now=NOW, redactor=redactor)
    write_files(staged.work, contents)
    commit = prepare_commit(repo, staged, f"{subject} é\n", now=NOW)
    put_in_place(home, repo, commit, staged.base_id)
    return commit


@pytest.mark.parametrize("folder", ["home", "deep/in/it"])
def test_in_the_middle_of_another_repository_that_one_stays_byte_for_byte(
    tmp_path: Path, redactor: Redactor, folder: str
) -> None:
    """Dotfiles: the whole home folder is a work tree, and memoryd's own lies in it."""
    outer = tmp_path / "dotfiles"
    write_files(outer, {".bashrc": "export A=1\n", "staged.md": "one\n"})
    git(outer, "init", "-q")
    git(outer, "add", "-A")
    git(outer, "commit", "-qm", "dotfiles")
    write_files(outer, {".bashrc": "export A=2\n", "staged.md": "two\n"})
    git(outer, "add", "staged.md")
    before = bytes_below(outer)
    home = a_home(outer / folder)
    repo = Repository(home.git_dir, home.memories, environ={"PATH": os.environ["PATH"], "HOME": str(outer)})

    commit = a_run(home, repo, redactor, files(), "first")
    home.git_dir.rename(home.memories / "gone")
    home.git_dir.mkdir()
    a_run(home, repo, redactor, {MEMORY_FILE: "> New.\n\n" + MEMORY}, "second")

    assert repo.accepted() != commit
    assert {
        path: data for path, data in bytes_below(outer).items() if not path.is_relative_to(outer / folder)
    } == before


def bytes_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
