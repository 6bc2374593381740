"""The seven prescribed packages: each is imported in its room alone, and does its work there."""

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
ROOMS = {
    "aiosqlite": "memoryd/ledger/",
    "apscheduler": "memoryd/daemon/ticker.py",
    "httpx": "memoryd/llm/",
    "pydantic_settings": "memoryd/config.py",
    "structlog": "memoryd/logs.py",
    "watchfiles": "memoryd/daemon/watcher.py",
}


def importers(package: str, folder: str) -> set[str]:
    """The files below a folder that import a package."""
    found = set()
    for path in (REPOSITORY / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            if any(name.split(".")[0] == package for name in names):
                found.add(str(path.relative_to(REPOSITORY)))
    return found


@pytest.mark.parametrize(("package", "room"), ROOMS.items())
def test_a_package_is_used_in_its_room_and_nowhere_else(package: str, room: str) -> None:
    files = importers(package, "memoryd")
    assert files
    assert all(file.startswith(room) for file in files), files


def test_pytest_asyncio_runs_the_tests_of_coroutines(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("asyncio_mode") == "auto"
    assert pytestconfig.pluginmanager.hasplugin("asyncio")


def test_callbacks_of_the_scheduler_only_set_wake_ups() -> None:
    """APScheduler decides nothing: what a crew hands to the ticker are `set` methods alone."""
    tree = ast.parse((REPOSITORY / "memoryd/daemon/crew.py").read_text(encoding="utf-8"))
    (ticks,) = (
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Ticker"
    )
    assert isinstance(ticks, ast.Dict)
    callbacks = [value.elts[1] for value in ticks.values if isinstance(value, ast.Tuple)]
    assert len(callbacks) == len(ticks.values)
    assert all(isinstance(callback, ast.Attribute) and callback.attr == "set" for callback in callbacks)
