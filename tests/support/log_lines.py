"""What memoryd logged while a test ran, as the JSON lines that people and programs get."""

import io
import json
import sys
from typing import Any

from memoryd import logs


class LogLines:
    """Takes every line from debug on, however many say the same; logging goes back to what it was after the test."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        logs.configure("json", "debug", stream=self._stream, most_alike=sys.maxsize)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The events so far, of one name or all."""
        lines = [json.loads(line) for line in self.text.splitlines()]
        return [line for line in lines if name in (None, line["event"])]
