"""What the rules and reasons of the program mean, in words for somebody who has never seen the code."""

from collections.abc import Mapping

from memoryd.ledger.states import JobKind
from memoryd.pipeline.eligibility import MEANING

MEANING_OF_WAIT: Mapping[str, str] = {
    "debounce": "more sessions may follow soon, and one run serves them all (consolidate.debounce)",
    "min_interval": "the last consolidation was less than consolidate.min_interval ago",
    "backoff": "the last try failed, and the next one waits",
    "crash": "it ended without a word several times",
    "rate_limited": "the provider's limit is reached",
    "provider_overloaded": "the provider is overloaded",
    "provider_unreachable": "the provider cannot be reached: no network, or it is down",
    "misconfigured": "a setting stopped working while it ran: see the job's error",
    "key_refused": "the provider refuses the key: check api_key_env or api_key_file",
    "model_unknown": "the provider does not know the model: check extract.model, consolidate.model and base_url",
    "budget": "today's cap is spent (limits)",
    "disk_full": "the disk is full or read-only",
    "git_missing": "there is no git program",
    "person_working": "a merge or rebase in the memory folder is not finished: `git status` there says what is left",
    "abandoned": "a memoryd that was killed held it; it is taken over when the lease runs out (ledger.lease)",
}

TODO_OF_WAIT: Mapping[str, str] = {
    "debounce": "nothing; `memoryd sync --now` does not wait for it",
    "min_interval": "nothing; `memoryd sync --now` does not wait for it",
    "backoff": "nothing, unless it fails again; `memoryd jobs retry KEY` tries at once",
    "crash": "look for what ends memoryd (memory, `kill -9`); `memoryd jobs retry KEY` tries at once",
    "rate_limited": "wait; `memoryd jobs retry KEY` asks in spite of the limit",
    "provider_overloaded": "wait; `memoryd jobs retry KEY` asks at once",
    "provider_unreachable": "check the network and base_url with `memoryd doctor`",
    "misconfigured": "correct the setting; `memoryd config check` names it",
    "key_refused": "put the right key where api_key_env or api_key_file says; `memoryd doctor` tests it",
    "model_unknown": "name a model that the provider has; `memoryd doctor` tests it",
    "budget": "wait for the next UTC day, or raise the cap that is named under [limits]",
    "disk_full": "free some space, or make the disk writable",
    "git_missing": "install git",
    "person_working": "finish the merge or rebase, or abort it: `git status` in the memory folder says how",
    "abandoned": "nothing: it is taken over by itself",
}

TODO_OF_REST: Mapping[str, str] = {
    "too_fresh": "nothing: it is due by itself once nothing is added to it; `memoryd sync --now` does not wait",
    "too_old": "raise discover.max_age, or for history give `memoryd sync --backfill all`",
    "consent": "until you agree: `memoryd sync --backfill recent` (within discover.max_age), or `--backfill all`",
}

RULES: Mapping[str, str] = {
    "covered": "nothing was recorded since it was extracted",
    "running": "it is being extracted now",
    "out_of_attempts": "every try failed; `memoryd jobs show` has the history, `memoryd jobs retry` tries again",
}

DROPPED: Mapping[str, str] = {
    # by the reader: what the format says is no evidence
    "developer": "instructions of the program to the model",
    "agents_md": "the project's own instructions (AGENTS.md, CLAUDE.md): they are a file already",
    "skill": "text of a skill, which is a file already",
    "memories": "memory that the agent itself put in",
    "compaction": "summaries by which the agent shortened the session; what they sum up was read itself",
    "image": "images",
    "audio": "sound",
    "reasoning": "the model's thoughts, which are not kept",
    "additional_tools": "lists of tools",
    "ghost_snapshot": "snapshots of the files",
    "rolled_back": "turns that were taken back",
    "copied": "rows that an older session holds too, whose they are",
    "harness": "words of the program, not of the person",
    "reminder": "reminders that the program slips in",
    "notice": "notices of the program",
    "notification": "notices of the program",
    "synthetic": "text that the program wrote in the person's name",
    "expansion": "files and commands that the program pasted into what was typed",
    "side_chain": "what sub-agents said among themselves",
    "context": "surroundings that the program describes to the model",
    "attachment": "attachments of the program",
    "command": "commands typed to the program itself, and what it printed",
    "repeated": "messages that the program wrote down again",
    "imported": "a session of an older version of the program, which it took over as a whole",
    "editor_context": "what was open in the editor",
    "referenced_files": "files that the program pasted after what was typed",
    "video": "videos",
    "document": "documents",
    "memory_run": "what the agent's own memory said",
    # by memoryd: what must not be learned from
    "private": "passages in <private>",
    "memory_block": "memory that memoryd itself had put in",
    "own_call": "calls of memoryd itself: it does not learn from itself",
    "own_output": "what calls of memoryd itself answered",
    "base64": "long base64",
    "blank": "messages in which nothing was left",
}

BY_HAND: Mapping[str, str] = {
    "enabled": "you said that it be remembered",
    "disabled": "you said that it not be remembered",
    "no-recall": "you said that it be remembered but not recalled",
}


REASONS_OF_RUN: Mapping[str, str] = {
    "session": "what a session taught is new or has changed",
    "folder": "the memory folder was edited, or a note was added",
    "memory_mode": "whether a session is remembered has changed",
    "exclusion": "a session is left out now, or no longer",
    "rules": "what counts as a secret has changed",
    "import": "the memory of another agent was imported",
}


def job_name(kind: str, key: str) -> str:
    """Name a job for a person: by what it works on."""
    return "the consolidation of the memory folder" if kind == JobKind.CONSOLIDATE else f"session {key}"


def meaning_of_wait(reason: str | None) -> str:
    """Say in words why a job waits."""
    return MEANING_OF_WAIT.get(reason or "", (reason or "no reason is kept").replace("_", " "))


def todo_of_wait(reason: str | None, key: str = "KEY") -> str:
    """Say what a person can do about a wait; `key` is the job's, to be put into commands."""
    return TODO_OF_WAIT.get(reason or "", "it goes on by itself").replace("KEY", key)


def todo_of_rest(reason: str) -> str:
    """Say what a person can do about eligible sessions that are not due."""
    return TODO_OF_REST.get(reason, "nothing: it goes on by itself")


def reason_of_run(kind: str, asked_by: str | None) -> str:
    """Say why a job runs now, from what enqueued it last."""
    if kind == JobKind.STAGE1:
        return "the session holds something that was not extracted yet"
    return REASONS_OF_RUN.get(asked_by or "", f"asked for by {asked_by or 'somebody'}")


def rule(verdict: str | None) -> str:
    """Say what keeps a session from being extracted now; None: nothing does."""
    if verdict is None:
        return "it is extracted by the next pass"
    return RULES.get(verdict) or MEANING.get(verdict) or MEANING_OF_WAIT.get(verdict, verdict)


def dropped(reason: str) -> str:
    """Say what was left out of a session."""
    return DROPPED.get(reason, reason.replace("_", " "))
