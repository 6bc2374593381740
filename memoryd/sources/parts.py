"""What readers know of a row before it is an item: where it stands, who speaks, and the words."""

import msgspec

from memoryd.sources.items import ItemKind


class Spot(msgspec.Struct, frozen=True, gc=False):
    """Where in a session an item stands."""

    ordinal: int
    at: float | None
    cwd: str | None


class Part(msgspec.Struct, frozen=True, gc=False):
    """A part of a message: who speaks (None: nobody who counts, `reason` says why it is dropped), and the words."""

    kind: ItemKind | None
    text: str
    reason: str = ""
