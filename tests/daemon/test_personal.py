"""Undo and review over the control socket of a daemon that runs."""

from pathlib import Path

from memoryd.ledger import proposals
from tests.pipeline.test_consolidate import FIRST, memory, remember
from tests.support.clock import FakeClock
from tests.support.daemon import a_daemon


async def test_a_daemon_undoes_and_reviews_on_request(tmp_path: Path, clock: FakeClock) -> None:
    async with a_daemon(tmp_path, clock, consolidate__review="manual") as daemon:
        context = daemon.context
        assert (await daemon.ask(do="undo", count=1))[0] == {"commit": None, "changes": [], "held": []}
        await remember(context, FIRST, "Always use tabs in the Makefile")
        clock.jump(1)
        await daemon.logged("job.completed", outcome="proposed")
        waiting = await context.ledger.read(proposals.waiting)
        assert waiting is not None

        told = (await daemon.ask(do="review", action="accept", number=1, shown="ffff"))[0]
        assert "not ffff" in str(told["wrong"])
        told = (await daemon.ask(do="review", action="accept", number=1, shown=waiting.commit[:7]))[0]
        assert told == {"number": 1, "state": "accepted", "commit": waiting.commit, "held": []}
        assert "tabs" in memory(context)

        told = (await daemon.ask(do="undo", count=1))[0]
        assert told["held"] == [FIRST]
        assert "tabs" not in memory(context)
        assert "holds 2" in str((await daemon.ask(do="undo", count=3))[0]["wrong"])
