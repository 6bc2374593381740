"""The smallest real request to a stage's provider: what `doctor` asks, by itself or through a daemon that runs."""

from dataclasses import asdict, dataclass
from typing import Final

from memoryd.errors import MemorydError, ModelError, ModelUnavailable
from memoryd.llm.client import ModelClient
from memoryd.llm.question import Question, Schema, UserTurn
from memoryd.llm.spend import Purpose
from memoryd.pipeline.context import StageModel

PROBE_OUTPUT_TOKENS: Final = 1_024
"""Room for a model that thinks before its one word."""
PROBE_KIND: Final = "doctor"
SCHEMA: Final = Schema(
    name="probe",
    schema={
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class Probe:
    """What a provider answered. `problem` is empty when it did; `kind` names the error's class.

    `retry_after`: in how many seconds it is asked again, None when it is not known.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    structure: str = ""
    kind: str = ""
    problem: str = ""
    remedy: str = ""
    retry_after: float | None = None

    def as_json(self) -> dict[str, object]:
        """Render it for the socket."""
        return asdict(self)


async def probe(model: StageModel, stage: str) -> Probe:
    """Ask for one word; the request is counted and capped like any other."""
    client = model.client
    if client is None:
        return Probe()
    question = Question(
        model=model.model,
        effort=model.effort,
        instructions="This is a test of the connection. Answer with the JSON object that the schema asks for.",
        turns=(UserTurn('{"ok": true}'),),
        schema=SCHEMA,
        max_output_tokens=PROBE_OUTPUT_TOKENS,
    )
    try:
        answer = await client.ask(question, Purpose(PROBE_KIND, stage))
    except MemorydError as error:
        status = f" (status {error.status})" if isinstance(error, ModelError) and error.status else ""
        told = f"{error.message}{status}"
        wait = error.retry_after if isinstance(error, ModelUnavailable) else None
        return Probe(kind=type(error).__name__, problem=told, remedy=error.remedy, retry_after=wait)
    rung = client.structure_for(model.model) if isinstance(client, ModelClient) else ""
    return Probe(answer.usage.input, answer.usage.output, rung)
