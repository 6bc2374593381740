"""What holds for every test: an empty HOME, a bare environment, and no way out of the machine or into the real HOME."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from memoryd import logs
from tests.support import guards
from tests.support.clock import FakeClock

guards.install()
hypothesis.settings.register_profile(  # machines are slow at times, and nothing is written beside the tests
    "memoryd", deadline=None, database=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("memoryd")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Who is started in the background by a script is told to ignore ^C, and so would be every program of the tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def bare_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Take the machine's settings, keys and HOME away before the first fixture of any scope looks for them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if guards.is_personal(name):
                patch.delenv(name)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("session-home")))
        yield


@pytest.fixture(autouse=True)
def bare_environment(
    bare_session: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Give each test an empty HOME of its own."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Give logging back as it was, however a test configured it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in logs.TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
