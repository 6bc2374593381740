"""Have an agent's own program do the work: it gets a copy of the folder, and of its copy three places are taken back.

The copy is made anew for each run, so that nothing but those three places ever passes from one run to the next. They
are read as the tools of our own agent read: no symlink, no hidden or odd name, no binary, nothing too large.
"""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memoryd.agent.caps import AgentCaps, Tally, total
from memoryd.agent.files import MAX_TOTAL_FILES, MAX_WRITE_BYTES, Entry, Folder, Parts
from memoryd.agent.hands import perform
from memoryd.agent.literal import decode
from memoryd.agent.loop import AgentRun, Ask, Brief, Judge
from memoryd.agent.paths import MEMORY_FILE, SKILLS, SUMMARY_FILE
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.agent.tools import DeleteFile, WriteFile
from memoryd.clock import Clock
from memoryd.errors import ResultRejected, StorageError
from memoryd.llm.question import Errand, Question, UserTurn
from memoryd.text import estimate_tokens, first_line
from memoryd.trees import remove_tree

BASE_TOKENS = 16_384
SPARE_SECONDS = 30.0
"""The caller ends a run that takes too long, as a rejected result; the program's own limit is only the last resort."""
LOOKS = 4
"""How often a program is expected to send what lies in the folder to its model: what a run is reserved with. What it
really took is booked afterwards."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """`root` is the staged folder that is judged; `copy` is where a program works, made anew for each run."""

    root: Path
    copy: Path


async def run_errand(
    brief: Brief,
    *,
    ask: Ask,
    place: Workplace,
    finish: Judge,
    repair: Callable[[tuple[str, ...]], str],
    caps: AgentCaps,
    clock: Clock,
) -> AgentRun:
    """Run the program until `finish` accepts what was taken back, at most `caps.max_repairs` times more than once.

    Runs count as requests. `repair` words the complaints for the next run. Raises ResultRejected, its complaints naming
    the cap or what acceptance still objected to; errors of `ask` and `finish` pass.
    """
    tally, started_at = Tally(), clock.monotonic()
    message = brief.opening
    complaints: tuple[str, ...] = ()
    while True:
        elapsed = clock.monotonic() - started_at
        size = await asyncio.to_thread(_renewed, place)
        expected = BASE_TOKENS + LOOKS * estimate_tokens(size)
        _stop_at_a_cap(tally, caps, elapsed, complaints)
        tally.requests += 1
        answer = await ask(_question(brief, message, place, caps.max_seconds - elapsed + SPARE_SECONDS, expected))
        tally.usage = total(tally.usage, answer.usage)
        tally.refusals.update(await asyncio.to_thread(take_back, place))
        complaints = await finish(answer.text)
        if not complaints:
            return AgentRun(answer.text, tally.requests, tally.usage, tally.refusals)
        tally.rejections += 1
        if tally.rejections > caps.max_repairs:
            raise ResultRejected(
                f"the result was turned down {tally.rejections} times: {first_line(complaints[0], 500)}",
                remedy="the memory stands as it was; `memoryd jobs show` lists every complaint",
                complaints=complaints,
            )
        message = f"{brief.opening}\n\n{repair(complaints)}"


def take_back(place: Workplace) -> list[str]:
    """Make the three places of the root what they are in the copy; return the kinds of what was refused (blocking)."""
    try:
        source = Folder.at(place.copy)
        theirs = {parts: entry.size for parts, entry in _writable(source)}
    except (RefusedError, StorageError) as error:
        raise ResultRejected(
            "the program left no folder to take its work from", complaints=("its folder is gone, or no folder",)
        ) from error
    if len(theirs) > MAX_TOTAL_FILES:  # each would be refused for itself, after a look at all the others
        raise ResultRejected(
            f"the program left {len(theirs)} files where at most {MAX_TOTAL_FILES} may stand",
            complaints=(f"there may be at most {MAX_TOTAL_FILES} written files",),
        )
    target = Folder.at(place.root)
    refused = [
        deed.refusal.value
        for parts in (parts for parts, _ in list(_writable(target)) if parts not in theirs)
        if (deed := perform(target, DeleteFile("/".join(parts)))).refusal
    ]
    for parts, size in theirs.items():
        path = "/".join(parts)
        try:
            if size > MAX_WRITE_BYTES:
                raise RefusedError(RefusalKind.TOO_LARGE, f"{path} is too large")
            text = decode(source.read(parts), path)
        except RefusedError as error:
            refused.append(error.kind.value)
            continue
        deed = perform(target, WriteFile(path, text))
        if deed.refusal:
            refused.append(deed.refusal.value)
    return refused


def _writable(folder: Folder) -> list[tuple[Parts, Entry]]:
    """Return the files in the three places; what lies there under an impossible name is refused when it is written."""
    found: list[tuple[Parts, Entry]] = []
    for entry in folder.entries(()):
        if entry.name in (MEMORY_FILE, SUMMARY_FILE) and not entry.is_folder:
            found.append(((entry.name,), entry))
        elif entry.name == SKILLS and entry.is_folder:
            found += folder.walk((SKILLS,))
    return found


def _renewed(place: Workplace) -> int:
    """Make the copy anew; return how many bytes lie in it (blocking)."""
    try:
        remove_tree(place.copy)
        shutil.copytree(place.root, place.copy, symlinks=True)
        return sum(path.lstat().st_size for path in place.copy.rglob("*"))
    except OSError as error:
        raise StorageError(
            f"cannot copy {place.root} for a program: {error.strerror or error}", remedy="check the disk"
        ) from error


def _question(brief: Brief, message: str, place: Workplace, seconds: float, expected: int) -> Question:
    return Question(
        model=brief.model,
        effort=brief.effort,
        instructions=brief.instructions,
        turns=(UserTurn(message),),
        max_output_tokens=expected,
        errand=Errand(place.copy, seconds),
    )


def _stop_at_a_cap(tally: Tally, caps: AgentCaps, elapsed: float, complaints: tuple[str, ...]) -> None:
    reason = tally.reason_to_stop(caps, elapsed_seconds=elapsed, next_tokens=0)
    if reason is not None:
        complaint = f"the program did not finish: {reason}"
        raise ResultRejected(
            complaint,
            remedy="the memory stands as it was; higher caps in [consolidate] may help",
            complaints=(complaint, *complaints),
        )
