"""A ledger that runs every function that writes twice, the first time in vain, as it may happen to any of them."""

import sqlite3
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from memoryd.errors import MemorydError
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import Lease

P = ParamSpec("P")
T = TypeVar("T")


class TwiceLedger(Ledger):
    """The same open ledger; whoever writes through it is shown to have no effect but on the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        # Not a copy: what one of both is told (its fence, its closing) holds for the other.
        self.__dict__ = ledger.__dict__

    async def write(
        self, fn: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `fn` and undo it, then run it; both times it must end in the same way."""

        def run(conn: sqlite3.Connection) -> T | MemorydError:
            try:
                return fn(conn, *args, **kwargs)
            except MemorydError as error:
                return error

        def twice(conn: sqlite3.Connection) -> T:
            conn.execute("SAVEPOINT once")
            in_vain = run(conn)
            conn.execute("ROLLBACK TO once")
            conn.execute("RELEASE once")
            answer = run(conn)
            # A lease has a token of its own each time, and so has what complains about one.
            both_alike = in_vain == answer or isinstance(answer, Lease | MemorydError)
            assert both_alike, f"{fn} first answered {in_vain!r}, then {answer!r}"
            assert type(in_vain) is type(answer), f"{fn} first ended with {in_vain!r}, then with {answer!r}"
            if isinstance(answer, MemorydError):
                raise answer
            return answer

        return await super().write(twice)
