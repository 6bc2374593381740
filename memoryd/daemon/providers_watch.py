"""Notices what makes another answer of a provider likely: a new key file, another way into the network, a new start.

Then its breaker is armed anew and the jobs that wait for it are tried; still at most one request a minute finds out.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from memoryd.daemon.spending import Spending
from memoryd.llm.gate import Gate

ROUTES: Final = Path("/proc/net/route")
NO_DESTINATION: Final = "00000000"


class ProvidersWatch:
    """Compares at each look with the one before. `network` names the way into the network, "" where nobody can say."""

    def __init__(self, gates: Sequence[Gate], spending: Spending, network: Callable[[], str] | None = None) -> None:
        self._gates = gates
        self._spending = spending
        self._network = network or default_routes
        self._known_network: str | None = None

    async def look(self, *, woken: bool = False, asked: bool = False) -> bool:
        """Look once; `woken`: the machine slept, `asked`: a person wants a try. True: waiting jobs were let loose."""
        first, network = self._known_network is None, self._network()
        moved = woken or (not first and network != self._known_network)
        self._known_network = network
        let_loose = 0
        for gate in self._gates:
            changed = await gate.rearm()
            if moved:
                gate.network_changed()
            if asked:
                gate.forgive()
            if first or changed or moved or asked:
                await gate.keep()
                let_loose += await self._spending.hurry(gate.provider)
        return let_loose > 0


def default_routes(file: Path = ROUTES) -> str:
    """Return interface and gateway of each default route, as Linux lists them; "" elsewhere.

    Without this hint a provider that is back is found by the probe of the next minute.
    """
    try:
        rows = [line.split() for line in file.read_text(encoding="ascii", errors="replace").splitlines()[1:]]
    except OSError:
        return ""
    return " ".join(sorted(f"{row[0]}:{row[2]}" for row in rows if len(row) > 2 and row[1] == NO_DESTINATION))
