"""When a provider may be asked: limits, pauses and breakers together."""

import pytest

from memoryd.errors import (
    AuthRefused,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    Overloaded,
    RateLimited,
    UnknownModel,
    Unreachable,
)
from memoryd.llm.gate import PAUSE_CAP_SECONDS, Gate, GateMemory, pause_seconds
from memoryd.llm.gate_state import read_state
from memoryd.llm.limits import LimitSnapshot, LimitWindow
from tests.support.clock import FakeClock


@pytest.fixture
def gate(clock: FakeClock) -> Gate:
    return Gate("main", clock, min_remaining_percent=25)


async def test_a_pause_holds_for_every_model_of_the_provider(gate: Gate, clock: FakeClock) -> None:
    gate.record_failure("a", RateLimited("slow down", retry_after=30))
    with pytest.raises(RateLimited) as held:
        gate.enter("b")
    assert held.value.retry_after == 30
    await clock.advance(30)
    gate.enter("b")


async def test_a_person_who_asks_to_try_again_lifts_pauses_limits_and_breakers(gate: Gate, clock: FakeClock) -> None:
    gate.record_failure("a", RateLimited("slow down", retry_after=3_600))
    gate.record_failure("b", AuthRefused("no"))
    gate.snapshot = LimitSnapshot((LimitWindow("primary", 80, clock.now() + 50),), clock.now())
    gate.forgive()
    gate.enter("a")
    gate.enter("b")


async def test_a_full_window_is_not_asked_before_its_reset(gate: Gate, clock: FakeClock) -> None:
    gate.snapshot = LimitSnapshot((LimitWindow("primary", 80, clock.now() + 50),), clock.now())
    with pytest.raises(RateLimited, match="primary limit is 80 % used") as held:
        gate.enter("a")
    assert held.value.retry_after == 50
    await clock.advance(50)
    gate.enter("a")


def test_an_overload_pauses_only_when_it_says_for_how_long(gate: Gate) -> None:
    gate.record_failure("a", Overloaded("busy"))
    gate.enter("a")
    gate.record_failure("a", Overloaded("main answered 503: busy", retry_after=5))
    with pytest.raises(Overloaded, match="main was not asked: it wants a pause, since main answered 503: busy"):
        gate.enter("a")


async def test_who_asked_for_a_pause_is_known_after_a_restart_and_no_longer_than_the_pause(clock: FakeClock) -> None:
    kept = Kept()
    await failed(a_gate(clock, kept), "a", RateLimited("main answered 429: slow down", remedy="wait", retry_after=30))
    with pytest.raises(RateLimited, match="since main answered 429: slow down") as held:
        await a_gate(clock, kept).admit("a")
    assert (held.value.remedy, held.value.retry_after) == ("wait", 30)
    await clock.advance(31)
    assert read_state(kept.texts["main"], clock, longest_pause=60).paused_by is None


def test_the_longest_pause_is_told_with_its_own_reason(gate: Gate) -> None:
    gate.record_failure("a", RateLimited("the week is used up", retry_after=3_600))
    gate.record_failure("a", Overloaded("busy", retry_after=5))
    with pytest.raises(RateLimited, match="the week is used up"):
        gate.enter("a")


def test_breakers_are_kept_by_model(gate: Gate) -> None:
    gate.record_failure("a", UnknownModel("no such model"))
    gate.enter("b")
    with pytest.raises(UnknownModel):
        gate.enter("a")


def test_a_refused_request_shows_that_key_and_model_are_good(gate: Gate) -> None:
    gate.record_failure("a", AuthRefused("key"))
    gate.record_failure("a", ContextOverflow("too long"))
    gate.enter("a")


@pytest.mark.parametrize(
    ("refusals", "asked_for", "pause"),
    [
        (1, None, 1.0),
        (3, None, 4.0),
        (1, 30.0, 30.0),
        (6, 1.0, 32.0),
        (90, None, PAUSE_CAP_SECONDS),
        (1, 1e9, PAUSE_CAP_SECONDS),
    ],
)
def test_the_pause_is_what_is_asked_for_but_at_least_our_own(
    refusals: int, asked_for: float | None, pause: float
) -> None:
    assert pause_seconds(refusals, asked_for) == pause


class Kept:
    """A memory of gates that lasts over restarts, and who was told of recoveries."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.written = 0
        self.recovered: list[str] = []

    @property
    def memory(self) -> GateMemory:
        return GateMemory(self._load, self._store, self._told)

    async def _load(self, provider: str) -> str | None:
        return self.texts.get(provider)

    async def _store(self, provider: str, text: str) -> None:
        self.texts[provider] = text
        self.written += 1

    async def _told(self, provider: str) -> None:
        self.recovered.append(provider)


def a_gate(clock: FakeClock, kept: Kept, *, stamp: str = "here", recorded: LimitSnapshot | None = None) -> Gate:
    async def of_agent() -> LimitSnapshot | None:
        return recorded

    return Gate("main", clock, min_remaining_percent=25, memory=kept.memory, recorded=of_agent, stamp=lambda: stamp)


async def failed(gate: Gate, model: str, error: ModelError) -> None:
    await gate.admit(model)
    gate.record_failure(model, error)
    await gate.keep()


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (RateLimited("slow down", retry_after=7200), 7200),
        (Overloaded("busy", retry_after=90), 90),
        (AuthRefused("key", status=401, remedy="set it"), 60),
        (UnknownModel("no such model", status=404), 60),
    ],
)
async def test_what_was_found_out_outlives_a_restart(clock: FakeClock, error: ModelUnavailable, wait: float) -> None:
    kept = Kept()
    await failed(a_gate(clock, kept), "a", error)
    clock.jump(10)
    await clock.advance(10)

    with pytest.raises(type(error)) as held:
        await a_gate(clock, kept).admit("a")

    assert held.value.retry_after is not None
    assert wait - 21 <= held.value.retry_after <= wait
    if wait == 60:
        assert (held.value.message, held.value.status, held.value.remedy) == (error.message, error.status, error.remedy)
    clock.jump(wait)
    await a_gate(clock, kept).admit("a")


async def test_a_changed_key_file_address_or_key_source_arms_everything_anew(clock: FakeClock) -> None:
    kept, stamps = Kept(), ["old"]
    gate = Gate("main", clock, min_remaining_percent=25, memory=kept.memory, stamp=lambda: stamps[0])
    await failed(gate, "a", AuthRefused("key"))
    await failed(gate, "b", RateLimited("limit", retry_after=7200))

    stamps[0] = "new"

    await gate.admit("a")
    await gate.admit("b")
    await a_gate(clock, kept, stamp="another process, another key").admit("a")


async def test_another_network_lets_one_request_probe_and_forgives_no_key(clock: FakeClock) -> None:
    gate = a_gate(clock, Kept())
    await failed(gate, "a", Unreachable("down"))
    await failed(gate, "a", Unreachable("down"))
    await failed(gate, "b", AuthRefused("key"))

    gate.network_changed()

    await gate.admit("a")
    for model in ("a", "b"):
        with pytest.raises(ModelUnavailable):
            await gate.admit(model)


async def test_a_clock_set_back_makes_no_pause_longer_than_it_may_be(clock: FakeClock) -> None:
    kept = Kept()
    await failed(a_gate(clock, kept), "a", RateLimited("limit", retry_after=100))
    clock.jump(-86_400)
    with pytest.raises(RateLimited) as held:
        await a_gate(clock, kept).admit("a")
    assert held.value.retry_after == PAUSE_CAP_SECONDS


async def test_limits_that_forbid_requests_outlive_a_restart_until_they_are_over(clock: FakeClock) -> None:
    kept = Kept()
    gate = a_gate(clock, kept)
    await gate.admit("a")
    gate.snapshot = LimitSnapshot((LimitWindow("5h", 90, clock.now() + 500),), clock.now())
    await gate.keep()
    with pytest.raises(RateLimited, match="5h limit is 90 % used"):
        await a_gate(clock, kept).admit("a")
    clock.jump(500)
    await a_gate(clock, kept).admit("a")


async def test_nothing_is_written_while_nothing_changes(clock: FakeClock) -> None:
    kept = Kept()
    gate = a_gate(clock, kept)
    for _ in range(3):
        await gate.admit("a")
        gate.snapshot = LimitSnapshot((LimitWindow("5h", 10, clock.now() + 500),), clock.now())
        gate.record_answer("a")
        await gate.keep()
    assert (kept.written, kept.recovered) == (0, [])


async def test_who_waits_is_told_once_when_a_provider_answers_again(clock: FakeClock) -> None:
    kept = Kept()
    gate = a_gate(clock, kept)
    await failed(gate, "a", AuthRefused("key"))
    await clock.advance(60)
    for _ in range(2):
        await gate.admit("a")
        gate.record_answer("a")
        await gate.keep()
    assert kept.recovered == ["main"]


async def test_looking_takes_no_probe(clock: FakeClock) -> None:
    gate = a_gate(clock, Kept())
    await failed(gate, "a", AuthRefused("key"))
    with pytest.raises(AuthRefused):
        await gate.check("a")
    await clock.advance(60)
    await gate.check("a")
    await gate.admit("a")
    with pytest.raises(AuthRefused):
        await gate.check("a")


@pytest.mark.parametrize(
    ("used", "resets_in", "reached", "passes"),
    [(75, 50, None, True), (75.1, 50, None, False), (99, -1, None, True), (10, 50, "primary", False)],
    ids=["equal passes", "less remains", "its reset has passed", "said to be reached"],
)
async def test_limits_that_the_agent_recorded_count_for_a_provider_that_runs_it(
    clock: FakeClock, used: float, resets_in: float, reached: str | None, passes: bool
) -> None:
    window = LimitWindow("primary", used, clock.now() + resets_in)
    gate = a_gate(clock, Kept(), recorded=LimitSnapshot((window,), clock.now() - 9, reached))
    if passes:
        await gate.admit("a")
        return
    with pytest.raises(RateLimited) as held:
        await gate.admit("a")
    assert held.value.retry_after == 50


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"breakers": {"a": 7}, "paused_until": "soon"}'])
async def test_a_memory_that_cannot_be_read_is_none(clock: FakeClock, text: str) -> None:
    kept = Kept()
    kept.texts["main"] = text
    await a_gate(clock, kept).admit("a")
