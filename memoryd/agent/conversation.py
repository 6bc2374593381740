"""The turns of a run as they are replayed with each request, and which old tool outputs are left out when they grow."""

import json
from dataclasses import dataclass, field

from memoryd.llm.question import Answer, ModelTurn, ToolResult, ToolTurn, Turn, UserTurn
from memoryd.text import byte_length

DROPPED = "[output dropped: read it again if you need it]"
WORTH_DROPPING_BYTES = 4 * len(DROPPED)


@dataclass(slots=True)
class Conversation:
    """The opening message and everything after it; the opening and the model's own turns are never shortened.

    `size` is in bytes of UTF-8 and includes `fixed_bytes`, what every request carries beside the turns.
    """

    opening: str
    fixed_bytes: int = 0
    size: int = 0
    _turns: list[Turn] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.size = self.fixed_bytes
        self._append(UserTurn(self.opening))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What to replay."""
        return tuple(self._turns)

    def add_answer(self, answer: Answer) -> None:
        """Append what the model said; an answer without any content leaves no turn."""
        turn = answer.as_turn()
        if turn.text or turn.calls or turn.raw:
            self._append(turn)

    def add_results(self, results: tuple[ToolResult, ...]) -> None:
        """Append the answers to the calls of the last reply."""
        self._append(ToolTurn(results))

    def add_reminder(self, text: str) -> None:
        """Append a message of ours."""
        self._append(UserTurn(text))

    def shrink(self, target_bytes: int, *, keep_newest: bool = True) -> int:
        """Drop the oldest tool outputs until `size` is at most the target; return how many were dropped.

        With `keep_newest` the results that the model has not seen yet stay.
        """
        dropped = 0
        for index, turn in enumerate(self._turns):
            is_unseen = index == len(self._turns) - 1 and keep_newest
            if not isinstance(turn, ToolTurn) or is_unseen:
                continue
            results = list(turn.results)
            for place, result in enumerate(results):
                if self.size <= target_bytes:
                    break
                if byte_length(result.output) >= WORTH_DROPPING_BYTES:
                    self.size -= byte_length(result.output) - len(DROPPED)
                    results[place] = ToolResult(result.call_id, DROPPED)
                    dropped += 1
            self._turns[index] = ToolTurn(tuple(results))
        return dropped

    def _append(self, turn: Turn) -> None:
        self._turns.append(turn)
        self.size += _turn_bytes(turn)


def _turn_bytes(turn: Turn) -> int:
    match turn:
        case UserTurn():
            return byte_length(turn.text)
        case ToolTurn():
            return sum(byte_length(result.output) for result in turn.results)
        case ModelTurn():
            return max(
                _raw_bytes(turn), byte_length(turn.text) + sum(byte_length(call.arguments) for call in turn.calls)
            )


def _raw_bytes(turn: ModelTurn) -> int:
    return byte_length(json.dumps(turn.raw, ensure_ascii=False, default=dict)) if turn.raw else 0
