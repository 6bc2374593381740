"""A scripted model server and a place with sessions, for tests of whole processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer
from tests.support.process import Place


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, measured=False)
