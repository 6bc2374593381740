"""A question as a text for a program, and its answer: the codec that stands where others have a wire format.

The payload holds {prompt, model, effort, schema, folder, seconds}; the reply {text, usage}. Both stay in this process.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from memoryd.errors import MalformedReply
from memoryd.llm.codec import Structure
from memoryd.llm.fields import count_at, object_at, text_at
from memoryd.llm.question import Answer, JsonObject, ModelTurn, Question, Stop, ToolTurn, Turn, Usage, UserTurn
from memoryd.llm.structure import instructions_for

KEY: Final = "key"
EARLIER_ANSWER: Final = "# What you answered before"
NEXT_MESSAGE: Final = "# What is said to that"


class CommandCodec:
    """Codec of one program; `takes_schema`: the program itself can be held to a JSON schema."""

    path = ""
    limit_names: tuple[str, ...] = ("max_output_tokens",)
    limit_is_required = False

    def __init__(self, *, takes_schema: bool) -> None:
        self.streaming: JsonObject = {}
        top = (Structure.JSON_SCHEMA,) if takes_schema else ()
        self.ladder: tuple[Structure, ...] = (*top, Structure.PROMPT)

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return what carries the key."""
        return {KEY: key} if key else {}

    def encode(self, question: Question, structure: Structure) -> JsonObject:
        """Return the payload. A program takes one text, so that a conversation becomes one."""
        body: dict[str, object] = {
            "prompt": "\n\n".join((instructions_for(question, structure).rstrip(), *map(_said, question.turns))) + "\n",
            "model": question.model,
            "effort": question.effort,
        }
        if question.schema and structure is Structure.JSON_SCHEMA:
            body["schema"] = question.schema.schema
        if question.errand is not None:
            body |= {"folder": str(question.errand.folder), "seconds": question.errand.seconds}
        return body

    def decode(self, body: JsonObject) -> Answer:
        """Return the answer. Raises MalformedReply when there is none."""
        text = text_at(body, "text")
        if not text:
            raise MalformedReply("the program gave no answer")
        return Answer(text, (), (), self.usage(body) or Usage(measured=False), Stop.COMPLETE, "")

    def usage(self, body: JsonObject) -> Usage | None:
        """Return the tokens that the program reported."""
        usage = object_at(body, "usage")
        if not usage:
            return None
        names = ("input", "output", "cached", "reasoning")
        counted = {name: count_at(usage, name) for name in names}
        # A program adds words of its own to a question: what it took says nothing of how long a token of ours is.
        return Usage(**counted, measured=False)

    def assemble(self, events: Sequence[JsonObject]) -> JsonObject | None:
        """There are no streams here."""
        del events
        return None


def _said(turn: Turn) -> str:
    match turn:
        case UserTurn(text):
            return text
        case ModelTurn(text):
            return f"{EARLIER_ANSWER}\n\n{text}\n\n{NEXT_MESSAGE}"
        case ToolTurn(results):
            return "\n\n".join(result.output for result in results)
