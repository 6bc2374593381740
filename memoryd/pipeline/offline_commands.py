"""Commands with exit codes: what failed, what then worked, and what was changed in between."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.pipeline.offline_files import edited_paths, is_edit
from memoryd.pipeline.offline_text import clip, is_quotable, one_line
from memoryd.sources.items import Item, ItemKind

MAX_COMMAND_CHARS: Final = 160
MAX_MESSAGE_CHARS: Final = 200
MAX_RUNS: Final = 400
"""The last commands of a session are compared with each other; more would cost time by the square."""
MAX_CHANGES: Final = 3

_READ_ONLY_WORDS: Final = """
ls cat head tail grep rg find fd pwd echo printf which wc tree stat file env printenv date whoami nl less jq awk
cd test true false diff type man sort uniq cut basename dirname realpath readlink id uname hostname ps df du
sleep tput clear export set for while until if done fi
break continue
"""
_READ_ONLY: Final = frozenset(_READ_ONLY_WORDS.split())
_READ_ONLY_GIT_WORDS: Final = """
status diff log show branch blame rev-parse remote ls-files describe reflog grep stash
"""
_READ_ONLY_GIT: Final = frozenset(_READ_ONLY_GIT_WORDS.split())
_WRAPPERS: Final = frozenset({"sudo", "time", "env", "nice", "nohup", "command", "exec", "do", "then", "else"})
_TALKERS: Final = frozenset({"kubectl", "gh", "docker", "podman", "helm", "aws", "gcloud", "az", "brew", "apt", "pip"})
_LOOKING: Final = frozenset(
    {"get", "list", "ls", "describe", "logs", "show", "view", "version", "ps", "images", "top", "inspect"}
)
"""Sub-commands that only look; `status` is no such word, because waiting for a roll-out is a test."""
_PASSING: Final = re.compile(
    r"(?:git (?:add|rm|mv|commit|push|checkout|switch|merge|rebase|stash|restore)|rm|mkdir"
    r"|cp|mv|touch|kill|sed|apply_patch)\b"
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=\S*")
_BETWEEN_SEGMENTS: Final = re.compile(r"\s*(?:&&|\|\||;|\||\n)\s*")
_WRITES: Final = re.compile(r"(?<![0-9&])>{1,2}(?!&|\s*/dev/null)\s*\S")
_TROUBLE: Final = re.compile(
    r"error|exception|fail|fatal|denied|refused|cannot|can't|could not|not found|no such|unable|invalid|unknown"
    r"|undefined|missing|timed? ?out|conflict|mismatch",
    re.IGNORECASE,
)
_TROUBLE_WITH_REASON: Final = re.compile(r"(?:\b\w*(?:Error|Exception)|\b[Ee]rror|\bfatal|\bERR!)\b[^:]{0,24}:\s*\S")
_NAMED_TROUBLE: Final = re.compile(
    r"(?:\b\w*(?:Error|Exception)|\b[Ee]rror|\bfatal|\bERR!|\bdenied|\bnot "
    r"found)\b(?:[:\s]|$)"
)
_NOISE: Final = re.compile(
    r"^(?:[=\-_*#~.\s]+|Chunk ID:.*|Wall time:.*|Process exited with code.*|Original token count:.*|Output:"
    r"|Exit code:.*)$"
)
_BANNER: Final = re.compile(
    r"^\W*(?:(?:\d+ )?(?:failed|errors?|failures?|tests? failed)\b\W*(?:\(.*\)|[\d,\s\w]*in [\d.]+ ?m?s.*"
    r"|\d.*)?|Ran \d+ tests? in .*)\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Run:
    """A command that ended; `position` counts items of the session, `command` is its first line."""

    command: str
    exit_code: int
    output: str
    position: int

    @property
    def worked(self) -> bool:
        """Exit code 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that failed `times` times, and, if one did, the similar command that then worked."""

    failed: Run
    message: str | None
    times: int
    cure: Run | None
    between_commands: tuple[str, ...]
    between_files: tuple[str, ...]


def runs_of(items: Sequence[Item]) -> list[Run]:
    """Pair calls with their outputs and return those that have an exit code, in the order in which they ended."""
    calls: dict[str, Item] = {}
    previous: Item | None = None
    runs: list[Run] = []
    for position, item in enumerate(items):
        if item.kind is ItemKind.TOOL_CALL:
            previous = item
            calls[item.call_id or ""] = item
        elif item.kind is ItemKind.TOOL_OUTPUT and item.exit_code is not None:
            call = calls.get(item.call_id) if item.call_id else previous
            command = command_line(call.text) if call and not is_edit(call) else ""
            if command:
                runs.append(Run(command, item.exit_code, item.text, position))
    return runs[-MAX_RUNS:]


def command_line(text: str) -> str:
    """Return the first line of a command, at most 160 characters; empty when it cannot be quoted."""
    line = one_line(next((line for line in text.splitlines() if line.strip()), ""))
    return clip(line, MAX_COMMAND_CHARS) if is_quotable(line) else ""


def is_probe(command: str) -> bool:
    """Whether a command only looks: neither its success nor its failure teaches anything."""
    return all(_is_read_only(segment) for segment in _segments(command))


def is_lasting(command: str) -> bool:
    """Whether a command that worked is worth knowing again: no edit, no commit, no script written on the spot."""
    words = _words(_segments(command)[0]) if _segments(command) else []
    return bool(words) and "<<" not in command and not _PASSING.match(" ".join(words))


def program_of(command: str) -> str:
    """Return the name of the program that a command runs first, apart from moving and looking."""
    telling = [words[0] for segment in _segments(command) if (words := _words(segment)) and not _is_read_only(segment)]
    return telling[0].rsplit("/", 1)[-1] if telling else ""


def is_step(run: Run) -> bool:
    """Whether a run did something that its command line tells: a script written on the spot does not."""
    return run.worked and "<<" not in run.command and not is_probe(run.command)


def failures_of(runs: Sequence[Run], items: Sequence[Item]) -> list[Failure]:
    """Return each command that failed, similar ones together, with the first similar one that worked afterwards."""
    failures: list[Failure] = []
    taken: set[int] = set()
    for index, run in enumerate(runs):
        if run.worked or index in taken or is_probe(run.command):
            continue
        last, times, cure = index, 1, None
        for later in range(index + 1, len(runs)):
            if not are_similar(run.command, runs[later].command):
                continue
            if runs[later].worked:
                cure = runs[later]
                break
            taken.add(later)
            last, times = later, times + 1
        failures.append(_failure(runs, items, last, times, cure))
    return failures


def are_similar(failed: str, later: str) -> bool:
    """Whether two commands try the same thing: equal up to flags, to the program, or to half of their words."""
    return any(
        _same_try(_words(one), _words(other))
        for one in _segments(failed)
        for other in _segments(later)
        if not _is_read_only(one) and not _is_read_only(other)
    )


def trouble_line(output: str) -> str | None:
    """Return the line of an output that says what went wrong: the last that names an error and says which, verbatim."""
    lines = [one_line(line) for line in output.splitlines()]
    telling = [line for line in lines if is_quotable(line) and not _NOISE.match(line) and not _BANNER.match(line)]
    telling_why = [line for line in telling if _TROUBLE_WITH_REASON.search(line)]
    named = [line for line in telling if _NAMED_TROUBLE.search(line)]
    troubled = [line for line in telling if _TROUBLE.search(line)]
    chosen = next(iter((telling_why or named or troubled or telling)[-1:]), "")
    return clip(chosen, MAX_MESSAGE_CHARS) or None


def _failure(runs: Sequence[Run], items: Sequence[Item], last: int, times: int, cure: Run | None) -> Failure:
    failed = runs[last]
    commands: Iterable[str] = ()
    files: Iterable[str] = ()
    if cure is not None:
        commands = (run.command for run in runs if failed.position < run.position < cure.position and is_step(run))
        files = edited_paths(items[failed.position : cure.position])
    return Failure(
        failed=failed,
        message=trouble_line(failed.output),
        times=times,
        cure=cure,
        between_commands=tuple(dict.fromkeys(commands))[-MAX_CHANGES:],
        between_files=tuple(dict.fromkeys(files))[-MAX_CHANGES:],
    )


def _segments(command: str) -> list[str]:
    return [segment for segment in _BETWEEN_SEGMENTS.split(command) if segment]


def _words(segment: str) -> list[str]:
    """Split a simple command; assignments and wrappers in front of the program are no part of it."""
    words = segment.split()
    while words and (words[0] in _WRAPPERS or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    return words


def _is_read_only(segment: str) -> bool:
    words = _words(segment)
    if not words:
        return True
    if _WRITES.search(segment):
        return False
    program = words[0].rsplit("/", 1)[-1]
    if program == "git":
        return len(words) > 1 and words[1] in _READ_ONLY_GIT
    if program == "sed":
        return not any(word.startswith(("-i", "--in-place")) for word in words)
    if program in _TALKERS:
        return bool(_LOOKING & set(_without_flags(words)[1:4]))
    return program in _READ_ONLY


def _same_try(failed: list[str], later: list[str]) -> bool:
    if not failed or not later:
        return False
    if failed == later or (len(failed) > 1 and failed[1:] == later[1:]):
        return True
    plain, other = _without_flags(failed), _without_flags(later)
    if plain[:1] == other[:1] and plain[1:2] != other[1:2] and not _is_target(plain[1:2] + other[1:2]):
        return False
    if plain and _ends_with(other, plain):
        return True
    union = set(plain) | set(other)
    return len(set(plain) & set(other)) * 2 >= len(union) and len(set(plain) & set(other)) > 1


def _ends_with(longer: list[str], shorter: list[str]) -> bool:
    """`uv run pytest -q` is `pytest -q` behind another program."""
    return longer[-len(shorter) :] == shorter or longer[: len(shorter)] == shorter


def _is_target(words: list[str]) -> bool:
    """Whether the second words are files or options rather than sub-commands."""
    return all("/" in word or "." in word for word in words)


def _without_flags(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]
