"""How the scripted model behaves unless a test says otherwise: it reads a session, and it keeps the memory folder.

It takes everything it says from what it was sent, so that its memories pass the acceptance checks, and the same
request gets the same answer.
"""

import json
import re
from dataclasses import dataclass

from tests.support.model_asked import CONSOLIDATION, Exchange, Recorded
from tests.support.model_replies import Call, Reply, tools

EMPTY_STAGE1 = Reply(text=json.dumps({"rollout_summary": "", "rollout_slug": "", "raw_memory": ""}))

ROW = re.compile(
    r"^\[(human user|assistant final|other agent|assistant commentary|harness context|tool)\](?: #\d+.*|[ ]?(.*))$"
)
OMITTED = re.compile(r"^\[\.\.\. .* omitted \.\.\.\]$")
FENCE = re.compile(r"two lines that read `([^`]+)`")
FACT = re.compile(r"^(cwd|thread_id|git_branch): (.*)$", re.MULTILINE)
UNQUOTABLE = re.compile(r"[\"<>*`…\[\]{}|#\\]|\.\.\.")
MORE = re.compile(r"\[\.\.\. truncated: continue with line_offset=(\d+)\]\s*\Z")
THREAD = re.compile(r"^## Thread `(.+)`$", re.MULTILINE)

MIN_QUOTE, MAX_QUOTE = 8, 120
MAX_PREFERENCES = 3
RECENT_GROUPS = 20


def good_model(asked: Recorded) -> Reply:
    """Answer as a good model would."""
    return keep_folder(asked) if asked.kind == CONSOLIDATION else read_session(asked)


def read_session(asked: Recorded) -> Reply:
    """Answer a stage-1 request: quotes of the person as preference signals, the rest from the facts of the prompt."""
    return stage1_reply(asked.opening)


def stage1_reply(opening: str) -> Reply:
    """Derive the reply from the words of the prompt; without a quotable sentence of the person it is empty."""
    rows = _rows(opening)
    quotes = [quote for kind, text in rows if kind == "human user" and (quote := _quotable(text))]
    if not quotes:
        return EMPTY_STAGE1
    facts = dict(FACT.findall(opening.split("\n\n", 1)[0]))
    cwd = facts.get("cwd", "unknown")
    group = cwd.rstrip("/").rpartition("/")[2] or "unknown"
    words = re.findall(r"[a-z0-9]{3,}", quotes[0].lower())[:4] or ["session"]
    name = " ".join(words)
    signals = "\n".join(
        f'- when working in {group}, the user said: "{quote}" -> do it that way' for quote in quotes[:MAX_PREFERENCES]
    )
    raw_memory = (
        f"---\ndescription: {name} in {group}\ntask: {name}\ntask_group: {group}\ntask_outcome: uncertain\n"
        f"cwd: {cwd}\nkeywords: {', '.join(words)}\n---\n\n"
        f"### Task 1: {name}\ntask: {name}\ntask_group: {group}\ntask_outcome: uncertain\n\n"
        f"Preference signals:\n{signals}\n\n"
        f"Reusable knowledge:\n- {group} is worked on in {cwd}\n\n"
        f"References:\n- {cwd}\n"
    )
    summary = (
        f"# Work on {name} in {group}.\n\nRollout context: {cwd}\n\n## Task 1: {name}\nOutcome: uncertain\n"
        f"Preference signals:\n{signals}\nReusable knowledge:\n- {group} is worked on in {cwd}\nReferences:\n- {cwd}\n"
    )
    reply = {"rollout_summary": summary, "rollout_slug": "-".join(words), "raw_memory": raw_memory}
    return Reply(text=json.dumps(reply, ensure_ascii=False))


def keep_folder(asked: Recorded) -> Reply:
    """Answer a consolidation: look, read all raw memories, write both files, finish."""
    done = asked.exchanges
    names = [each.name for each in done]
    if "list_files" not in names:
        return tools(Call("list_files", {"path": ""}))
    pages = [each for each in done if _reads_raw_memories(each)]
    if not pages:
        return _read_page(1)
    more = MORE.search(pages[-1].output)
    if more is not None:
        return _read_page(int(more[1]))
    inputs = parse_raw_memories("".join(MORE.sub("", page.output) for page in pages))
    if "write_file" not in names:
        return tools(
            Call("write_file", {"path": "MEMORY.md", "content": handbook(inputs)}),
            Call("write_file", {"path": "memory_summary.md", "content": summary(inputs)}),
        )
    if done[-1].name == "finish" and done[-1].output.startswith("accepted"):
        return Reply(text="The memory folder is up to date.")
    return tools(Call("finish", {"summary": f"Merged {len(inputs)} sessions."}))


def _reads_raw_memories(each: Exchange) -> bool:
    return each.name == "read_file" and each.arguments.get("path") == "raw_memories.md"


def _read_page(line: int) -> Reply:
    return tools(Call("read_file", {"path": "raw_memories.md", "line_offset": line, "max_lines": 2000}))


def _rows(opening: str) -> list[tuple[str, str]]:
    """Return (speaker, text) of the evidence rows of a prompt, in order."""
    rows: list[tuple[str, str]] = []
    inside = False
    for line in _evidence(opening).splitlines():
        found = ROW.match(line)
        if found:
            rows.append((found[1], found[2] or ""))
            inside = True
        elif OMITTED.match(line):
            inside = False
        elif inside:
            kind, text = rows[-1]
            rows[-1] = (kind, f"{text}\n{line}")
    return rows


def _evidence(opening: str) -> str:
    fence = FENCE.search(opening)
    if fence is None:
        return opening
    parts = re.split(rf"^{re.escape(fence[1])}$", opening, flags=re.MULTILINE)
    return parts[1] if len(parts) > 2 else opening


def _quotable(text: str) -> str:
    """Return the beginning of a person's first line, up to a character that a quote or a handbook could not carry."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    quote = UNQUOTABLE.split(line, maxsplit=1)[0][:MAX_QUOTE].strip()
    return quote if len(quote) >= MIN_QUOTE else ""


@dataclass(frozen=True, slots=True)
class RawMemory:
    """One input of a consolidation."""

    thread_id: str
    updated_at: str
    cwd: str
    rollout_path: str
    summary_file: str
    body: str

    def lines_below(self, heading: str) -> list[str]:
        """Return the bullets of a subsection, without their dash and without anything cut."""
        found = re.search(rf"^{re.escape(heading)}\n((?:- .*\n?)*)", self.body, re.MULTILINE)
        lines = found[1].splitlines() if found else []
        return [line.removeprefix("- ") for line in lines if not re.search(r"\.\.\.|…", line)]

    def field(self, name: str) -> str:
        found = re.search(rf"^{name}: (.+)$", self.body, re.MULTILINE)
        return found[1].strip() if found else ""


def parse_raw_memories(text: str) -> list[RawMemory]:
    """Parse raw_memories.md."""
    parts = THREAD.split(text)[1:]
    return [_raw_memory(thread_id, block) for thread_id, block in zip(parts[::2], parts[1::2], strict=True)]


def _raw_memory(thread_id: str, block: str) -> RawMemory:
    head, _, body = block.strip("\n").partition("\n\n")
    facts = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    return RawMemory(
        thread_id=thread_id,
        updated_at=facts.get("updated_at", ""),
        cwd=facts.get("cwd", "unknown"),
        rollout_path=facts.get("rollout_path", ""),
        summary_file=facts.get("rollout_summary_file", ""),
        body=body,
    )


def grouped(inputs: list[RawMemory]) -> dict[str, list[RawMemory]]:
    """Return the inputs by directory, in order of directory."""
    return {cwd: [each for each in inputs if each.cwd == cwd] for cwd in sorted({each.cwd for each in inputs})}


def handbook(inputs: list[RawMemory]) -> str:
    """Write MEMORY.md: one task group per directory, one task per session."""
    return "\n".join(_group(cwd, members) for cwd, members in grouped(inputs).items())


def _group(cwd: str, members: list[RawMemory]) -> str:
    lines = [
        f"# Task Group: {cwd}",
        f"scope: work in {cwd}; nothing beyond it",
        f"applies_to: cwd={cwd}; reuse_rule=this directory only",
    ]
    for number, each in enumerate(members, 1):
        note = each.field("task_outcome") or "uncertain"
        lines += [
            "",
            f"## Task {number}: {each.field('description') or 'session'}, {note}",
            "",
            "### rollout_summary_files",
            (
                f"- rollout_summaries/{each.summary_file} (cwd={each.cwd}, rollout_path={each.rollout_path},"
                f" updated_at={each.updated_at}, thread_id={each.thread_id}, {note})"
            ),
            "",
            "### keywords",
            f"- {each.field('keywords') or 'session'}",
        ]
    sections = (
        ("User preferences", "Preference signals:", "[stated]"),
        ("Reusable knowledge", "Reusable knowledge:", "[inferred]"),
        ("Failures and how to do differently", "Failures and how to do differently:", "[verified]"),
    )
    for title, heading, mark in sections:
        bullets = _bullets(members, heading, mark)
        if bullets:
            lines += ["", f"## {title}", *bullets]
    return "\n".join(lines) + "\n"


def _bullets(members: list[RawMemory], heading: str, mark: str) -> list[str]:
    """Return each statement once, with every task that made it."""
    tasks: dict[str, list[int]] = {}
    for number, each in enumerate(members, 1):
        for line in each.lines_below(heading):
            numbers = tasks.setdefault(line, [])
            if number not in numbers:
                numbers.append(number)
    return [f"- {line} {''.join(f'[Task {n}]' for n in numbers)} {mark}" for line, numbers in tasks.items()]


def summary(inputs: list[RawMemory]) -> str:
    """Write memory_summary.md: every group by its directory, the newest ones in full."""
    groups = sorted(grouped(inputs).items(), key=lambda group: (_newest(group[1]), group[0]), reverse=True)
    lines = ["v1", "", "## User Profile", "", "A person who works with coding agents.", ""]
    lines += ["## User preferences", "", "- Look at MEMORY.md for what holds in a directory.", ""]
    lines += ["## General Tips", "", "- Search MEMORY.md before starting work.", "", "## What's in Memory", ""]
    for cwd, members in groups[:RECENT_GROUPS]:
        lines += [f"### {cwd}", "", f"#### {_newest(members)[:10]}", "", f"- {cwd}: {_keywords(members)}"]
        lines += [f"  - desc: {len(members)} sessions", "  - learnings: see MEMORY.md", ""]
    if groups[RECENT_GROUPS:]:
        lines += ["### Older Memory Topics", ""]
    for cwd, members in groups[RECENT_GROUPS:]:
        lines += [f"#### {cwd}", "", f"- {cwd}: {_keywords(members)}", f"  - desc: {len(members)} sessions", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _newest(members: list[RawMemory]) -> str:
    return max(each.updated_at for each in members)


def _keywords(members: list[RawMemory]) -> str:
    words = [word for each in members for word in each.field("keywords").split(", ") if word]
    return ", ".join(list(dict.fromkeys(words))[:3]) or "session"
