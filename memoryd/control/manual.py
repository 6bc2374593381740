"""What `memoryd COMMAND --help` says besides the options: what the command is for, examples, exit codes.

A page stands alone: somebody who has read nothing else can use the command. Tests parse the examples.
"""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

WIDTH: Final = 79
WRONG_USE: Final = "wrong use or wrong settings; nothing was done"
SETTINGS: Final = {0: "done", 2: WRONG_USE}
ASKED: Final = {0: "done", 1: "failed: one line on stderr says why", 2: WRONG_USE}


@dataclass(frozen=True, slots=True)
class Page:
    """`about` is prose; `examples` are command lines with what they do; `exits` what exit codes mean."""

    about: str
    examples: Mapping[str, str]
    exits: Mapping[int, str] = field(default_factory=lambda: ASKED)

    def epilog(self) -> str:
        """Render what stands below the options."""
        wide = max(map(len, self.examples))
        told = ["examples:", *(f"  {words:<{wide}}  {meaning}" for words, meaning in self.examples.items())]
        return "\n".join([*told, "", "exit codes:", *(f"  {code:<3} {means}" for code, means in self.exits.items())])


def description(summary: str, page: Page) -> str:
    """Render what stands above the options; `summary` is the command's line in the list of commands."""
    return "\n\n".join([summary[:1].upper() + summary[1:] + ".", textwrap.fill(page.about, WIDTH)])


GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "begin": ("demo", "init", "import", "connect", "disconnect", "service", "completion"),
    "work": ("run", "sync"),
    "see what it does, and why it does nothing": ("status", "explain", "jobs", "sessions", "usage", "doctor", "config"),
    "read the memory": ("search", "read", "list", "recall", "memories", "why", "history", "export"),
    "change it": ("note", "review", "undo", "forget", "reset"),
    "what agents call": ("hook", "mcp"),
}
"""The commands by what a person wants, as `memoryd --help` lists them."""


PAGES: Final[Mapping[str, Page]] = {
    "init": Page(
        "Looks for agents that record sessions and for providers that could be asked, proposes, and writes a commented"
        " config.toml into memoryd's folder (mode 0600). It says what would leave the machine, never overwrites a file"
        " that is there, and sends nothing: history waits for your consent.",
        {
            "memoryd init": "ask, on a terminal",
            "memoryd init --yes --provider offline": "no model: quotes your sessions, sends nothing",
            "memoryd init --yes --provider openai --model NAME": "a paid provider, for scripts",
            "memoryd init --yes --provider command": "an agent's own program, with your subscription",
        },
        {
            0: "written",
            1: "it could not be written, or what was asked for besides it failed",
            2: "there is one already, or wrong use",
        },
    ),
    "demo": Page(
        "Runs everything once with the offline writer, which asks no model, and shows the summary that an agent would"
        " be given. Nothing is written outside the throw-away folder, and nothing leaves the machine.",
        {
            "memoryd demo": "on sessions that come with memoryd",
            "memoryd demo --mine": "on your own recorded sessions",
            "memoryd demo --keep": "leave the folder for a look around",
        },
        {0: "the memory was made and accepted", 1: "it was not: the lines above say why", 2: WRONG_USE},
    ),
    "run": Page(
        "Watches the sessions folders, extracts what is due, consolidates the memory folder, and goes on until ^C or"
        " SIGTERM; what is in hand then is given back and repeated later. SIGHUP reads the settings anew. `memoryd"
        " service install` starts it with your session instead.",
        {
            "memoryd run": "readable lines on a terminal, JSON lines elsewhere",
            "memoryd run --log-level debug": "each step",
        },
        {
            0: "stopped as asked, or another one runs already",
            1: "it could not go on",
            75: "it passed a bound of memory or descriptors, and is to be started anew",
            78: "wrong settings",
        },
    ),
    "sync": Page(
        "Reads the sessions folders, extracts each session that is due with one request, and rewrites the memory folder"
        " if something changed. A daemon that runs is asked to do it. It never sleeps: what waits for a time is said,"
        " and left.",
        {
            "memoryd sync": "what is due now",
            "memoryd sync --now": "also what rests: idle time, debounce and interval are ignored",
            "memoryd sync --thread 0194f5a6": "one session",
            "memoryd sync --backfill recent": "agree that recent sessions from before the first start be sent",
        },
        {
            0: "done, also when nothing was due",
            1: "a job failed or a result was rejected",
            2: WRONG_USE,
            3: "due work was left undone for a stated reason: no consent, budget, provider, no git, full disk",
        },
    ),
    "status": Page(
        "Answers: does it run, since when, what does it do now and why, what waits until when and why, when each stage"
        " last succeeded, what today cost against the caps, which sessions are left out by which reason, what it takes"
        " on the disk, and what needs a look, each with its remedy.",
        {
            "memoryd status": "one screen",
            "memoryd status --watch": "in place, until ^C",
            "memoryd status --json": "for scripts",
            "memoryd status --prometheus": "metrics, for a scraper's text file",
        },
        {0: "all is well (--watch: ended by ^C)", 1: "something needs a look", 2: WRONG_USE},
    ),
    "usage": Page(
        "Every request is counted before it is sent. This sums them up: how many, how they ended, tokens in, out,"
        " cached and thought, and dollars where providers.NAME.prices are set.",
        {
            "memoryd usage": "by day, the last 30 days",
            "memoryd usage --by model": "by provider and model",
            "memoryd usage --by job --days 1": "what took today's tokens",
        },
        SETTINGS,
    ),
    "doctor": Page(
        "Looks at settings, keys, folders and their modes, git, SQLite, the watcher's limits, the service, what agents"
        " are given, clock, disk, and secrets in files of yours; asks each provider for one word and starts each"
        " connected agent's hook. Each finding has a severity, what was seen, and what to do.",
        {
            "memoryd doctor": "everything; each provider gets one request of a few tokens",
            "memoryd doctor --offline": "send nothing",
            "memoryd doctor --fix": "also do what is safe (modes, folders, stale locks, recall), and say it",
        },
        {0: "no error was found; warnings may stand", 1: "an error was found", 2: "the settings are wrong"},
    ),
    "explain": Page(
        "Says of one session whether it is remembered, by which exact rule it is left out, what happens next and when,"
        " what of it a model would get to read, what is dropped and why, and what came of it. Works before any sync;"
        " sends and writes nothing.",
        {
            "memoryd explain": "list the newest sessions",
            "memoryd explain 0194f5a6": "one of them, by the beginning of its id",
            "memoryd explain ~/.codex/sessions/2026/11/29/rollout.jsonl": "by its file",
            "memoryd explain 0194f5a6 --show-input": "the request, word for word",
        },
        {0: "explained", 1: "the ledger cannot be read", 2: "there is no such session, or no input to show"},
    ),
    "jobs": Page(
        "What is to be done stands as jobs in the ledger: one a session, and one for the memory folder (`global`). Each"
        " that is not done says why and until when it waits. A job whose every try failed waits for `retry`.",
        {
            "memoryd jobs": "all, what needs a look first",
            "memoryd jobs --status error": "those that are out of attempts",
            "memoryd jobs show 0194f5a6": "one: where it stands, what to do, every run",
            "memoryd jobs show global": "the consolidation",
            "memoryd jobs retry --all": "try again what is out of attempts",
        },
        {0: "done", 1: "nothing was there to try again, or the ledger cannot be read", 2: WRONG_USE},
    ),
    "sessions": Page(
        "Lists the sessions that were seen and what keeps each out, and takes your own word about one, which is above"
        " all rules: enabled (remember it), disabled (do not), no-recall (remember it, but give it nothing when it is"
        " resumed).",
        {
            "memoryd sessions": "all that were seen",
            "memoryd sessions list --excluded subagent": "those of one reason",
            "memoryd sessions set-mode 0194f5a6 disabled": "leave one out; what it taught goes",
        },
    ),
    "why": Page(
        "Finds a statement of the memory by its words and tells its history: since when it stands, who founded it"
        " (stated, verified, inferred), what it said before, and which lines of which sessions support it.",
        {"memoryd why port 5433": "by words", "memoryd why 12": "by the number of a claim"},
        {0: "found", 1: "no statement has these words", 2: WRONG_USE},
    ),
    "history": Page(
        "Each consolidation is one commit of the memory folder, and so is what you edited. Numbers count from the"
        " newest.",
        {"memoryd history": "the last 20 changes", "memoryd history show 1": "one change, with its diff"},
    ),
    "undo": Page(
        "Puts MEMORY.md, memory_summary.md and skills/ back as they were before the last changes; what you wrote since"
        " stays. An undo is a change itself: undoing it restores.",
        {"memoryd undo": "the last change", "memoryd undo 3": "the last three"},
        {0: "undone, or nothing to undo", 1: "failed: one line on stderr says why", 2: "there are fewer changes"},
    ),
    "review": Page(
        'With consolidate.review = "manual" a result that passed all checks waits as a proposal, and nothing changes'
        " before you accept it. What you reject stays out until its session grows.",
        {
            "memoryd review": "which wait",
            "memoryd review show 1": "what would change",
            "memoryd review accept 1": "put it in place",
            "memoryd review reject 1": "leave it",
        },
    ),
    "note": Page(
        "Writes a note into the memory folder. Notes are authoritative for what the memory says, and are never aged"
        " out; the next consolidation takes them in. Secrets are taken out first.",
        {
            'memoryd note "Deploy with make release"': "what to remember",
            'memoryd note "Forget that we use port 5432"': "what not to",
            "memoryd note -": "from standard input",
        },
    ),
    "forget": Page(
        "What only these sessions support leaves the memory at once, by code alone: no model is asked. What other"
        " sessions support stays. With --purge no byte of it stays under memoryd's folder, in history and backups"
        " neither.",
        {
            "memoryd forget 0194f5a6": "one session",
            "memoryd forget 0194f5a6 --purge": "without a trace",
            'memoryd forget --text "the salary table"': "a text, whatever session it comes from",
        },
    ),
    "reset": Page(
        "Everything goes: the memory, its history, notes, your edits, backups. Sessions stay where the agents keep"
        " them, and only what is recorded from then on is learned. Asks on a terminal.",
        {
            "memoryd reset": "ask, then forget everything",
            "memoryd reset --yes --relearn": "for scripts; extract everything anew",
        },
    ),
    "recall": Page(
        "Prints on standard output exactly what an agent is given when it starts in a folder, and on standard error how"
        " much that is and why, or why there is nothing.",
        {
            "memoryd recall": "here",
            "memoryd recall --cwd ~/src/shop": "in a project",
            "memoryd recall --json": "size, reason and file too",
        },
        SETTINGS,
    ),
    "hook": Page(
        "Connected agents call it at the start of a session, with a JSON object on standard input. Whatever is wrong,"
        " it is silent and ends with 0, so that no session is delayed or broken.",
        {"memoryd hook claude SessionStart": "as Claude Code does"},
        {0: "always"},
    ),
    "memories": Page(
        "Lists what each session taught: how often agents cited it, when last, and what becomes of it. What nobody"
        " cites for consolidate.max_unused leaves the memory.",
        {"memoryd memories": "all", "memoryd memories --unused": "what no session ever cited"},
    ),
    "connect": Page(
        "Writes one entry into an agent's settings, keeps the file as it was beside it, and says what is left for you"
        " to do. The agent then gets its memory at the start of each session.",
        {
            "memoryd connect claude": "the usual way of this agent",
            "memoryd connect codex --dry-run": "show the change alone",
            "memoryd connect claude --via import": "a line in its instructions; no process runs",
        },
        {0: "connected, or it was already", 1: "a file could not be written", 2: WRONG_USE},
    ),
    "disconnect": Page(
        "Puts the agent's file back byte for byte, or, if you changed it since, takes memoryd's entry out and nothing"
        " else. The memory stays.",
        {
            "memoryd disconnect claude": "take the connection out",
            "memoryd disconnect codex --dry-run": "show the change alone",
        },
        {0: "taken out, or it was not connected", 1: "a file could not be written", 2: WRONG_USE},
    ),
    "config": Page(
        "Shows every setting that holds with where it comes from (flag, variable, file, default), secrets masked; or"
        " checks them: unknown keys name the nearest known one.",
        {"memoryd config show": "all settings", "memoryd config check": "are they right?"},
        {0: "right", 2: "wrong: one line says which, and where"},
    ),
    "service": Page(
        "Makes memoryd start with your session and watches over it: a user unit of systemd on Linux, a LaunchAgent on"
        " macOS. A service does not see the variables of your shell, so keys are kept in files of mode 0600.",
        {
            "memoryd service install": "install, or bring up to date after an upgrade, and start",
            "memoryd service install --store-keys": "keep the keys that this shell holds for it",
            "memoryd service status": "how it stands",
            "memoryd service logs --follow": "its log, until ^C",
            "memoryd service uninstall": "stop it and take it out; the memory stays",
        },
        {0: "done; status: it runs", 1: "failed; status: it needs a look", 2: WRONG_USE},
    ),
    "read": Page(
        "Shows a file of the memory folder with line numbers, as agents read it. Paths are relative to that folder.",
        {
            "memoryd read MEMORY.md": "the handbook",
            "memoryd read MEMORY.md --line-offset 40 --max-lines 20": "a part of it",
        },
    ),
    "list": Page(
        "Lists what a folder of the memory holds, as agents see it. Paths are relative to the memory folder.",
        {"memoryd list": "the top", "memoryd list rollout_summaries": "one summary a session"},
    ),
    "mcp": Page(
        "Serves the memory's tools over the Model Context Protocol on standard input and output. Agents start it;"
        " `memoryd connect` enters it into their settings.",
        {"memoryd mcp": "as an agent starts it"},
        {0: "the agent closed the connection", 1: "it could not go on", 2: WRONG_USE},
    ),
    "search": Page(
        "Finds what the memory holds by its words, the best first; with a literal mode, lines that hold them. It reads"
        " files and the ledger, and works with and without a daemon.",
        {
            "memoryd search flaky tests": "the best entries for these words",
            "memoryd search --scope project --mark stated release": "what you said of this project's releases",
            "memoryd search --any ECONNREFUSED --context 2": "each line with this text",
        },
        {0: "something was found", 1: "nothing was, or the memory cannot be read", 2: WRONG_USE},
    ),
    "import": Page(
        "Brings in what Codex or Claude Code have learned by themselves: rows and bullets as they stand, secrets taken"
        " out. Nothing is sent, their folders are only read, and doing it twice changes nothing.",
        {
            "memoryd import codex --dry-run": "what would come; nothing is written",
            "memoryd import codex": "its memory database and folder",
            "memoryd import claude": "its memory files, by project",
        },
    ),
    "export": Page(
        "Writes a copy of the memory into a folder of your choice: its files, and as JSON lines what each session"
        " taught and every statement with its provenance. Secrets are taken out; beside a daemon as well.",
        {
            "memoryd export ~/memory-copy": "into a new folder, or an empty one",
            "memoryd export ~/memory-copy --force": "anew, in place of the last one",
        },
    ),
    "completion": Page(
        "Prints a script that lets your shell complete memoryd's commands and options. It is made of what this version"
        " understands: after an upgrade print it anew.",
        {
            "memoryd completion bash": "for bash",
            "memoryd completion zsh": "for zsh",
            "memoryd completion fish": "for fish",
        },
        SETTINGS,
    ),
}
