from pathlib import Path

import pytest

from memoryd.ledger import outputs
from memoryd.ledger.outputs import Snapshot
from memoryd.pipeline.retain import retain
from tests.ledger.factories import OTHER, THREAD, an_output, recorded_every_day
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines

DAY = 86_400


@pytest.mark.parametrize("jump", [-400 * DAY, 40 * DAY])
async def test_nothing_is_pruned_by_a_clock_in_doubt(tmp_path: Path, clock: FakeClock, jump: float) -> None:
    settings = settings_in(tmp_path, consolidate__max_unused="30d")
    async with a_house(settings, clock) as context:
        await context.ledger.write(recorded_every_day, until=clock.now())
        for thread, age in ((THREAD, 31 * DAY), (OTHER, 1 * DAY)):
            output = an_output(thread, source_updated_at=int(clock.now() - age))
            await context.ledger.write(outputs.store, output, now=clock.now())
    clock.reboot()
    clock.jump(jump)
    async with a_house(settings, clock) as context:
        assert await retain(context) == 0
        clock.jump(-jump)
        assert await retain(context) == 1
        assert await context.ledger.read(outputs.get, OTHER) is not None


async def test_what_nobody_selected_or_used_for_long_leaves_the_ledger(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path, consolidate__max_unused="30d"), clock) as context:
        await context.ledger.write(recorded_every_day, until=clock.now())
        old, fresh = int(clock.now() - 31 * DAY), int(clock.now() - 29 * DAY)
        for thread, updated_at in ((THREAD, old), (OTHER, fresh), ("selected", old)):
            await context.ledger.write(outputs.store, an_output(thread, source_updated_at=updated_at), now=clock.now())
        await context.ledger.write(outputs.mark_consumed, [Snapshot("selected", old)])

        assert await retain(context) == 1
        assert await retain(context) == 0

        assert await context.ledger.read(outputs.get, THREAD) is None
        assert await context.ledger.read(outputs.get, OTHER) is not None
        assert await context.ledger.read(outputs.get, "selected") is not None
    assert [line["count"] for line in log.events("output.pruned")] == [1]
