from pathlib import Path

import pytest

from memoryd.daemon.alarms import Alarms, expected_seconds
from memoryd.daemon.duty import Duty
from memoryd.ledger import jobs
from memoryd.ledger.states import JobKind
from tests.ledger.factories import claim, enqueue
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines


async def test_a_stage_with_work_and_no_success_for_longer_than_expected_is_told_of_once(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its settings say what to expect; time that the machine slept is nobody's fault."""
    settings = settings_in(tmp_path)
    expected = expected_seconds(JobKind.STAGE1, settings)
    assert expected == settings.ledger.retry_cap + settings.extract.max_duration
    async with a_house(settings, clock) as context:
        log, duty = LogLines(), Duty()
        alarms = Alarms(duty, context.ledger, clock, settings)
        await alarms.look()
        clock.freeze(2 * expected)
        await context.ledger.write(enqueue, now=clock.now())
        await alarms.look()
        clock.suspend(10 * expected)
        clock.freeze(expected - 1)
        await alarms.look()
        assert duty.troubles == {}
        clock.freeze(1)
        for _ in range(3):
            await alarms.look()
        (line,) = log.events("stage.stalled")
        assert (line["kind"], line["count"]) == ("memory_stage1", 1)
        (trouble,) = duty.troubles.values()
        assert (trouble.id, trouble.severity) == ("memory_stage1_stalled", "warning")

        lease = await context.ledger.write(claim, now=clock.now())
        assert lease is not None
        await context.ledger.write(jobs.skip, lease=lease, now=clock.now(), covered=None)
        await alarms.look()
        assert duty.troubles == {}


@pytest.mark.parametrize(("reason", "told"), [("budget", 0), ("provider_unreachable", 1)])
async def test_waits_that_a_person_asked_for_are_no_standstill(
    tmp_path: Path, clock: FakeClock, reason: str, told: int
) -> None:
    settings = settings_in(tmp_path)
    async with a_house(settings, clock) as context:
        log, duty = LogLines(), Duty()
        await context.ledger.write(enqueue, now=clock.now())
        lease = await context.ledger.write(claim, now=clock.now())
        assert lease is not None
        until = clock.now() + 100 * expected_seconds(JobKind.STAGE1, settings)
        await context.ledger.write(jobs.defer, lease, now=clock.now(), until=until, reason=reason, error="")
        alarms = Alarms(duty, context.ledger, clock, settings)
        for _ in range(3):
            await alarms.look()
            clock.freeze(expected_seconds(JobKind.STAGE1, settings))
        assert len(log.events("stage.stalled")) == told == len(duty.troubles)
