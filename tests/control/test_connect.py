"""`connect` puts memoryd into an agent's settings and nothing else; `disconnect` leaves them as they were before."""

import json
import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryd.control.connecting import files
from memoryd.control.connecting.target import hook_command
from memoryd.errors import UsageError
from memoryd.workspace.layout import Home
from tests.control.conftest import Shell

FIXTURES = Path(__file__).parent.parent / "fixtures" / "agents_config"
FOLDERS = {
    "codex": ".codex",
    "claude": ".claude",
    "opencode": ".config/opencode",
    "gemini": ".gemini",
    "qwen": ".qwen",
    "copilot": ".copilot",
}
# agent, way, file in the agent's folder, recorded content (None: the file is not there), what else lies there
CASES = [
    ("claude", "hook", "settings.json", "claude-settings.json", {}),
    ("claude", "hook", "settings.json", "claude-settings-minified.json", {}),
    ("claude", "hook", "settings.json", None, {}),
    ("claude", "import", "CLAUDE.md", "claude-CLAUDE.md", {}),
    ("claude", "import", "CLAUDE.md", None, {}),
    ("codex", "hook", "hooks.json", "codex-hooks.json", {"config.toml": "codex-config-without-hooks.toml"}),
    ("codex", "hook", "hooks.json", None, {"config.toml": "codex-config-without-hooks.toml"}),
    ("codex", "hook", "config.toml", "codex-config.toml", {}),
    ("codex", "instructions", "AGENTS.md", "codex-AGENTS.md", {}),
    ("codex", "instructions", "AGENTS.override.md", "codex-AGENTS.md", {"AGENTS.md": "codex-AGENTS.md"}),
    ("opencode", "instructions", "opencode.jsonc", "opencode.jsonc", {"opencode.json": "opencode.json"}),
    ("opencode", "instructions", "opencode.json", "opencode.json", {}),
    ("opencode", "instructions", "opencode.json", None, {}),
    ("gemini", "hook", "settings.json", "gemini-settings.json", {}),
    ("qwen", "hook", "settings.json", "qwen-settings.json", {}),
    ("copilot", "hook", "hooks/memoryd.json", None, {}),
]
NAMES = [f"{agent}-{via}-{recorded or 'new'}" for agent, via, _, recorded, _ in CASES]
cases = pytest.mark.parametrize(("agent", "via", "name", "recorded", "others"), CASES, ids=NAMES)


@pytest.fixture
def user(bare_environment: Path) -> Path:
    return bare_environment


def settings_of(
    user: Path, agent: str, name: str = "", recorded: str | None = None, others: Mapping[str, str] | None = None
) -> Path:
    """Lay out an agent's folder, and return the file that connect is about."""
    folder = user / FOLDERS[agent]
    folder.mkdir(parents=True, exist_ok=True)
    for file, fixture in {**(others or {}), **({name: recorded} if recorded else {})}.items():
        (folder / file).write_bytes((FIXTURES / fixture).read_bytes())
        (folder / file).chmod(0o644)
    return folder / name


def everything(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every file, link and folder: mode and content."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    return found


def hooks_in(settings: Any, event: str = "SessionStart") -> list[Any]:
    return [hook for group in settings["hooks"][event] for hook in group["hooks"]]


@cases
def test_a_connected_agent_is_disconnected_to_the_byte(
    shell: Shell, user: Path, agent: str, via: str, name: str, recorded: str | None, others: dict[str, str]
) -> None:
    file = settings_of(user, agent, name, recorded, others)
    before = everything(user)
    said = shell("connect", agent, "--via", via, "--no-skill", "--json")
    assert said.code == 0, said
    assert said.json["result"] == "connected"
    assert said.json["wrote"] == [str(file)], "I7: it names what it wrote"
    assert said.json["via"] == via
    assert file.read_bytes() != (FIXTURES / recorded).read_bytes() if recorded else file.is_file()
    assert file.stat().st_mode & 0o777 == (0o644 if recorded else 0o600)
    after = everything(user)
    backup = said.json["backup"]
    assert (Path(backup).read_bytes() if backup else None) == ((FIXTURES / recorded).read_bytes() if recorded else None)

    again = shell("connect", agent, "--via", via, "--no-skill", "--json")
    assert (again.json["result"], again.json["wrote"]) == ("already connected", [])
    assert everything(user) == after, "twice is once"

    end = shell("disconnect", agent, "--json")
    assert end.code == 0, end
    assert end.json["result"] == "restored"
    assert end.json["wrote"] == [str(file)]
    assert everything(user) == before
    assert not (shell.home.path / "connect").exists()


@cases
def test_what_a_person_changed_in_between_survives_and_ours_goes(
    shell: Shell, user: Path, agent: str, via: str, name: str, recorded: str | None, others: dict[str, str]
) -> None:
    file = settings_of(user, agent, name, recorded, others)
    before = everything(user)
    original = file.read_text(encoding="utf-8") if recorded else ""
    shell("connect", agent, "--via", via)
    added = change_by_hand(file)
    end = shell("disconnect", agent, "--json")
    assert end.json["result"] == "taken out"
    left = file.read_text(encoding="utf-8")
    assert str(shell.home.path) not in left
    if file.suffix in (".json", ".jsonc"):
        original = original or ('{\n  "version": 1\n}\n' if agent == "copilot" else "{\n}\n")
        assert left == original.replace("{", '{"byHand": {"x": [1 ,2]},', 1).replace(
            ",\n}", "\n}" if not recorded else ",\n}"
        )
    else:
        assert left.replace("\r\n", "\n").rstrip("\n") == (
            original.replace("\r\n", "\n").rstrip("\n") + "\n" + added
        ).strip("\n")
    file.write_bytes(before[str(file.relative_to(user))][1]) if recorded else file.unlink()  # type: ignore[arg-type]  # a file
    if agent == "copilot":
        file.parent.rmdir()
    assert everything(user) == before


def change_by_hand(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix in (".json", ".jsonc"):
        file.write_text(text.replace("{", '{"byHand": {"x": [1 ,2]},', 1), encoding="utf-8")
        return ""
    added = "# by hand"
    with file.open("a", encoding="utf-8") as stream:
        stream.write(added)
    return added


def test_the_entries_are_what_the_agents_read(shell: Shell, user: Path) -> None:
    for agent, _via, name, recorded, others in CASES[::-1]:
        settings_of(user, agent, name, recorded, others)
    (user / ".codex" / "config.toml").unlink()
    for agent in FOLDERS:
        said = shell("connect", agent)
        assert said.code == 0, said
    claude = json.loads((user / ".claude/settings.json").read_text())
    assert claude["hooks"]["SessionStart"][-1] == {
        "matcher": "startup|resume|clear|compact",
        "hooks": [{"type": "command", "command": hook_command(shell.home, "claude", "SessionStart"), "timeout": 10}],
    }
    codex = json.loads((user / ".codex/hooks.json").read_text())
    assert set(codex) <= {"description", "hooks"}, "Codex refuses a file with any other name in it"
    assert hooks_in(codex)[-1]["command"] == hook_command(shell.home, "codex", "SessionStart")
    qwen = json.loads((user / ".qwen/settings.json").read_text())
    assert hooks_in(qwen)[-1] == {
        "type": "command",
        "command": hook_command(shell.home, "qwen", "SessionStart"),
        "timeout": 10_000,
    }
    gemini = json.loads((user / ".gemini/settings.json").read_text().replace("// chosen on the first start", ""))
    assert hooks_in(gemini)[-1]["timeout"] == 10_000
    copilot = json.loads((user / ".copilot/hooks/memoryd.json").read_text())
    command = hook_command(shell.home, "copilot", "sessionStart")
    entry = {"type": "command", "bash": command, "timeoutSec": 10}
    assert copilot == {"version": 1, "hooks": {"sessionStart": [entry]}}
    opencode = (user / ".config/opencode/opencode.jsonc").read_text()
    everywhere = shell.home.recall / "everywhere.md"
    theirs = '\t\t"docs/guidelines.md", // theirs, "keep"\n'
    assert f'{theirs}\t\t"{everywhere}",\n\t],\n' in opencode


def test_codex_keeps_its_hooks_where_the_person_keeps_them(shell: Shell, user: Path) -> None:
    file = settings_of(user, "codex", "config.toml", "codex-config.toml")
    said = shell("connect", "codex")
    settings = tomllib.loads(file.read_text())
    assert hooks_in(settings) == [
        {"type": "command", "command": hook_command(shell.home, "codex", "SessionStart"), "timeout": 10}
    ]
    assert settings["hooks"]["state"]
    assert "/hooks" in said.out
    assert "told twice" in said.out, "Codex's own memory is on in this file"
    assert not (user / ".codex" / "hooks.json").exists()
    assert not (user / ".codex" / "memories").exists()


def test_a_dry_run_shows_the_difference_and_writes_nothing(shell: Shell, user: Path) -> None:
    file = settings_of(user, "claude", "settings.json", "claude-settings.json")
    before = everything(user)
    home = everything(shell.home.path)
    said = shell("connect", "claude", "--no-skill", "--dry-run")
    assert said.code == 0
    assert f"--- {file}\n+++ {file}\n@@" in said.out
    assert [line for line in said.out.splitlines() if line.startswith("-")] == [f"--- {file}"], "nothing is taken away"
    assert any(line.startswith("+") and "bin/hook" in line for line in said.out.splitlines())
    assert "nothing was written" in said.out
    assert shell("connect", "claude", "--dry-run", "--json").json["wrote"] == []
    assert everything(user) == before
    assert everything(shell.home.path) == home
    shell("connect", "claude")
    connected = everything(user)
    undo = shell("disconnect", "claude", "--dry-run")
    assert any(line.startswith("-") and "bin/hook" in line for line in undo.out.splitlines())
    assert everything(user) == connected


@pytest.mark.parametrize(
    ("agent", "variable", "value", "file"),
    [
        ("codex", "CODEX_HOME", "moved", "moved/hooks.json"),
        ("claude", "CLAUDE_CONFIG_DIR", "moved", "moved/settings.json"),
        ("claude", "CLAUDE_CONFIG_DIR", "~/moved", "moved/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "moved", "moved/opencode/opencode.json"),
        ("gemini", "GEMINI_CLI_HOME", "moved", "moved/.gemini/settings.json"),
        ("qwen", "QWEN_HOME", "moved", "moved/settings.json"),
        ("copilot", "COPILOT_HOME", "moved", "moved/hooks/memoryd.json"),
    ],
)
def test_settings_that_a_variable_moves_are_found(
    shell: Shell, user: Path, monkeypatch: pytest.MonkeyPatch, agent: str, variable: str, value: str, file: str
) -> None:
    settings_of(user, agent)
    for folder in ("moved/opencode", "moved/.gemini"):
        (user / folder).mkdir(parents=True)
    before = everything(user)
    monkeypatch.setenv(variable, value if value.startswith("~") else str(user / value))
    assert shell("connect", agent, "--json").json["file"] == str(user / file)
    monkeypatch.delenv(variable)
    assert shell("connect", agent).code == 2, "it is connected elsewhere: nothing is written twice"
    assert shell("disconnect", agent).code == 0
    assert everything(user) == before


def test_an_agent_that_is_not_here_or_not_known_is_refused_with_what_to_do(shell: Shell, user: Path) -> None:
    for words, complaint in (
        (("connect", "claude"), "Claude Code has no folder"),
        (("connect", "cursor"), "choose one of: codex, claude, opencode, gemini, qwen, copilot"),
        (("connect", "gemini", "--via", "import"), "Gemini CLI cannot be connected by import (it can by: hook)"),
        (("disconnect", "cursor"), "choose one of"),
        (("connect", "all"), "choose one of"),
        (("connect",), "AGENT"),
    ):
        said = shell(*words)
        assert said.code == 2, said
        assert complaint in said.err.replace("\n", " ")
    assert shell("disconnect", "claude").out == "claude is not connected\n"
    assert everything(user) == {}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"hooks": {', "a name in quotation marks is missing at line 1"),
        (b'{"hooks": []}', "hooks is no object"),
        (b'{"hooks": {"SessionStart": {}}}', "hooks.SessionStart is no list"),
        (b"[]", "the whole document is no object"),
        (b'{"a": "\xff"}', "it is not UTF-8"),
        (b'{"a": 1 // c\n}', "a comma or } is missing"),
        (b" " * 5_000_000, "5,000,000 bytes"),
    ],
)
def test_a_broken_file_is_refused_and_left_as_it_is(shell: Shell, user: Path, content: bytes, complaint: str) -> None:
    file = settings_of(user, "claude", "settings.json")
    file.write_bytes(content)
    before = everything(user)
    said = shell("connect", "claude")
    assert said.code == 2, said
    assert str(file) in said.err
    assert complaint in said.err
    assert "nothing was changed" in said.err
    assert everything(user) == before
    assert not (shell.home.path / "connect").exists()


@pytest.mark.parametrize(
    ("content", "complaint"), [("[features\n", "not valid TOML"), ("hooks = {Stop = [1]}\n", "leave no place")]
)
def test_broken_settings_of_codex_are_refused(shell: Shell, user: Path, content: str, complaint: str) -> None:
    file = settings_of(user, "codex", "config.toml")
    file.write_text(content)
    before = everything(user)
    said = shell("connect", "codex")
    assert (said.code, complaint in said.err) == (2, True), said
    assert everything(user) == before


def test_places_that_cannot_be_written_are_refused(shell: Shell, user: Path) -> None:
    file = settings_of(user, "claude", "settings.json")
    file.mkdir()
    assert "it is a folder" in shell("connect", "claude").err
    file.rmdir()
    file.symlink_to(file)
    assert "symbolic links" in shell("connect", "claude").err
    file.unlink()
    file.symlink_to(user / "gone" / "settings.json")
    assert "whose folder is missing" in shell("connect", "claude").err
    file.unlink()
    os.mkfifo(file)
    assert "no ordinary file" in shell("connect", "claude").err
    file.unlink()
    file.write_text("{}")
    file.chmod(0o444)
    said = shell("connect", "claude")
    assert (said.code, "may not be written" in said.err) == (2, True), said
    assert file.read_text() == "{}"
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


def test_a_link_is_written_through_and_stays_a_link(shell: Shell, user: Path) -> None:
    file = settings_of(user, "claude", "settings.json")
    dotfiles = user / "dotfiles" / "claude.json"
    dotfiles.parent.mkdir()
    dotfiles.write_bytes((FIXTURES / "claude-settings.json").read_bytes())
    dotfiles.chmod(0o640)
    file.symlink_to("../dotfiles/claude.json")
    before = everything(user)
    shell("connect", "claude")
    assert file.is_symlink()
    assert "bin/hook" in dotfiles.read_text()
    assert dotfiles.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in dotfiles.parent.iterdir()] == ["claude.json"], "nothing is left beside it"
    shell("disconnect", "claude")
    assert everything(user) == before


def test_a_crash_between_the_steps_of_connect_is_harmless(shell: Shell, user: Path) -> None:
    """Backup, record, file: after each of them the next connect finishes, and disconnect restores."""
    file = settings_of(user, "claude", "settings.json", "claude-settings.json")
    original = file.read_bytes()
    before = everything(user)
    backup = file.with_name("settings.json.memoryd-backup")
    backup.write_bytes(original)  # killed after the backup
    shell("connect", "claude")
    connected = file.read_bytes()
    shell("disconnect", "claude")
    assert everything(user) == before

    shell("connect", "claude")
    file.write_bytes(original)  # killed after the record
    assert shell("connect", "claude", "--json").json["result"] == "connected"
    assert file.read_bytes() == connected
    file.write_bytes(original)
    assert "was no longer in" in shell("disconnect", "claude").out
    assert everything(user) == before


def test_a_lost_record_or_backup_still_lets_go_of_the_file(shell: Shell, user: Path) -> None:
    file = settings_of(user, "claude", "settings.json", "claude-settings.json")
    original = file.read_bytes()
    shell("connect", "claude")
    (shell.home.path / "connect" / "claude.json").unlink()
    assert shell("disconnect", "claude", "--json").json["result"] == "taken out"
    assert file.read_bytes() == original
    shell("connect", "claude")
    file.with_name("settings.json.memoryd-backup").write_text("{}")
    assert shell("disconnect", "claude", "--json").json["result"] == "taken out"
    assert file.read_bytes() == original
    shell("connect", "claude")
    (shell.home.path / "connect" / "claude.json").write_text("[]")
    said = shell("disconnect", "claude")
    assert (said.code, "remove it" in said.err) == (1, True)


def test_without_a_record_a_file_of_ours_alone_goes_and_a_backup_that_a_crash_left_too(
    shell: Shell, user: Path
) -> None:
    settings_of(user, "copilot")
    shell("connect", "copilot")
    (shell.home.path / "connect" / "copilot.json").unlink()
    assert shell("disconnect", "copilot", "--json").json["result"] == "taken out"
    assert not (user / ".copilot" / "hooks" / "memoryd.json").exists()
    file = settings_of(user, "claude", "settings.json", "claude-settings.json")
    backup = file.with_name("settings.json.memoryd-backup")
    backup.write_bytes(file.read_bytes())
    assert shell("disconnect", "claude").out == "claude is not connected\n"
    assert not backup.exists()


def test_a_file_that_would_be_chosen_now_does_not_hide_the_one_that_was(shell: Shell, user: Path) -> None:
    """OpenCode's second file, Codex's other place for hooks and its override appear after connecting."""
    for agent, via, name, recorded, later in (
        ("opencode", "instructions", "opencode.json", "opencode.json", "opencode.jsonc"),
        ("codex", "hook", "config.toml", "codex-config.toml", "hooks.json"),
        ("codex", "instructions", "AGENTS.md", "codex-AGENTS.md", "AGENTS.override.md"),
    ):
        file = settings_of(user, agent, name, recorded)
        assert shell("connect", agent, "--via", via).code == 0
        file.with_name(later).write_text('{"hooks": {}}' if later.endswith(("json", "jsonc")) else "words")
        again = shell("connect", agent, "--via", via)
        assert (again.code, str(file) in again.err) == (2, True), "nothing is told twice"
        assert shell("disconnect", agent, "--json").json["result"] == "restored"
        assert file.read_bytes() == (FIXTURES / recorded).read_bytes()


def test_a_change_that_another_program_makes_at_this_moment_is_not_overwritten(user: Path) -> None:
    file = user / "settings.json"
    file.write_text("{}")
    found = files.look(file)
    file.write_text('{"theirs": 1}')
    with pytest.raises(UsageError, match="another program changed it"):
        files.replace(found, b'{"ours": 1}')
    assert file.read_text() == '{"theirs": 1}'
    assert [path.name for path in user.iterdir()] == ["settings.json"]


def test_what_an_earlier_version_wrote_is_brought_up_to_date(shell: Shell, user: Path) -> None:
    file = settings_of(user, "claude", "settings.json", "claude-settings.json")
    before = everything(user)
    shell("connect", "claude")
    connected = file.read_bytes()
    file.write_bytes(connected.replace(b'"timeout": 10', b'"timeout": 77'))
    shell("connect", "claude")
    assert file.read_bytes() == connected
    shell("disconnect", "claude")
    assert everything(user) == before


def test_a_file_that_became_broken_since_is_left_and_the_way_out_said(shell: Shell, user: Path) -> None:
    file = settings_of(user, "claude", "settings.json", "claude-settings.json")
    shell("connect", "claude")
    file.write_text(file.read_text() + "}")
    before = everything(user)
    said = shell("disconnect", "claude")
    assert (said.code, "after the end" in said.err, "by hand" in said.err) == (2, True, True), said
    assert everything(user) == before
    file.unlink()
    assert shell("disconnect", "claude").code == 0
    assert everything(user) == {".claude": everything(user)[".claude"]}, "what a person removed stays removed"


def test_two_homes_do_not_both_tell_one_agent(shell: Shell, user: Path, tmp_path: Path) -> None:
    settings_of(user, "claude", "settings.json", "claude-settings.json")
    shell("connect", "claude")
    before = everything(user)
    other = Shell(tmp_path / "other", shell._capsys)
    other.folder.mkdir()
    said = other("connect", "claude")
    assert said.code == 2
    assert str(shell.home.path) in said.err
    assert other("disconnect", "claude").out == "claude is not connected\n"
    assert everything(user) == before


def test_hooks_that_are_turned_off_are_said(shell: Shell, user: Path) -> None:
    for agent, file, text in (
        ("claude", "settings.json", '{"disableAllHooks": true}'),
        ("qwen", "settings.json", '{"disableAllHooks": true}'),
        ("gemini", "settings.json", '{"hooksConfig": {"enabled": false}}'),
        ("codex", "config.toml", "[features]\nhooks = false\n"),
        ("copilot", "config.json", '// kept by copilot\n{"disableAllHooks": true}'),
    ):
        settings_of(user, agent, file).write_text(text)
        assert any("no hook runs" in each for each in shell("connect", agent, "--json").json["next"]), agent


@pytest.mark.parametrize("name", ["plain", "with spaces", "it's", 'say "hi"', "$HOME `x` \\", "日本"])
def test_the_hooks_command_fails_open_whatever_is_gone(tmp_path: Path, name: str) -> None:
    """I11: no runner, one that is no program, one without an interpreter, one that fails: exit 0, and silence."""
    home = Home(tmp_path / name)
    command = hook_command(home, "claude", "SessionStart")

    def run() -> tuple[int, str, str]:
        done = subprocess.run(["sh", "-c", command], input="{}", capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run() == (0, "", ""), "no home"
    home.bin.mkdir(parents=True)
    runner = home.bin / "hook"
    runner.write_text("#!/nowhere/python\n")
    assert run() == (0, "", ""), "not executable"
    runner.chmod(0o700)
    assert run() == (0, "", ""), "no interpreter"
    runner.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    assert run() == (0, "", ""), "it fails"
    runner.write_text('#!/bin/sh\ncat\nprintf "%s %s" "$1" "$2"\n')
    assert run() == (0, "{}claude SessionStart", "")
