"""skeleton"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from memoryd.clock import Clock

P = ParamSpec("P")
T = TypeVar("T")


class Ledger:
    """The ledger: one connection, one thread; every transaction is one synchronous function."""

    @classmethod
    async def open(cls, path: Path, *, clock: Clock, read_only: bool = False) -> Self:
        """Open it."""
        raise NotImplementedError

    async def write(
        self, fn: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run one transaction."""
        raise NotImplementedError

    async def read(
        self, fn: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run one reading transaction."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
