from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.config import Limits
from memoryd.daemon.providers_watch import ProvidersWatch, default_routes
from memoryd.daemon.spending import Spending
from memoryd.errors import AuthRefused, ModelUnavailable, Unreachable
from memoryd.ledger import jobs
from memoryd.llm.gate import Gate
from memoryd.pipeline.context import Context
from tests.ledger.factories import THREAD, claim, enqueue
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask
wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000
wlan0\t0000A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF
"""


async def waiting(context: Context, reason: str) -> None:
    await context.ledger.write(enqueue, THREAD)
    lease = await context.ledger.write(claim)
    assert lease is not None
    until = context.clock.now() + 600
    await context.ledger.write(jobs.defer, lease, now=context.clock.now(), until=until, reason=reason, error="no")


async def ready(context: Context) -> bool:
    return await context.ledger.read(jobs.waiting, now=context.clock.now()) == []


def watching(
    context: Context, clock: FakeClock, *, stamp: Callable[[], str], network: Callable[[], str]
) -> tuple[Gate, ProvidersWatch]:
    spending = Spending(context.ledger, clock, Limits())
    gate = Gate("main", clock, min_remaining_percent=25, memory=spending.gates(), stamp=stamp)
    return gate, ProvidersWatch([gate], spending, network)


@pytest.mark.parametrize("what", ["key", "network", "sleep"])
async def test_jobs_are_let_loose_when_something_has_changed_and_only_then(
    tmp_path: Path, clock: FakeClock, what: str
) -> None:
    key, network = ["old"], ["here"]
    async with a_house(settings_in(tmp_path), clock) as context:
        gate, watch = watching(context, clock, stamp=lambda: key[0], network=lambda: network[0])
        assert not await watch.look()
        failure: ModelUnavailable = AuthRefused("key") if what == "key" else Unreachable("down")
        for _ in range(2):
            gate.record_failure("m", failure)
        await waiting(context, "key_refused" if what == "key" else "provider_unreachable")
        assert not await watch.look()
        assert not await ready(context)
        with pytest.raises(ModelUnavailable):
            await gate.admit("m")

        key[0] = "new" if what == "key" else "old"
        network[0] = "there" if what == "network" else "here"
        assert await watch.look(woken=what == "sleep")

        assert await ready(context)
        await gate.admit("m")
        assert not await watch.look()


async def test_a_start_lets_loose_what_waits_for_a_person_but_waits_of_limits_stand(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await waiting(context, "rate_limited")
        _gate, watch = watching(context, clock, stamp=str, network=str)
        assert not await watch.look()
        assert not await ready(context)


def test_default_routes_are_named_by_interface_and_gateway(tmp_path: Path) -> None:
    file = tmp_path / "route"
    assert default_routes(file) == ""
    file.write_text(ROUTES)
    assert default_routes(file) == "wlan0:0100A8C0"
    file.write_text("")
    assert default_routes(file) == ""
