"""What a house remembers of the confinement of programs, and what `status` says of it."""

from pathlib import Path

import pytest

from memoryd.control import health
from memoryd.daemon.programs import is_unconfined, programs_in
from memoryd.llm.command.confinement import Mechanism
from tests.support.clock import FakeClock
from tests.support.house import PATH_ONLY, a_house, settings_in


@pytest.mark.parametrize("mechanism", list(Mechanism))
async def test_only_a_machine_that_confines_nothing_is_worth_a_word(
    tmp_path: Path, clock: FakeClock, mechanism: Mechanism
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        assert not await is_unconfined(context.ledger)
        await programs_in(context.home, context.ledger, PATH_ONLY).confiner.remember(mechanism)
        found = [finding.id for finding in await health.of_programs(context.ledger)]
    assert found == (["command_unconfined"] if mechanism is Mechanism.NONE else [])


async def test_programs_run_inside_the_house(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        place = programs_in(context.home, context.ledger, PATH_ONLY).place
    assert place.runs.is_relative_to(place.hidden)
    assert place.hidden == context.home.path
