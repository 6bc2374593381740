"""`connect` also gives agents a way to search: the MCP server's entry, or the skill; both go again byte for byte."""

import argparse
import hashlib
import importlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from memoryd.control.connecting.skill import skill_text
from memoryd.control.main import COMMANDS, Command
from tests.control.conftest import Shell
from tests.control.test_connect import FIXTURES, FOLDERS, everything, settings_of, user

__all__ = ["user"]  # a fixture

# agent, the file of its servers below the user's home, what it holds before (None: it is not there)
SERVERS = [
    ("codex", ".codex/config.toml", "codex-config.toml"),
    ("codex", ".codex/config.toml", "codex-config-without-hooks.toml"),
    ("codex", ".codex/config.toml", None),
    ("claude", ".claude.json", "claude-settings.json"),
    ("claude", ".claude.json", None),
    ("opencode", ".config/opencode/opencode.jsonc", "opencode.jsonc"),
    ("opencode", ".config/opencode/opencode.json", "opencode.json"),
    ("opencode", ".config/opencode/opencode.json", None),
    ("gemini", ".gemini/settings.json", "gemini-settings.json"),
    ("gemini", ".gemini/settings.json", None),
    ("qwen", ".qwen/settings.json", "qwen-settings.json"),
    ("copilot", ".copilot/mcp-config.json", None),
]
servers = pytest.mark.parametrize(
    ("agent", "name", "recorded"), SERVERS, ids=[f"{agent}-{recorded or 'new'}" for agent, _, recorded in SERVERS]
)


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the machine the agents' programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for agent in FOLDERS:
        (folder / agent).write_text("#!/bin/sh\n")
        (folder / agent).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def laid_out(user: Path, agent: str, name: str, recorded: str | None) -> Path:
    settings_of(user, agent)
    file = user / name
    if recorded:
        file.write_bytes((FIXTURES / recorded).read_bytes())
        file.chmod(0o644)
    return file


def entry(file: Path, agent: str) -> Any:
    text = file.read_text(encoding="utf-8")
    if agent == "codex":
        return tomllib.loads(text)["mcp_servers"]["memoryd"]
    text = re.sub(r"/\*.*?\*/", "", text)
    bare = re.sub(r"(?m)^\s*//.*$|(?<=[\s,{])//[^\n\"]*(?:\"[^\n\"]*\")*[^\n\"]*$", "", text)
    said = json.loads(re.sub(r",(\s*[}\]])", r"\1", bare))
    return said["mcp" if agent == "opencode" else "mcpServers"]["memoryd"]


@servers
def test_the_entry_of_the_server_is_what_the_agent_reads_and_goes_to_the_byte(
    shell: Shell, user: Path, agent: str, name: str, recorded: str | None
) -> None:
    file = laid_out(user, agent, name, recorded)
    before = everything(user)
    said = shell("connect", agent, "--json")
    assert said.code == 0, said
    assert said.json["mcp"]["result"] == "connected"
    assert said.json["mcp"]["file"] == str(file)
    assert said.json["skill"] is None, "one door is enough"
    assert str(file) in said.json["wrote"]
    command = str(shell.home.bin / "memoryd")
    assert (
        entry(file, agent)
        == {
            "codex": {"command": command, "args": ["mcp"]},
            "claude": {"type": "stdio", "command": command, "args": ["mcp"], "env": {}},
            "opencode": {"type": "local", "command": [command, "mcp"], "enabled": True},
            "gemini": {"command": command, "args": ["mcp"]},
            "qwen": {"command": command, "args": ["mcp"]},
            "copilot": {"type": "local", "command": command, "args": ["mcp"], "tools": ["*"]},
        }[agent]
    )
    after = everything(user)

    again = shell("connect", agent, "--json")
    assert (again.json["result"], again.json["mcp"]["result"]) == ("already connected", "already connected")
    assert again.json["wrote"] == []
    assert everything(user) == after, "twice is once"

    end = shell("disconnect", agent, "--json")
    assert end.code == 0, end
    assert (end.json["result"], end.json["mcp"]["result"]) == ("restored", "restored")
    assert everything(user) == before
    assert not (shell.home.path / "connect").exists()


@servers
def test_what_was_added_to_the_file_since_stays(
    shell: Shell, user: Path, agent: str, name: str, recorded: str | None
) -> None:
    file = laid_out(user, agent, name, recorded)
    original = file.read_text(encoding="utf-8") if recorded else None
    shell("connect", agent)
    text = file.read_text(encoding="utf-8")
    added = 'added = "by hand"\n' if agent == "codex" else '"byHand": [1 ,2],'
    file.write_text(added + text if agent == "codex" else text.replace("{", "{" + added, 1), encoding="utf-8")
    assert shell("connect", agent, "--json").json["mcp"]["result"] == "already connected"
    assert shell("disconnect", agent, "--json").json["mcp"]["result"] == "taken out"
    left = file.read_text(encoding="utf-8")
    assert str(shell.home.path) not in left
    if original is not None:
        assert left.replace(added, "", 1) == original


@pytest.mark.parametrize(
    ("agent", "name", "theirs"),
    [
        ("codex", ".codex/config.toml", '[mcp_servers.memoryd]\ncommand = "theirs"\n'),
        ("claude", ".claude.json", '{"mcpServers": {"memoryd": {"command": "theirs"}}}'),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": {"memoryd": {"command": ["theirs"]}}}'),
        ("gemini", ".gemini/settings.json", '{"mcpServers": {"memoryd": {}}}'),
        ("copilot", ".copilot/mcp-config.json", '{"mcpServers": {"memoryd": null}}'),
        ("qwen", ".qwen/settings.json", '{"mcpServers": []}'),
    ],
)
def test_a_name_that_is_taken_is_left_alone_and_said_and_the_skill_takes_its_place(
    shell: Shell, user: Path, agent: str, name: str, theirs: str
) -> None:
    file = laid_out(user, agent, name, None)
    file.write_text(theirs)
    before = everything(user)
    said = shell("connect", agent, "--json")
    assert said.code == 0, said
    assert said.json["mcp"]["result"] == "left out"
    assert re.search("already|is no object", said.json["mcp"]["why"])
    assert "theirs" not in theirs or "theirs" in file.read_text()
    assert said.json["skill"]["result"] == "connected"
    assert "left out" in shell("connect", agent).out
    assert shell("disconnect", agent).code == 0
    assert everything(user) == before


def test_without_the_extra_or_the_program_the_entry_is_left_out_and_comes_with_them(
    shell: Shell, user: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out(user, "claude", ".claude.json", None)
    before = everything(user)
    (installed / "claude").rename(installed / "gone")
    monkeypatch.setenv("PATH", str(installed))
    said = shell("connect", "claude")
    assert "MCP server: left out: the program claude is not on the PATH" in said.out
    (installed / "gone").rename(installed / "claude")

    with monkeypatch.context() as bare:
        real = importlib.metadata.version
        for version, complaint in ((None, "needs the extra memoryd[mcp]"), ("1.28.1", "speaks mcp 2.x, and 1.28.1")):
            bare.setattr(importlib.metadata, "version", _without_mcp(real, version))
            said = shell("connect", "claude")
            assert complaint in said.out
            assert "pipx inject" in said.out

    assert shell("connect", "claude", "--json").json["mcp"]["result"] == "connected"
    assert shell("disconnect", "claude").code == 0
    assert everything(user) == before


def _without_mcp(real: Callable[[str], str], version: str | None) -> Callable[[str], str]:
    def version_of(package: str) -> str:
        if package != "mcp":
            return real(package)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(package)
        return version

    return version_of


@pytest.mark.parametrize("agent", FOLDERS)
def test_the_skill_lies_where_the_agent_looks_and_goes_again(shell: Shell, user: Path, agent: str) -> None:
    settings_of(user, agent)
    before = everything(user)
    said = shell("connect", agent, "--no-mcp", "--skill", "--json")
    assert said.json["mcp"] is None
    file = user / FOLDERS[agent] / "skills" / "memoryd" / "SKILL.md"
    assert said.json["skill"]["file"] == str(file)
    assert file.read_text() == skill_text(shell.home)
    assert file.stat().st_mode & 0o777 == 0o600
    assert shell("connect", agent, "--json").json["skill"]["result"] == "already connected"
    said = shell("disconnect", agent)
    assert said.code == 0
    assert f"skill: taken out, {file} is what it was before (connect had made it: it is removed)" in said.out
    assert everything(user) == before


def test_a_person_can_have_both_or_neither(shell: Shell, user: Path) -> None:
    laid_out(user, "claude", ".claude.json", None)
    both = shell("connect", "claude", "--skill", "--json").json
    assert (both["mcp"]["result"], both["skill"]["result"]) == ("connected", "connected")
    shell("disconnect", "claude")
    neither = shell("connect", "claude", "--no-mcp", "--no-skill", "--json").json
    assert (neither["mcp"], neither["skill"]) == (None, None)


def test_a_skill_of_that_name_that_is_not_ours_stays(shell: Shell, user: Path) -> None:
    file = settings_of(user, "claude") / "skills" / "memoryd" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: memoryd\n---\nmine\n")
    before = everything(user)
    said = shell("connect", "claude", "--skill", "--json")
    assert (said.code, said.json["skill"]["result"]) == (0, "left out")
    assert "memoryd did not write" in said.json["skill"]["why"]
    shell("disconnect", "claude")
    after = everything(user)
    after.pop(".claude.json", None)
    assert after == before


def test_a_skill_that_a_person_changed_stays_and_an_earlier_version_is_brought_up_to_date(
    shell: Shell, user: Path
) -> None:
    file = settings_of(user, "claude") / "skills" / "memoryd" / "SKILL.md"
    shell("connect", "claude", "--skill")
    file.write_text(file.read_text() + "mine\n")
    shell("disconnect", "claude")
    assert file.read_text().strip() == "mine"
    file.unlink()

    shell("connect", "claude", "--skill")
    record = shell.home.path / "connect" / "claude-skill.json"
    old = skill_text(shell.home).replace("## Pitfalls", "## Snares")
    file.write_text(old)
    said = json.loads(record.read_text())
    record.write_text(json.dumps({**said, "after": hashlib.sha256(old.encode()).hexdigest()}))
    assert shell("connect", "claude", "--json").json["skill"]["result"] == "connected"
    assert file.read_text() == skill_text(shell.home)


def test_a_dry_run_shows_every_change_and_writes_none(shell: Shell, user: Path) -> None:
    laid_out(user, "gemini", ".gemini/settings.json", "gemini-settings.json")
    before = everything(user)
    said = shell("connect", "gemini", "--skill", "--dry-run")
    added = [line for line in said.out.splitlines() if line.startswith("+")]
    assert any("bin/hook" in line for line in added)
    assert any("bin/memoryd" in line for line in added)
    assert any("name: memoryd" in line for line in added)
    assert not any(line.startswith("-") and "bin/hook" in line for line in said.out.splitlines())
    assert "MCP server: would go into" in said.out
    assert said.out.count("nothing was written") == 1
    assert everything(user) == before
    shell("connect", "gemini", "--skill")
    connected = everything(user)
    undo = shell("disconnect", "gemini", "--dry-run")
    taken = [line for line in undo.out.splitlines() if line.startswith("-")]
    assert {any(word in line for line in taken) for word in ("bin/hook", "bin/memoryd", "name: memoryd")} == {True}
    assert everything(user) == connected


def test_a_file_that_cannot_be_used_any_more_keeps_disconnect_from_touching_any(shell: Shell, user: Path) -> None:
    laid_out(user, "claude", ".claude.json", None)
    shell("connect", "claude", "--skill")
    (user / ".claude.json").write_text("{")
    before = everything(user)
    assert shell("disconnect", "claude").code == 2
    assert everything(user) == before


@pytest.mark.parametrize("content", [b"{", b'{"a": 1, "a": 2}', b'{"a": 1,}', b"\xff\xfe{"])
def test_a_file_that_could_not_take_the_server_does_not_keep_the_rest_in(
    shell: Shell, user: Path, content: bytes
) -> None:
    laid_out(user, "claude", ".claude.json", None)
    (user / ".claude.json").write_bytes(content)
    before = everything(user)
    assert shell("connect", "claude").code == 0
    assert everything(user) != before
    assert shell("disconnect", "claude").code == 0
    assert everything(user) == before


def test_without_a_record_everything_of_ours_is_found_and_taken_out(shell: Shell, user: Path) -> None:
    laid_out(user, "gemini", ".gemini/settings.json", "gemini-settings.json")
    before = everything(user)[".gemini/settings.json"]
    shell("connect", "gemini", "--skill")
    for record in (shell.home.path / "connect").iterdir():
        record.unlink()
    assert shell("disconnect", "gemini").code == 0
    assert everything(user)[".gemini/settings.json"] == before
    assert not list(user.rglob("SKILL.md"))


def test_another_home_does_not_take_the_servers_name(shell: Shell, user: Path, tmp_path: Path) -> None:
    laid_out(user, "claude", ".claude.json", None)
    shell("connect", "claude", "--via", "import")
    other = Shell(tmp_path / "other", shell._capsys)
    other.folder.mkdir()
    (user / ".claude" / "CLAUDE.md").unlink()
    said = other("connect", "claude", "--json")
    assert (said.code, said.json["mcp"]["result"]) == (0, "left out")
    assert str(shell.home.path) in said.json["mcp"]["why"]


# what doctor says


def test_doctor_starts_the_server_as_the_agent_does_and_names_each_break(
    shell: Shell, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    laid_out(user, "claude", ".claude.json", None)
    shell("connect", "claude", "--skill")

    def found() -> Any:
        return {each["id"]: each for each in shell("doctor", "--offline", "--json").json}

    said = found()
    server, skill = said["mcp_claude"], said["skill_claude"]
    assert (server["severity"], skill["severity"]) == ("ok", "ok"), (server, skill)
    assert "answers within" in server["evidence"]
    (shell.home.bin / "memoryd").write_text("#!/bin/sh\nexit 3\n")
    (user / ".claude" / "skills" / "memoryd" / "SKILL.md").write_text("")
    said = found()
    assert "ended with 3 and no answer" in said["mcp_claude"]["evidence"]
    assert "no longer in" in said["skill_claude"]["evidence"]
    (user / ".claude.json").write_text("{}")
    gone = found()["mcp_claude"]
    assert "no longer in" in gone["evidence"]
    for each in (gone, said["mcp_claude"], said["skill_claude"]):
        assert each["severity"] == "error"
        assert "memoryd connect claude" in each["remedy"]


# the skill


def test_the_skill_has_the_form_that_agents_take(shell: Shell) -> None:
    text = skill_text(shell.home)
    head = re.match(r"---\nname: memoryd\ndescription: (.+)\nallowed-tools: .+\n---\n", text)
    assert head is not None
    assert 100 < len(head[1]) <= 1024
    assert text.count("\n") < 500
    assert str(shell.home.bin / "memoryd") in text
    for heading in ("When to use it", "Procedure", "Pitfalls", "Verification"):
        assert f"## {heading}\n" in text


def test_every_command_of_the_skill_exists_with_its_options(shell: Shell) -> None:
    used = set()
    for name, rest in re.findall(r"(?:^|[`(\s])memoryd (search|read|list|why|note)\b([^`\n]*)", skill_text(shell.home)):
        used.add(name)
        if name not in COMMANDS:
            continue
        parser = argparse.ArgumentParser()
        cast("Command", importlib.import_module(f"memoryd.control.commands.{name}")).configure(parser)
        assert set(re.findall(r"--[a-z-]+", rest)) <= set(parser._option_string_actions), (name, rest)
    assert used == {"search", "read", "list", "why", "note"}


def test_the_command_at_the_stable_path_is_the_one_of_its_home_and_says_when_its_python_is_gone(
    shell: Shell, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    laid_out(user, "claude", ".claude.json", None)
    shell("connect", "claude")
    (shell.home.memories / "MEMORY.md").write_text("x\n")
    command = shell.home.bin / "memoryd"
    done = subprocess.run([command, "list"], cwd=user, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "MEMORY.md\n")
    command.write_text(command.read_text().replace(f"python={sys.executable}", "python=/nowhere/python"))
    gone = subprocess.run([command, "mcp"], cwd=user, capture_output=True, text=True, check=False)
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr == "memoryd: the Python that it was installed with is gone: /nowhere/python\n"
