"""The frame of the repository: what lies at its top, what the lock holds, and which rules nobody may wear away."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "memoryd"
LOCK = REPOSITORY / ".ci" / "requirements.txt"
TOP_LEVEL = {
    ".ci",
    ".github",
    ".gitignore",
    "LICENSE",
    "README.md",
    "config.example.toml",
    "launchd",
    "memoryd",
    "pyproject.toml",
    "systemd",
    "tests",
}
MOST_COMPLEXITY_EXCEPTIONS = 5
MOST_LINES = 400


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def contracts(kind: str) -> list[dict[str, Any]]:
    return [found for found in pyproject()["tool"]["importlinter"]["contracts"] if found["type"] == kind]


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return the files under version control; skip the test where this is no checkout."""
    git = shutil.which("git")
    if git is None or not (REPOSITORY / ".git").exists():
        pytest.skip("this is not a git checkout")
    listed = subprocess.run(
        [git, "-c", "safe.directory=*", "-C", str(REPOSITORY), "ls-files", "-z"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    return tuple(Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name)


def code() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def rooms() -> set[str]:
    return {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {
        "__init__"
    }


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_top_level_holds_only_what_is_agreed() -> None:
    assert {path.parts[0] for path in tracked_files()} <= TOP_LEVEL


def test_no_tracked_file_tells_of_the_place_where_it_was_written() -> None:
    building_site = re.compile(r"\.\./sha" + r"red\b|/wo" + r"rk/(?:main|shared)|/tmp/(?:ve" + r"nv|pl" + r"an)\b")
    telling = [
        str(path)
        for path in tracked_files()
        if (REPOSITORY / path).is_file() and building_site.search((REPOSITORY / path).read_text(errors="replace"))
    ]
    assert telling == []


def test_no_sentence_leans_on_a_paper_that_is_not_here() -> None:
    """Papers are called in capitals; those of agents, and the memory's own, are what the product reads and writes."""
    here = {path.name for path in tracked_files()}
    products = {"AGENTS.md", "CLAUDE.md", "GEMINI.md", "MEMORY.md", "SKILL.md"}
    cited = {
        f"{path}: {name}"
        for path in tracked_files()
        if path.suffix == ".py" and path.parts[0] == "memoryd" and (REPOSITORY / path).is_file()
        for name in re.findall(r"\b[A-Z][A-Z_-]+\.md\b", (REPOSITORY / path).read_text())
        if name not in here | products
    }
    numbered = modules_with(r"\bI\d+\)|\binvariant I\d+|\.md section \d")
    assert (sorted(cited), numbered) == ([], [])


def test_the_lock_pins_each_package_with_hashes_and_names_no_host() -> None:
    text = LOCK.read_text()
    assert re.search(r"://|--(?:extra-)?index|--find-links|--trusted|(?<!==)\s@\s", text) is None
    entries = [entry for entry in re.split(r"\n(?=[a-z0-9])", text) if not entry.startswith("#")]
    assert [entry for entry in entries if not re.match(r"[a-z0-9.-]+==\S+ .*--hash=sha256:", entry, re.DOTALL)] == []


def test_the_lock_holds_every_package_that_pyproject_asks_for() -> None:
    wanted = [
        *pyproject()["project"]["dependencies"],
        *pyproject()["dependency-groups"]["dev"],
        *pyproject()["build-system"]["requires"],
    ]
    names = {normalised(re.split(r"[<>=!~;\[ ]", requirement)[0]) for requirement in wanted}
    locked = {normalised(name) for name in re.findall(r"(?m)^([A-Za-z0-9._-]+)==", LOCK.read_text())}
    assert names - locked == set()


def test_every_room_has_its_layer() -> None:
    (layers,) = contracts("layers")
    named = {room.strip() for layer in layers["layers"] for room in re.split(r"[|:]", layer)}
    assert named == rooms()
    assert layers["exhaustive"] is True


@pytest.mark.parametrize("contract", contracts("forbidden"), ids=lambda contract: str(contract["name"]))
def test_a_third_party_package_is_kept_out_of_every_room_but_its_own(contract: dict[str, Any]) -> None:
    kept_out = {module.removeprefix("memoryd.") for module in contract["source_modules"]}
    (own,) = rooms() - kept_out
    assert contract["name"].endswith(f"in {own}") or contract["name"].endswith(f"in the {own}")


def test_every_dependency_has_its_reason_beside_it() -> None:
    lines = (REPOSITORY / "pyproject.toml").read_text().splitlines()
    start = lines.index("dependencies = [")
    end = lines.index("]", start)
    assert [line for line in lines[start + 1 : end] if "  # " not in line] == []


def test_complexity_is_excused_at_most_five_times() -> None:
    excused = [path.name for path in code() for _ in re.findall(r"noqa:[^\n]*(?:C901|PLR091[25])", path.read_text())]
    assert len(excused) <= MOST_COMPLEXITY_EXCEPTIONS


def test_every_silenced_check_says_why_on_its_line() -> None:
    silent = [
        f"{path.relative_to(REPOSITORY)}:{number}"
        for path in code()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(r"#\s*(?:noqa(?::[A-Z0-9, ]+)?|type: ignore(?:\[[^\]]*\])?)\s*$", line)
    ]
    assert silent == []


def test_packages_say_nothing_when_they_are_imported() -> None:
    loud = [
        path for path in code() if path.name == "__init__.py" and path != PACKAGE / "__init__.py" and path.read_text()
    ]
    assert loud == []
    assert not any(path.stem in {"utils", "util", "common", "helpers", "models", "types"} for path in code())


def test_every_module_says_what_it_owns() -> None:
    assert [
        path.name
        for path in code()
        if path.name != "__init__.py" and not ast.get_docstring(ast.parse(path.read_text()))
    ] == []


def modules_with(pattern: str) -> list[str]:
    return [
        path.relative_to(PACKAGE).as_posix() for path in code() if re.search(pattern, path.read_text(), re.MULTILINE)
    ]


def test_no_module_is_longer_than_a_story() -> None:
    assert [path.name for path in code() if len(path.read_text().splitlines()) > MOST_LINES] == []


def test_environment_and_toml_are_read_in_one_module() -> None:
    hook = ["control/commands/hook.py"]  # looks for the home alone: an agent waits, and config.py takes its time
    assert modules_with(r"\bos\.(?:environ|getenv)\b") == ["config.py", *hook]
    agents = ["control/connecting/codex.py"]  # the settings of an agent, none of ours
    assert modules_with(r"^(?:import|from) tomllib") == ["config.py", *agents]


def test_ci_runs_what_the_contributors_guide_names() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text()
    assert os.access(REPOSITORY / ".ci" / "run", os.X_OK)
    for tool in ("ruff", "mypy", "lint-imports", "pytest"):
        assert f'"$bin/{tool}"' in script
        assert tool in (REPOSITORY / ".github" / "CONTRIBUTING.md").read_text()
    assert "--require-hashes -r .ci/requirements.txt" in script
    assert ".ci/run" in (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text()


def test_the_license_is_the_whole_apache_license() -> None:
    text = (REPOSITORY / "LICENSE").read_text()
    assert text.lstrip().startswith("Apache License\n                           Version 2.0, January 2004")
    assert "   END OF TERMS AND CONDITIONS\n" in text
    assert "   APPENDIX: How to apply the Apache License to your work." in text
    assert text.rstrip().endswith("limitations under the License.")
