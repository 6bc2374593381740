"""Which assistant message of a turn was the final one, for formats that do not say."""

from collections.abc import Sequence

from msgspec.structs import replace

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
        self._held: list[Item] = []
        self._characters = 0

    def push(self, item: Item, *, undecided: bool = False) -> Sequence[Item]:
        """Take in the next item, and give out those that are decided now."""
        if not self._held and not undecided:
            return (item,)
        given: list[Item] = []
        if item.kind is ItemKind.HUMAN and item.tool is None:
            given = self._release(ItemKind.ASSISTANT_FINAL)
        elif item.kind in ASSISTANT:
            given = self._release(ItemKind.ASSISTANT_COMMENTARY)
        if not self._held and not undecided:
            given.append(item)
            return given
        self._held.append(item)
        self._characters += len(item.text)
        # a lone message stays held, however long: it may well be the answer
        if len(self._held) > 1 and (len(self._held) > MAX_HELD_ITEMS or self._characters > MAX_HELD_CHARACTERS):
            given += self._release(ItemKind.ASSISTANT_COMMENTARY)
        return given

    def flush(self) -> Sequence[Item]:
        """Give out what is held; the message was the last of its turn."""
        return self._release(ItemKind.ASSISTANT_FINAL)

    def _release(self, kind: ItemKind) -> list[Item]:
        released, self._held, self._characters = self._held, [], 0
        if released and released[0].kind is not kind:
            released[0] = replace(released[0], kind=kind)
        return released
