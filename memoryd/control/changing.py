"""How a command changes the memory: it takes the lock and does so itself, or asks the daemon that holds it."""

import asyncio
from typing import Any

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import plural, start_logging
from memoryd.daemon import control_socket, personal
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.errors import LedgerBusy, UsageError
from memoryd.workspace.layout import Home

SHOWN_HELD = 5


def changed(settings: Settings, request: dict[str, object], *, role: str) -> dict[str, Any]:
    """Have a request of daemon/personal.py done; raises UsageError for what the person got wrong."""
    start_logging(settings, beside_bars=True)
    result = asyncio.run(_done(settings, request, role))
    if "wrong" in result:
        raise UsageError(str(result["wrong"]), remedy=str(result["remedy"]))
    return result


def held_lines(held: list[str]) -> list[str]:
    """Tell which sessions stay out of the memory until they grow."""
    if not held:
        return []
    shown = ", ".join(held[:SHOWN_HELD]) + (f" and {len(held) - SHOWN_HELD} more" if len(held) > SHOWN_HELD else "")
    return [f"{plural(len(held), 'session')} stay{'' if len(held) > 1 else 's'} out until changed: {shown}"]


async def _done(settings: Settings, request: dict[str, object], role: str) -> dict[str, Any]:
    home = Home(settings.home)
    try:
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role=role) as context:
            return await personal.answer(context, request)
    except LedgerBusy:
        if not daemon_holds(home):
            raise
    return await control_socket.ask(home.socket, request, lambda _step: None)
