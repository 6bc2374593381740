"""Removing a folder that somebody else has filled."""

import os
from pathlib import Path

from memoryd.trees import remove_tree


def test_a_folder_goes_however_deep_it_is(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    at = os.open(root, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("deep" * 5, dir_fd=at)
        inner = os.open("deep" * 5, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)

    remove_tree(root)

    assert not root.exists()


def test_files_links_pipes_and_locked_folders_go_and_what_links_lead_to_stays(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "a" / "b").mkdir(parents=True)
    (root / ".moved-0" / "c").mkdir(parents=True)
    other.mkdir()
    (other / "kept").write_text("kept")
    (root / "a" / "b" / "link").symlink_to(other)
    (root / "a" / "file").write_text("x")
    os.mkfifo(root / "a" / "pipe")
    (root / "a" / "b").chmod(0)

    remove_tree(root)

    assert not root.exists()
    assert (other / "kept").read_text() == "kept"


def test_a_link_a_file_and_nothing_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    (tmp_path / "file").write_text("x")

    for name in ("link", "file", "nothing"):
        remove_tree(tmp_path / name)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "other"]
