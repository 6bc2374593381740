"""Which assistant message of a turn was the final one, for formats that do not say."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from memoryd.sources.items import Item, ItemKind

ASSISTANT = frozenset({ItemKind.ASSISTANT_FINAL, ItemKind.ASSISTANT_COMMENTARY})
MAX_HELD_ITEMS = 64
MAX_HELD_CHARACTERS = 256 * 1024


class FinalMessages:
    """Decides which assistant messages without a phase were final: the last one before the next human turn or the end.

    One message is held back with what follows it, so that the order is kept; a message after which more work follows
    than fits in the hold was no final answer.
    """

    def __init__(self) -> None:
        self._held: deque[Item] = deque()
        self._characters = 0

    def push(self, item: Item, *, undecided: bool = False) -> Iterator[Item]:
        """Take in the next item, and give out those that are decided now."""
        if item.kind is ItemKind.HUMAN and item.tool is None:
            yield from self.flush()
        elif item.kind in ASSISTANT:
            yield from self._release(ItemKind.ASSISTANT_COMMENTARY)
        if not self._held and not undecided:
            yield item
            return
        self._held.append(item)
        self._characters += len(item.text)
        # a lone message stays held, however long: it may well be the answer
        if len(self._held) > 1 and (len(self._held) > MAX_HELD_ITEMS or self._characters > MAX_HELD_CHARACTERS):
            yield from self._release(ItemKind.ASSISTANT_COMMENTARY)

    def flush(self) -> Iterator[Item]:
        """Give out what is held; the message was the last of its turn."""
        yield from self._release(ItemKind.ASSISTANT_FINAL)

    def _release(self, kind: ItemKind) -> Iterator[Item]:
        if self._held:
            message = self._held.popleft()
            yield message if message.kind is kind else replace(message, kind=kind)
        while self._held:
            yield self._held.popleft()
        self._characters = 0
