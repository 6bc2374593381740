"""Who carries a request to where it is answered: over HTTP (http.py), or into a program (command/shell.py)."""

from collections.abc import Mapping
from typing import Protocol

from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpReply
from memoryd.llm.visible import Show


class Shell(Protocol):
    """Carries one payload at a time, any number of them at once, until it is closed."""

    async def post(
        self,
        endpoint: Endpoint,
        path: str,
        payload: bytes,
        *,
        headers: Mapping[str, str],
        show: Show,
        stream: bool = False,
    ) -> HttpReply:
        """Return the whole reply. Raises the ModelError that a broken transfer stands for."""
        ...

    async def aclose(self) -> None:
        """Give back what is held open."""
        ...
