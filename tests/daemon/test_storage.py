from dataclasses import replace
from pathlib import Path

from memoryd.daemon.storage import TRIAL_FILE, Storage
from memoryd.errors import DiskFull
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines


async def test_a_pause_ends_by_itself_when_a_trial_write_goes_through(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        storage = Storage(context)
        assert await storage.look_again()
        storage.refuse("no room")
        since = storage.since
        clock.jump(60)
        storage.refuse("no room at all")
        assert (storage.reason, storage.since) == ("no room at all", since)

        assert await storage.look_again()

        assert (storage.reason, storage.since) == (None, None)
        assert not (context.home.path / TRIAL_FILE).exists()
    assert [event["since"] for event in log.events("storage.resumed")] == [since]


class Full:
    """A ledger that takes nothing."""

    async def apart(self, *args: object, **kwargs: object) -> object:
        return True

    async def write(self, *args: object, **kwargs: object) -> object:
        raise DiskFull("still no room")


async def test_a_pause_goes_on_while_the_trial_fails(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        storage = Storage(replace(context, ledger=Full()))  # type: ignore[arg-type]  # a ledger of the test's own
        storage.refuse("no room")

        assert not await storage.look_again()

        assert storage.reason == "still no room"
        assert not (context.home.path / TRIAL_FILE).exists()


async def test_a_pause_goes_on_while_no_file_can_be_written(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        storage = Storage(context)
        storage.refuse("no room")
        in_its_place = context.home.path / TRIAL_FILE
        in_its_place.mkdir()

        assert not await storage.look_again()
        assert str(in_its_place) in str(storage.reason)

        in_its_place.rmdir()
        assert await storage.look_again()
