"""I6: of a corpus in which every shape of secret stands everywhere, none is sent, stored, logged or told."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import laden
from tests.support.model_server import ModelServer
from tests.support.process import Place

SCANNER = shutil.which("kingfisher", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
NOTHING_FOUND, FOUND = 0, 200


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("laden"))


@pytest.fixture(scope="module")
def left(place: Place) -> Iterator[dict[str, bytes]]:
    with ModelServer() as server:
        yield laden.run_all(place, server)


def test_not_a_piece_of_any_secret_is_in_a_request_row_file_object_log_or_answer(left: dict[str, bytes]) -> None:
    pieces = laden.needles()
    found = {
        (where, name, piece) for where, content in left.items() for piece, name in pieces.items() if piece in content
    }
    assert found == set()


def test_the_run_came_to_memories_and_redacted_on_the_way(place: Place, left: dict[str, bytes]) -> None:
    """Without this the search might have found nothing because there was nothing."""
    assert place.query("SELECT count(*) FROM stage1_outputs")[0][0] == len(laden.pages())
    assert place.git("status", "--porcelain", "--untracked-files=all").startswith("?? extensions/ad_hoc/notes/")
    assert set(laden.needles()) & {piece for path in laden.files(place.codex) for piece in pieces_in(path)} == set(
        laden.needles()
    )
    for where in ("requests", "git objects", "ledger as text", "memories/raw_memories.md"):
        assert left[where].count(b"REDACTED_SECRET") > 50, where
    assert b"REDACTED_SECRET" in b"".join(content for where, content in left.items() if where.startswith("jobs show"))
    assert place.query("SELECT count(*) FROM attempts WHERE error LIKE '%REDACTED_SECRET%'")[0][0] > 0
    assert left["the daemon"].count(b"\n") > 5


def pieces_in(path: Path) -> set[bytes]:
    content = path.read_bytes()
    return {piece for piece in laden.needles() if piece in content}


@pytest.mark.skipif(SCANNER is None, reason="needs the scanner: pip install kingfisher-bin")
def test_an_independent_scanner_finds_nothing(place: Place, left: dict[str, bytes], tmp_path: Path) -> None:
    laden.write_left(tmp_path / "left", left)
    done = scan(tmp_path / "left", tmp_path)
    assert done.returncode == NOTHING_FOUND, done.stdout
    planted = scan(place.codex, tmp_path)
    assert planted.returncode == FOUND, planted.stderr
    assert planted.stdout.count('"rule":') >= 30


def scan(folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCANNER), "scan", "--no-validate", "--no-update-check", "--format", "json", str(folder)],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
