"""What the agent is told when a call is not carried out: one kind to count it by, one sentence to learn from."""

from enum import StrEnum


class RefusalKind(StrEnum):
    """Why a call was not carried out; the name under which it is counted."""

    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"
    TOO_MANY_CALLS = "too_many_calls"
    BAD_PATH = "bad_path"
    HIDDEN = "hidden"
    SYMLINK = "symlink"
    NOT_REGULAR = "not_regular"
    NOT_WRITABLE = "not_writable"
    NAME_DIFFERS = "name_differs"
    TOO_LARGE = "too_large"
    NOT_TEXT = "not_text"
    NOT_FOUND = "not_found"
    NOT_UNIQUE = "not_unique"
    PAST_END = "past_end"


# Refusals of a call that was allowed and well-formed, and only missed its aim: they do not make a reply invalid.
MISSES = frozenset({RefusalKind.NOT_FOUND, RefusalKind.NOT_UNIQUE, RefusalKind.PAST_END, RefusalKind.NAME_DIFFERS})


class RefusedError(Exception):
    """A call is not carried out; `text` says why and what is allowed instead. Never leaves the room."""

    def __init__(self, kind: RefusalKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text

    @property
    def answer(self) -> str:
        """The tool's answer to the model."""
        return f"error: {self.text}"
