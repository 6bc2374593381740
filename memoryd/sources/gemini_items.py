"""Contents in Gemini form as items, for Gemini CLI and Qwen Code: what must be remembered from one to the next."""

from collections.abc import Sequence

from msgspec import Raw

from memoryd.sources.gemini_parts import Answered, Called, human_parts, part_items
from memoryd.sources.gemini_tools import OpenCalls, call_item, parse_call, response_item, usual_call
from memoryd.sources.items import ASSISTANT_FINAL, OTHER_AGENT, Item
from memoryd.sources.parts import Spot
from memoryd.sources.stream import ItemStream


class Telling:
    """Turns the contents of a session, in order, into items of its stream."""

    def __init__(self, stream: ItemStream) -> None:
        self.stream = stream
        self._calls = OpenCalls()

    def user(self, texts: Sequence[str], spot: Spot) -> None:
        """Tell what the person said, and the harness beside it."""
        if texts:
            for item in part_items(human_parts(texts), spot, self.stream.reading.dropped):
                self.stream.give(item)

    def other_agent(self, texts: Sequence[str], spot: Spot) -> None:
        """Tell what another agent reports."""
        text = "\n\n".join([text.strip() for text in texts])
        if text:
            self.stream.give(Item(OTHER_AGENT, text, spot.ordinal, spot.at, spot.cwd))

    def assistant(self, texts: Sequence[str], message_id: str | None, spot: Spot) -> None:
        """Tell what the agent said."""
        if texts:
            text = "\n\n".join([text.strip() for text in texts])
            item = Item(ASSISTANT_FINAL, text, spot.ordinal, spot.at, spot.cwd)
            self.stream.answer(item, message_id, undecided=True)

    def call(self, called: Called, spot: Spot, display_name: str | None = None) -> None:
        """Tell of a call, unless it was told before in another form."""
        call = parse_call(called) if isinstance(called, Raw) else usual_call(called, display_name or "")
        if self._calls.open(call):
            self.stream.give(call_item(call, spot))

    def responses(self, responses: Sequence[Answered], spot: Spot, exit_code: int | None = None) -> None:
        """Tell of outputs, each once; `exit_code` is what the record itself says of a single command's."""
        for raw in responses:
            if not isinstance(raw, Raw) and raw.id in self._calls.answered:
                continue
            item, reason = response_item(raw, spot, self._calls, exit_code if len(responses) == 1 else None)
            if reason is not None:
                self.stream.reading.dropped[reason] += 1
            if item is not None:
                self.stream.give(item)
