"""Which assistant message of a turn was the final one, for formats that do not say."""

from msgspec.structs import replace

from memoryd.sources.items import ASSISTANT_COMMENTARY, ASSISTANT_FINAL, HUMAN, Item, ItemKind

MAX_HELD_ITEMS = 64
MAX_HELD_CHARACTERS = 256 * 1024


class FinalMessages:
    """Decides which assistant messages without a phase were final: the last one before the next human turn or the end.

    One message is held back with what follows it, so that the order is kept; a message after which more work follows
    than fits in the hold was no final answer.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []  # taken in and not yet given out
        self._held_from = -1  # where among them the undecided message stands
        self._characters = 0

    def push(self, item: Item) -> None:
        """Take in the next item."""
        items = self._items
        if self._held_from >= 0:
            kind = item.kind
            if kind is HUMAN and item.tool is None:
                self._decide(ASSISTANT_FINAL)
            elif kind is ASSISTANT_FINAL or kind is ASSISTANT_COMMENTARY:
                self._decide(ASSISTANT_COMMENTARY)
            else:
                self._characters += len(item.text)
                if len(items) - self._held_from >= MAX_HELD_ITEMS or self._characters > MAX_HELD_CHARACTERS:
                    self._decide(ASSISTANT_COMMENTARY)
        items.append(item)

    def push_undecided(self, item: Item) -> None:
        """Take in an assistant's message which may have been the final one; it stays held, however long it is."""
        self._decide(ASSISTANT_COMMENTARY)
        self._held_from, self._characters = len(self._items), len(item.text)
        self._items.append(item)

    def decided(self) -> list[Item]:
        """Give out the items that are decided now, in their order."""
        items, held_from = self._items, self._held_from
        if held_from < 0:
            self._items = []
            return items
        self._items, self._held_from = items[held_from:], 0
        return items[:held_from]

    def flush(self) -> list[Item]:
        """Give out all that is left; the message that was held was the last of its turn."""
        self._decide(ASSISTANT_FINAL)
        return self.decided()

    def _decide(self, kind: ItemKind) -> None:
        at, self._held_from = self._held_from, -1
        if at >= 0 and self._items[at].kind is not kind:
            self._items[at] = replace(self._items[at], kind=kind)
