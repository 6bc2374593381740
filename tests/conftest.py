"""What holds for every test: an empty HOME, a bare environment, and no way out of the machine or into the real HOME."""

import os
from pathlib import Path

import pytest

from tests.support import guards
from tests.support.clock import FakeClock

guards.install()


@pytest.fixture(autouse=True)
def bare_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point HOME to an empty folder and drop every variable that would leak the machine's settings or keys."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if guards.is_personal(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
