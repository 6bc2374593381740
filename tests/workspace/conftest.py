"""Fixtures of the memory folder's tests: a home in tmp_path and its repository."""

from pathlib import Path

import pytest

from memoryd.redact import Redactor
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home
from tests.workspace.factories import a_home, a_repository


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path)


@pytest.fixture
def repo(home: Home) -> Repository:
    return a_repository(home)


@pytest.fixture(scope="session")
def redactor() -> Redactor:
    return Redactor()
