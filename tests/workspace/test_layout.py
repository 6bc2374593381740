import stat
from pathlib import Path

import pytest

from memoryd.errors import StorageError
from memoryd.workspace.layout import Home, prepare


def test_a_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    prepare(home)
    prepare(home)
    for folder in (home.path, home.memories, home.staging, home.recall, home.bin):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_names_in_a_home_are_those_of_the_design(tmp_path: Path) -> None:
    home = Home(tmp_path)
    paths = (home.config_file, home.ledger_file, home.memories, home.git_dir, home.staging, home.recall, home.bin)
    names = [path.relative_to(tmp_path).as_posix() for path in (*paths, home.lock_file, home.socket)]
    assert names == [
        "config.toml", "ledger.sqlite3", "memories", "memories/.git", "staging", "recall", "bin", "memoryd.lock",
        "memoryd.sock",
    ]  # fmt: skip


def test_a_file_in_the_place_of_a_folder_is_named_with_what_to_do(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.memories.write_text("")
    with pytest.raises(StorageError, match=r"memories is no folder \(move it elsewhere"):
        prepare(home)
