"""The agents' programs that are known by name: which options make them ephemeral, what they need, how they answer.

Options are added to the user's command where it has none of the kind. Checked with codex-cli 0.171, Claude Code 2.1,
Gemini CLI 0.61 and OpenCode 1.18. Any other program is taken as it is: a question in, an answer out.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, TypeAlias

from memoryd.llm.command.said import ReadOutput, read_claude, read_codex, read_gemini, read_opencode, read_plain

OWN_DEFAULT: Final = "default"
"""As a model's name: whatever the program itself is set to."""
MODEL: Final = "{model}"

Option: TypeAlias = tuple[str, ...]
OptionsFor: TypeAlias = Callable[[str], tuple[Option, ...]]


@dataclass(frozen=True, slots=True)
class AgentHome:
    """Where a program keeps its login and its sessions, and the variable that moves it.

    `below` is the folder inside what the variable names; `logins` are the files there that a run needs.
    `is_optional`: without any of them the login lies elsewhere (a key chain that goes by the home), and the program is
    given the home that it has; its options keep it from recording there.
    """

    variable: str
    usual: str
    below: str
    logins: tuple[str, ...]
    is_optional: bool = False


def _opencode_config(permission: Mapping[str, str]) -> str:
    return json.dumps({"share": "disabled", "autoupdate": False, "permission": permission})


# No tool reaches out of the folder or of the machine, and nothing is asked of a person who is not there.
_OPENCODE_HANDS: Final = {
    **dict.fromkeys(("edit", "read", "list", "glob", "grep"), "allow"),
    **dict.fromkeys(("bash", "webfetch", "websearch", "external_directory", "task", "skill"), "deny"),
}


def _gemini_settings(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Without a person the way to sign in must be set; it shows in what there is to sign in with."""
    away = ["run_shell_command", "web_fetch", "google_web_search", "save_memory"]
    if environ.get("GEMINI_API_KEY"):
        sign_in = "gemini-api-key"
    elif environ.get("GOOGLE_GENAI_USE_VERTEXAI") or environ.get("GOOGLE_API_KEY"):
        sign_in = "vertex-ai"
    else:
        sign_in = "oauth-personal"
    settings = {
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": sign_in}},
        "tools": {"exclude": away},
    }
    return {"settings.json": json.dumps(settings)}


def _no_settings(_environ: Mapping[str, str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Program:
    """One program. `answering` and `working` are the options for a question, and for work in a folder; `confined` go
    before those of `working` where we confine it.

    `variables` pass from memoryd's environment. `keys` are those in which it takes a key that is paid by use: they
    never pass by themselves, or a key that lies in the environment for others would silently replace the subscription;
    a key that the settings name goes into the one of that name, else into the first.
    """

    agent: str = ""
    always: tuple[Option, ...] = ()
    answering: tuple[Option, ...] = ()
    working: tuple[Option, ...] = ()
    confined: tuple[Option, ...] = ()
    model: OptionsFor = lambda _name: ()
    effort: OptionsFor = lambda _word: ()
    schema: OptionsFor | None = None
    home: AgentHome | None = None
    private: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    fixed_answering: Mapping[str, str] = field(default_factory=dict)
    settings: Callable[[Mapping[str, str]], Mapping[str, str]] = _no_settings
    login: str = ""
    read: ReadOutput = read_plain


CODEX: Final = Program(
    agent="codex",
    always=(
        ("--json",),
        ("--ephemeral",),
        ("--ignore-user-config",),
        ("--ignore-rules",),
        ("--skip-git-repo-check",),
        ("-c", "features.hooks=false"),
        ("-c", "features.apps=false"),
        ("-c", "features.plugins=false"),
        ("-c", "features.multi_agent=false"),
        ("-c", "project_doc_max_bytes=0"),
        ("-c", 'web_search="disabled"'),
    ),
    answering=(("--sandbox", "read-only"),),
    working=(("--sandbox", "workspace-write"),),
    # Its own sandbox is made of bubblewrap, which starts neither inside Landlock nor inside ours: ours is the only one.
    confined=(("--sandbox", "danger-full-access"),),
    model=lambda name: (("--model", name),),
    effort=lambda word: (("-c", f"model_reasoning_effort={json.dumps(word)}"),),
    schema=lambda path: (("--output-schema", path),),
    home=AgentHome("CODEX_HOME", ".codex", "", ("auth.json",), is_optional=True),
    keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    login="codex login",
    read=read_codex,
)
CLAUDE: Final = Program(
    agent="claude",
    always=(
        ("--print",),
        ("--output-format", "json"),
        ("--no-session-persistence",),
        ("--safe-mode",),
        ("--setting-sources=",),
        ("--strict-mcp-config",),
        ("--disable-slash-commands",),
    ),
    answering=(("--tools", ""), ("--system-prompt", "You answer one question, exactly as it asks.")),
    working=(("--tools", "Read,Glob,Grep,Edit,Write"), ("--permission-mode", "acceptEdits"), ("--restricted",)),
    model=lambda name: (("--model", name),),
    effort=lambda word: (("--effort", word),),
    home=AgentHome("CLAUDE_CONFIG_DIR", ".claude", "", (".credentials.json",), is_optional=True),
    variables=("ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    fixed={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
    login="claude, then /login (or claude setup-token, and its token in CLAUDE_CODE_OAUTH_TOKEN)",
    read=read_claude,
)
GEMINI: Final = Program(
    agent="gemini",
    always=(("--output-format", "json"), ("--skip-trust",), ("--extensions", "none")),
    working=(("--approval-mode", "auto_edit"),),
    model=lambda name: (("--model", name),),
    home=AgentHome(
        "GEMINI_CLI_HOME", "", ".gemini", ("oauth_creds.json", "google_accounts.json", "gemini-credentials.json")
    ),
    variables=(
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_USE_VERTEXAI",
    ),
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    settings=_gemini_settings,
    login="gemini, and choose how to sign in",
    read=read_gemini,
)
OPENCODE: Final = Program(
    agent="opencode",
    always=(("--format", "json"), ("--pure",), ("--title", "memoryd")),  # a title is asked of the model otherwise
    model=lambda name: (("--model", name),),
    home=AgentHome("XDG_DATA_HOME", ".local/share", "opencode", ("auth.json",)),
    private=("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
    variables=("OPENCODE_CONFIG",),
    keys=("OPENCODE_API_KEY",),
    fixed={"OPENCODE_CONFIG_CONTENT": _opencode_config(_OPENCODE_HANDS), "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    fixed_answering={"OPENCODE_CONFIG_CONTENT": _opencode_config({"*": "deny"})},
    login="opencode auth login",
    read=read_opencode,
)
OTHER: Final = Program()
PROGRAMS: Final[Mapping[str, Program]] = {"codex": CODEX, "claude": CLAUDE, "gemini": GEMINI, "opencode": OPENCODE}


def program_of(command: Sequence[str]) -> Program:
    """Return what is known of a command's program, by its file name."""
    return PROGRAMS.get(PurePath(os.path.basename(command[0])).stem, OTHER)  # noqa: PTH119 - a string, no file


def completed(command: Sequence[str], options: Sequence[Option]) -> tuple[str, ...]:
    """Return the command with the options that it has not set itself; of two alike the first is taken."""
    words = list(command)
    for option in options:
        if not _is_set(words, option):
            words += option
    return tuple(words)


def _is_set(command: Sequence[str], option: Option) -> bool:
    """`-c key=value` is the same option when the key is; others go by their name, also in its short form."""
    if option[0] == "-c":
        return any(word.startswith(option[1].partition("=")[0] + "=") for word in command)
    names = {option[0], SHORT.get(option[0], option[0])}
    return any(word in names or word.partition("=")[0] in names for word in command)


SHORT: Final[Mapping[str, str]] = {
    "--print": "-p",
    "--model": "-m",
    "--sandbox": "-s",
    "--output-format": "-o",
    "--extensions": "-e",
}
