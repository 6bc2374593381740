"""The sections of the settings: every key with its unit, its limits, its default and the reason for it.

Values only; nothing here reads a file or the environment (config.py does).
"""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from memoryd.values import (
    Agent,
    BaseUrl,
    Count,
    Dollars,
    Effort,
    Folder,
    Glob,
    Interval,
    LeaseTime,
    Pattern,
    Percent,
    ProviderName,
    Tag,
    VariableName,
    Wait,
    Word,
    read_duration,
)


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True)


class Sources(_Section):
    """Whose sessions are read."""

    agents: tuple[Agent, ...] = Field(
        default=(),
        description="Agents whose sessions are read. None until one is named; `memoryd init` writes those it found.",
    )
    roots: dict[Agent, tuple[Folder, ...]] = Field(
        default={},
        description="Homes of an agent in place of its usual one (~/.codex), a list of folders for each agent; "
        "generic has no others.",
    )
    exclude_cwd: tuple[Glob, ...] = Field(
        default=(), description="Globs; sessions that ran in a matching folder are never read. Empty: none is left out."
    )
    include_noninteractive: bool = Field(
        default=False, description="Read scripted runs too. Off: they hold instructions of programs, not of the person."
    )
    include_home: bool = Field(
        default=False,
        description="Read sessions that ran in the home folder itself, or in /. Off: these are no project.",
    )
    exclude_originators: tuple[Word, ...] = Field(
        default=("*github-action*",),
        description="Globs; sessions whose originator or entry point matches: their prompts are written by machines.",
    )


class Discover(_Section):
    """When a session is due."""

    min_idle: Wait = Field(
        default=read_duration("6h"),
        description="A session must rest this long first, so that a whole piece of work is read once.",
    )
    max_age: Wait = Field(
        default=read_duration("10d"),
        description="Older sessions are left alone: what they taught is mostly stale by then.",
    )
    scan_interval: Interval = Field(
        default=read_duration("60s"),
        description="Between two looks at the folders that change; a look costs a few stats.",
    )
    full_scan_interval: Interval = Field(
        default=read_duration("30m"), description="Between two looks at every folder, which finds what hints missed."
    )

    @model_validator(mode="after")
    def _can_be_due(self) -> "Discover":
        if self.max_age <= self.min_idle:
            raise ValueError("max_age must be longer than min_idle, or no session is ever due")
        return self


class ProviderKind(StrEnum):
    """How a provider is spoken to."""

    OPENAI = "openai"
    OPENAI_CHAT = "openai-chat"
    ANTHROPIC = "anthropic"
    COMMAND = "command"
    OFFLINE = "offline"


_KIND_DEFAULTS: dict[str, dict[str, str]] = {
    ProviderKind.OPENAI: {"base_url": "https://api.openai.com/v1", "api_key_env": "OPENAI_API_KEY"},
    ProviderKind.ANTHROPIC: {"base_url": "https://api.anthropic.com", "api_key_env": "ANTHROPIC_API_KEY"},
}


class Prices(_Section):
    """US dollars per million tokens."""

    input: Dollars = Field(default=0.0, description="Input that was not cached.")
    cached: Dollars = Field(default=0.0, description="Input that the provider had cached.")
    output: Dollars = Field(default=0.0, description="Output, reasoning included.")


class Provider(_Section):
    """One place where a model answers."""

    kind: ProviderKind = Field(
        description="openai (Responses), openai-chat (compatible servers), anthropic, command, offline."
    )
    base_url: BaseUrl | None = Field(
        default=None, description="Address as the provider's SDK takes it: openai with /v1, anthropic without."
    )
    api_key_env: VariableName | None = Field(
        default=None,
        description="Name of the variable, or of the service's systemd credential, that holds the key; never the key.",
    )
    api_key_file: Folder | None = Field(
        default=None, description="File that holds the key, mode 0600; wins over api_key_env."
    )
    timeout: Interval = Field(
        default=read_duration("120s"), description="Longest wait for one answer; slow local models need more."
    )
    context_window: Count | None = Field(
        default=None, description="The model's window in tokens; unset: 150,000 of input are taken as safe."
    )
    max_output_tokens: Count | None = Field(
        default=None,
        ge=1_024,
        examples=[8_192],
        description="Most tokens of one answer, thoughts included; unset: 16,384 for a session, 32,768 in a"
        " consolidation.",
    )
    stream: bool = Field(
        default=False,
        description="Take answers word by word. Off: nobody watches, and one body is simpler to check. On: `timeout` is"
        " the longest pause between two words, for models that think long and gateways that end silent connections.",
    )
    prices: Prices = Field(
        default=Prices(),
        description="{input, cached, output} in US dollars per million tokens; 0: cost is not known and not counted.",
    )
    command: tuple[Word, ...] = Field(
        default=(), description="Kind command only: program and arguments of a local agent."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: object) -> object:
        """Give a kind's own address and key variable, but never send its key to another address."""
        if not isinstance(data, dict):
            return data
        known = _KIND_DEFAULTS.get(str(data.get("kind")), {})
        return {**known, **data} if data.get("base_url", known.get("base_url")) == known.get("base_url") else data

    @model_validator(mode="after")
    def _complete(self) -> "Provider":
        if self.kind is ProviderKind.OPENAI_CHAT and self.base_url is None:
            raise ValueError("kind openai-chat needs a base_url")
        if (self.kind is ProviderKind.COMMAND) != bool(self.command):
            raise ValueError("needs command = [program, ...] for the kind command, and no other kind takes it")
        return self


class Extract(_Section):
    """Stage 1: what one session taught."""

    provider: ProviderName | None = Field(
        default=None, examples=["openai"], description="Name of a provider; unset: the only one there is, else offline."
    )
    model: Word | None = Field(
        default=None, examples=["name-of-a-model"], description="Model to ask. No default: it is your money."
    )
    effort: Effort = Field(
        default="low", description='Reasoning effort; "low" suffices to read one session. "": none is asked for.'
    )
    concurrency: Count = Field(
        default=2, le=64, description="Sessions read at once; two keep a limit of the provider in sight."
    )
    max_input_tokens: Count | None = Field(
        default=None, examples=[150_000], description="Cap of one request's input; unset: 70 % of the window."
    )
    max_requests: Count = Field(
        default=8, description="Requests of one run; one is usual, an answer to mend or too long an input take more."
    )
    max_duration: Interval = Field(default=read_duration("20m"), description="Longest run.")
    max_tokens: Count = Field(default=1_000_000, description="Tokens of one run, input and output.")
    disable_on_external_context: bool = Field(
        default=False,
        description="Forget sessions that used web search or MCP. Off: most of them teach something of one's own.",
    )


class Consolidate(_Section):
    """Stage 2: the memory folder is rewritten."""

    provider: ProviderName | None = Field(
        default=None, examples=["openai"], description="Name of a provider; unset: the only one there is, else offline."
    )
    model: Word | None = Field(
        default=None, examples=["name-of-a-model"], description="Model to ask. No default: it is your money."
    )
    effort: Effort = Field(
        default="medium",
        description='Reasoning effort; merging needs more thought than reading. "": none is asked for.',
    )
    max_raw_memories: Count = Field(
        default=256, description="Sessions behind the memory at once; more do not fit one run."
    )
    max_unused: Wait = Field(
        default=read_duration("30d"), description="What was not cited for so long leaves the memory."
    )
    debounce: Wait = Field(
        default=read_duration("2m"), description="Wait for further sessions, so that several make one run."
    )
    min_interval: Wait = Field(
        default=read_duration("30m"), description="Least time between two runs, which cost most of all."
    )
    max_requests: Count = Field(default=60, description="Requests of one run; a good run takes about twenty.")
    max_duration: Interval = Field(default=read_duration("20m"), description="Longest run.")
    max_tokens: Count = Field(default=2_000_000, description="Tokens of one run, input and output.")
    extension_retention: Wait = Field(
        default=read_duration("7d"), description="Resources of extensions older than this are removed."
    )
    history_max_age: Wait = Field(
        default=read_duration("365d"),
        description="Changes of the memory older than this become one; a year answers who said what since when.",
    )
    history_max_size: Count = Field(
        default=268_435_456,
        description="Bytes of the folder's history; beyond them its older half becomes one change. Text packs well.",
    )
    review: Literal["auto", "manual"] = Field(
        default="auto", description="manual: a person accepts each rewrite. auto: acceptance checks suffice."
    )


class LedgerSettings(_Section):
    """Jobs: leases and retries."""

    lease: LeaseTime = Field(
        default=read_duration("180s"),
        description="A job whose holder was silent so long is taken over; renewed at a third of it.",
    )
    max_attempts: Count = Field(default=3, description="Errors after which a job waits for `memoryd jobs retry`.")
    retry_base: Wait = Field(default=read_duration("60s"), description="First wait after an error; doubles each time.")
    retry_cap: Wait = Field(default=read_duration("6h"), description="Longest wait between tries.")

    @model_validator(mode="after")
    def _cap_above_base(self) -> "LedgerSettings":
        if self.retry_cap < self.retry_base:
            raise ValueError("retry_cap must not be shorter than retry_base")
        return self


class Limits(_Section):
    """What may be spent."""

    min_remaining_percent: Percent = Field(
        default=25.0, description="Part of the provider's quota, in percent, that is left to the person."
    )
    requests_per_day: Count = Field(default=500, description="Requests per UTC day, all providers.")
    tokens_per_day: Count = Field(default=5_000_000, description="Tokens per UTC day, input and output.")
    cost_per_day: Dollars = Field(
        default=0.0, description="US dollars per UTC day; 0: off, since prices are not known by default."
    )
    backfill: Literal["ask", "recent", "all"] = Field(
        default="ask",
        description="Sessions older than the first start: ask first, take those within max_age, or take all.",
    )


class Recall(_Section):
    """What agents are given."""

    max_tokens: Count = Field(
        default=2500, description="Tokens injected at the start of a session; agents search for the rest."
    )
    scope: Literal["project", "all", "off"] = Field(
        default="project", description="project: global entries and those of the current project."
    )
    exclude_cwd: tuple[Glob, ...] = Field(
        default=(), description="Globs; agents in a matching folder are given nothing."
    )


class Privacy(_Section):
    """What never leaves a session."""

    patterns: tuple[Pattern, ...] = Field(
        default=(), description="Regular expressions redacted besides the known forms of secrets."
    )
    private_tags: tuple[Tag, ...] = Field(
        default=("private",), description="Text between <private> and </private> is never read."
    )


class Log(_Section):
    """What the daemon says."""

    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="auto: readable on a terminal, JSON lines elsewhere."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug: steps. info: outcomes."
    )
