"""What scans leave out of the listings of folders, and what they never do."""

import os
from pathlib import Path

import pytest

from memoryd.sources.files import (
    LATELY_SECONDS,
    Survey,
    changed_in,
    files_below,
    is_tellable,
    listing,
    news_in,
    session_file,
    surveying,
    without_known,
)

NOW = 1_700_000_000.0
LONG_AGO = NOW - LATELY_SECONDS - 60


def a_file(path: Path, at: float = LONG_AGO) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    os.utime(path, (at, at))
    os.utime(path.parent, (at, at))
    return path


def known(*paths: Path) -> Survey:
    return Survey({str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths})


def names(folder: Path, survey: Survey, *, quick: bool = False, hinted: tuple[str, ...] = ()) -> list[str]:
    survey.begin(quick=quick, now=NOW, hinted=hinted)
    with surveying(survey):
        return [entry.name for entry in changed_in(folder)]


def test_files_that_lie_as_they_are_known_are_left_out_and_counted(tmp_path: Path) -> None:
    same, grown, touched = (a_file(tmp_path / name) for name in ("same", "grown", "touched"))
    survey = known(same, grown, touched)
    with grown.open("a") as file:
        file.write("more")
    os.utime(grown, (LONG_AGO, LONG_AGO))
    os.utime(touched, ns=(1, 1))
    a_file(tmp_path / "added")

    assert names(tmp_path, survey) == ["added", "grown", "touched"]
    assert survey.passed_over == 1


def test_what_is_remembered_is_left_out_and_what_is_forgotten_is_news(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a")
    survey = Survey({})
    assert names(tmp_path, survey) == ["a"]
    survey.remember(str(path), path.stat().st_size, path.stat().st_mtime_ns)
    assert names(tmp_path, survey) == []
    survey.forget(str(path))
    assert names(tmp_path, survey) == ["a"]


def test_a_quick_scan_goes_through_a_quiet_folder_to_those_below(tmp_path: Path) -> None:
    a_file(tmp_path / "old" / "a")
    a_file(tmp_path / "b")
    survey = Survey({})
    assert names(tmp_path, survey) == ["b", "old"]

    assert names(tmp_path, survey, quick=True) == ["old"]
    assert names(tmp_path, survey, quick=True, hinted=(str(tmp_path / "b"),)) == ["b", "old"]
    assert names(tmp_path, survey) == ["b", "old"]


@pytest.mark.parametrize("what", ["folder", "known file"])
def test_a_folder_with_anything_recent_is_listed_by_every_scan(tmp_path: Path, what: str) -> None:
    path = a_file(tmp_path / "a")
    survey = Survey({str(path): (1, int(NOW * 1e9))} if what == "known file" else {})
    if what == "folder":
        os.utime(tmp_path, (NOW, NOW))
    names(tmp_path, survey)

    assert names(tmp_path, survey, quick=True) == ["a"]


def test_a_folder_that_is_gone_and_back_is_listed_again(tmp_path: Path) -> None:
    folder = a_file(tmp_path / "sessions" / "a").parent
    survey = Survey({})
    assert names(folder, survey) == ["a"]
    folder.rename(tmp_path / "away")
    assert names(folder, survey, quick=True) == []
    (tmp_path / "away").rename(folder)

    assert names(folder, survey, quick=True) == ["a"]


def test_who_compares_files_sees_the_known_ones_too(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a")
    survey = known(path)
    survey.begin(quick=False, now=NOW)
    with surveying(survey):
        files = [session_file("generic", entry) for entry in news_in(tmp_path)]
        assert list(without_known(file for file in files if file)) == []
    assert survey.passed_over == 1
    assert list(without_known(file for file in files if file)) == files


def test_without_a_scan_everything_is_listed(tmp_path: Path) -> None:
    a_file(tmp_path / "deep" / "er" / "a")
    a_file(tmp_path / "b")
    assert [entry.name for entry in files_below(tmp_path, 2)] == ["b", "a"]
    assert (
        [entry.name for entry in changed_in(tmp_path)] == [entry.name for entry in listing(tmp_path)] == ["b", "deep"]
    )
    assert listing(tmp_path / "nowhere") == []


def test_names_that_cannot_be_kept_are_noted_by_the_scan_that_meets_them() -> None:
    survey = Survey({})
    assert not is_tellable("\udcff.jsonl")
    with surveying(survey):
        assert is_tellable("é.jsonl")
        assert not is_tellable("a\nb.jsonl")
    assert survey.untellable == {"a\\nb.jsonl"}
