"""memoryd as a wheel, built and installed into an environment of its own, without a network."""

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.process import REPOSITORY

OPTIONS = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")


def build_wheel(folder: Path) -> Path:
    """Build this checkout into a wheel, with the backend that pyproject names."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("memoryd-*.whl")
    return wheel


def make_environment(folder: Path) -> Path:
    """Make an environment that borrows the packages memoryd needs, not memoryd itself; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, umask=0o022)
    _packages_of(folder).joinpath("borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "python"


def install_wheel(interpreter: Path, wheel: Path) -> None:
    """Install a wheel as a person would; skips the test where there is no pip."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("there is no pip in the environment of the tests")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(interpreter), "install", *OPTIONS, str(wheel)],
        check=True,
        umask=0o022,
    )


def share_packages(interpreter: Path, other: Path) -> None:
    """Let one environment have what is installed in another: an upgrade to another place."""
    folder = _packages_of(interpreter.parents[1])
    (folder / "shared.pth").write_text(f"{_packages_of(other.parents[1])}\n")


def _packages_of(environment: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return environment / "lib" / version / "site-packages"
