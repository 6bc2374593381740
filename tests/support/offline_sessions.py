"""Short ways to say what happened in a session, as items, and selected outputs made of it."""

from collections.abc import Sequence

from memoryd.ledger.outputs import SelectedOutput
from memoryd.pipeline.offline_extract import extract_offline
from memoryd.pipeline.reply import Stage1Reply
from memoryd.pipeline.session_facts import SessionFacts
from memoryd.sources.items import Item, ItemKind
from memoryd.workspace.stems import session_stem

CWD = "/home/dev/shop"
DAY = 86_400
NOW = 1_800_000_000


def human(text: str) -> Item:
    return Item(ItemKind.HUMAN, text, 0)


def final(text: str) -> Item:
    return Item(ItemKind.ASSISTANT_FINAL, text, 0)


def run(command: str, exit_code: int | None = 0, output: str = "") -> list[Item]:
    return [
        Item(ItemKind.TOOL_CALL, command, 0, tool="exec_command"),
        Item(ItemKind.TOOL_OUTPUT, output, 0, tool="exec_command", exit_code=exit_code),
    ]


def patch(*paths: str) -> list[Item]:
    body = "".join(f"*** Update File: {path}\n-old\n+new\n" for path in paths)
    return [
        Item(ItemKind.TOOL_CALL, f"*** Begin Patch\n{body}*** End Patch", 0, tool="apply_patch"),
        Item(ItemKind.TOOL_OUTPUT, "Success.", 0, tool="apply_patch", exit_code=0),
    ]


def flat(*parts: Item | Sequence[Item]) -> list[Item]:
    return [item for part in parts for item in ([part] if isinstance(part, Item) else part)]


def facts(cwd: str | None = CWD, branch: str | None = "main", number: int = 1) -> SessionFacts:
    return SessionFacts(a_thread(number), "codex", cwd, branch, NOW - 2 * DAY, NOW - DAY)


def a_thread(number: int) -> str:
    return f"01a226ab-5fe7-707c-80dd-{number:012x}"


def extract(*parts: Item | Sequence[Item], cwd: str | None = CWD) -> Stage1Reply:
    return extract_offline(session=facts(cwd), items=flat(*parts))


def selected(
    reply: Stage1Reply, *, number: int = 1, cwd: str | None = CWD, days_ago: float = 1.0, now: int = NOW
) -> SelectedOutput:
    """Make the row that a reply becomes, `days_ago` days before `now`."""
    return SelectedOutput(
        thread_id=a_thread(number),
        updated_at=int(now - days_ago * DAY),
        raw_memory=reply.raw_memory,
        rollout_summary=reply.rollout_summary,
        rollout_slug=reply.rollout_slug,
        generated_at=now,
        usage_count=0,
        last_usage=None,
        selected_for_phase2=False,
        selected_for_phase2_source_updated_at=None,
        agent="codex",
        cwd=cwd,
        git_branch="main",
        rollout_path=f"/home/dev/.codex/sessions/{number}.jsonl",
        stem=session_stem(a_thread(number), 0, reply.rollout_slug),
        started_at=int(now - days_ago * DAY) - 3_600,
    )
