"""The agents' real programs, connected, started and disconnected (see connecting.py)."""

import pytest

from tests.real.connecting import MARKER, PROGRAMS, Program, Session, start_connected


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda program: program.name + program.via)
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, Session]:
    program: Program = request.param
    if program.path is None:
        pytest.skip(f"{program.name} is not on PATH: npm install {program.package}")
    return program, start_connected(program, tmp_path_factory.mktemp(program.name))


def test_the_memory_stands_once_in_the_request_that_the_model_gets(started: tuple[Program, Session]) -> None:
    _, session = started
    assert session.recalled.startswith(MARKER)
    first = session.of_first_answer
    assert sum(each["text"].count(MARKER) for each in first) == 1
    assert session.recalled.strip() in first[0]["text"]
    assert first[0]["role"] in ("developer", "system", "user")


def test_its_settings_are_what_they_were_to_the_byte(started: tuple[Program, Session]) -> None:
    program, session = started
    assert session.between != session.before
    assert session.after == session.before
    left = [path.name for path in (session.place.user_home / program.connected).parent.iterdir()]
    assert not [name for name in left if "memoryd" in name]
    for name, text in program.files.items():
        assert (session.place.user_home / name).read_text(encoding="utf-8") == text
