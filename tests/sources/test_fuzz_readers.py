"""Whatever is done to a session's file, its reader reads it or refuses it in our own words, in bounded space and time.

More examples than the suite runs: `python -m tests.sources.fuzz --examples 5000`.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.sources.readers import READERS
from tests.sources.fuzz import LONGEST, fuzz, read_all, victims
from tests.sources.mutations import BYTES, Mutation, damaged, mutations

EXAMPLES = 120


@pytest.mark.parametrize("agent", sorted(READERS))
def test_a_damaged_session_reads_or_is_refused(agent: str, tmp_path: Path) -> None:
    fuzz(agent, tmp_path, examples=EXAMPLES, repeatable=True)


@pytest.mark.parametrize("agent", sorted(READERS))
def test_noise_in_place_of_a_session_reads_or_is_refused(agent: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    candidates = victims(agent, tmp_path_factory.mktemp("noise"))[:2]

    @settings(max_examples=20, derandomize=True, deadline=LONGEST, database=None)
    @given(st.binary(max_size=3_000))
    def reads_or_refuses(content: bytes) -> None:
        for victim in candidates:
            victim.path.write_bytes(content)
            read_all(agent, victim)
            victim.path.write_bytes(victim.content)

    reads_or_refuses()


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(st.binary(max_size=300), st.lists(mutations(list(BYTES)), max_size=4))
def test_damage_can_be_done_to_anything(content: bytes, damage: list[Mutation]) -> None:
    assert isinstance(damaged(content, damage), bytes)


def test_undamaged_sessions_pass(tmp_path: Path) -> None:
    for agent in READERS:
        for victim in victims(agent, tmp_path):
            read_all(agent, victim)
