"""The agents' real programs behind a whole pass, with the scripted model server behind them (see agents.py)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import AGENTS, FIXTURES, RealAgent, sync
from tests.support.checks import assert_accepted
from tests.support.model_asked import Recorded
from tests.support.process import GLOBAL_KIND, STAGE1_KIND, Place

RECORDED = sorted(FIXTURES.glob("*.json"))
PATHS = {"codex": "/v1/responses", "claude": "/v1/messages", "opencode": "/v1/chat/completions"}


@pytest.fixture(scope="module", params=AGENTS, ids=lambda agent: agent.name)
def passed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RealAgent, Place, list[Recorded], Any]:
    agent: RealAgent = request.param
    if agent.path is None:
        pytest.skip(f"{agent.name} is not on PATH: npm install {agent.package}")
    return agent, *sync(agent, tmp_path_factory.mktemp(agent.name))


def test_both_stages_run_through_the_real_program(passed: tuple[RealAgent, Place, list[Recorded], Any]) -> None:
    """I9: each run is a row with the tokens that the program reported."""
    _, place, _, done = passed
    assert done.code == 0, done
    assert done.json["jobs"][GLOBAL_KIND] == {"published": 1}
    assert_accepted(place, sessions=done.json["jobs"][STAGE1_KIND]["remembered"])
    runs = place.query("SELECT outcome, tokens_in > 0, tokens_out > 0 FROM requests")
    assert set(runs) == {("answered", 1, 1)}
    assert len(runs) == place.query("SELECT count(*) FROM attempts")[0][0]


def test_it_leaves_no_session_and_runs_no_hook_of_the_users(
    passed: tuple[RealAgent, Place, list[Recorded], Any],
) -> None:
    agent, place, requests, _ = passed
    assert agent.recorded_sessions(place) == []
    assert not (place.user_home / "HOOKED").exists()
    assert "WORDS-OF-THE-USER" not in json.dumps([each.body for each in requests])
    assert {path.name for path in (place.user_home / agent.home).iterdir()} == set(agent.files)
    assert list((place.home / "staging").iterdir()) == []


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_what_was_recorded_of_a_program_is_as_it_should_be(file: Path) -> None:
    """The question stands in the user's words; nothing of the user's own is there, nor tools where none are needed."""
    recorded = json.loads(file.read_text(encoding="utf-8"))
    text = json.dumps(recorded)
    assert "WORDS-OF-THE-USER" not in text
    assert "mcp" not in text.lower()
    first = Recorded(1, "POST", PATHS[file.stem.partition("-")[0]], {}, recorded["stage1"])
    assert "You read the record of one finished session" in "\n".join(first.user_texts)
    if file.stem.startswith("codex"):  # its tools cannot be taken away; its sandbox is read-only then
        assert recorded["stage1"]["text"]["format"]["type"] == "json_schema"
        assert recorded["stage1"]["text"]["format"]["strict"] is True
    else:
        assert recorded["stage1"].get("tools") in (None, [])
    assert len(recorded["stage2"]) >= 2
