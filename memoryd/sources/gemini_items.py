"""Contents in Gemini form as items, for Gemini CLI and Qwen Code: what must be remembered from one to the next."""

from collections.abc import Iterator, Sequence

from memoryd.errors import SessionWithoutItems
from memoryd.sources.citations import parse_citations, strip_citations
from memoryd.sources.finals import FinalMessages
from memoryd.sources.gemini_parts import Answered, Content, human_parts, part_items
from memoryd.sources.gemini_tools import Call, OpenCalls, call_item, response_item
from memoryd.sources.identity import message_key
from memoryd.sources.items import CitationSeen, Item, ItemKind
from memoryd.sources.parts import Spot
from memoryd.sources.reader import Reading


class Telling:
    """Turns the contents of a session, in order, into items, and notes in the reading what is seen on the way.

    `understood` counts the records that the format knows.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.understood = 0
        self._calls = OpenCalls()
        self._final = FinalMessages()

    def user(self, texts: Sequence[str], spot: Spot) -> list[Item]:
        """Return what the person said, and the harness beside it."""
        given: list[Item] = []
        if texts:
            for item in part_items(human_parts(texts), spot, self.reading.dropped):
                given += self._final.push(item)
        return given

    def other_agent(self, texts: Sequence[str], spot: Spot) -> Sequence[Item]:
        """Return what another agent reports."""
        text = "\n\n".join(text.strip() for text in texts)
        return self._final.push(Item(ItemKind.OTHER_AGENT, text, spot.ordinal, spot.at, spot.cwd)) if text else ()

    def assistant(self, content: Content, message_id: str | None, spot: Spot) -> Sequence[Item]:
        """Return what the agent said, without its citations."""
        if not content.texts:
            return ()
        text = "\n\n".join(text.strip() for text in content.texts)
        cited = parse_citations(text)
        if cited is not None:
            key = message_id or message_key(text, spot.at)
            self.reading.citations.append(CitationSeen(key, spot.at, cited.entries, cited.thread_ids))
            text = strip_citations(text).strip()
        if not text:
            return ()
        return self._final.push(Item(ItemKind.ASSISTANT_FINAL, text, spot.ordinal, spot.at, spot.cwd), undecided=True)

    def call(self, call: Call, spot: Spot) -> Sequence[Item]:
        """Return a call, unless it was told before in another form."""
        return self._final.push(call_item(call, spot)) if self._calls.open(call) else ()

    def responses(self, responses: Sequence[Answered], spot: Spot, exit_code: int | None = None) -> list[Item]:
        """Return outputs, each once; `exit_code` is what the record itself says of a command's."""
        given: list[Item] = []
        for raw in responses:
            item, reason = response_item(raw, spot, self._calls, exit_code)
            if reason is not None:
                self.reading.dropped[reason] += 1
            if item is not None:
                given += self._final.push(item)
        return given

    def finish(self, name: str, size: int) -> Iterator[Item]:
        """Yield what was held back; raise SessionWithoutItems when there were bytes and nothing was understood."""
        yield from self._final.flush()
        self.reading.dropped = +self.reading.dropped
        if size and not self.understood:
            raise SessionWithoutItems(
                f"cannot read {name}: it has {size} bytes, and no record in them was understood",
                remedy="is it a session of a newer version of the agent?",
            )
