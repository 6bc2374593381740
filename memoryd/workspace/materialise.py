"""The evidence of a consolidation as files: raw_memories.md and rollout_summaries/."""

from collections.abc import Sequence
from pathlib import Path

from memoryd.ledger.outputs import SelectedOutput
from memoryd.workspace.files import translated, write_private
from memoryd.workspace.headers import header_of, render_header
from memoryd.workspace.layout import RAW_MEMORIES, ROLLOUT_SUMMARIES
from memoryd.workspace.stems import stem_of


def materialise(work: Path, selected: Sequence[SelectedOutput]) -> None:
    """Write raw_memories.md and one summary per selected session; remove the .md files of all others.

    Files of rollout_summaries/ that are not .md, and folders in it, stay.
    """
    folder = work / ROLLOUT_SUMMARIES
    wanted = {f"{stem_of(output)}.md": output for output in selected}
    with translated("clear", folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in folder.glob("*.md"):
            if path.name not in wanted and path.is_file():
                path.unlink()
    for name, output in wanted.items():
        write_private(folder / name, _encode(render_rollout_summary(output)))
    write_private(work / RAW_MEMORIES, _encode(render_raw_memories(selected)))


def render_rollout_summary(output: SelectedOutput) -> str:
    """Render rollout_summaries/<stem>.md."""
    return render_header(header_of(output)) + output.rollout_summary.rstrip("\r\n") + "\n"


def render_raw_memories(selected: Sequence[SelectedOutput]) -> str:
    """Render raw_memories.md, in ascending thread-id order."""
    if not selected:
        return "# Raw Memories\n\nNo raw memories yet.\n"
    opening = "# Raw Memories\n\nMerged stage-1 raw memories (stable ascending thread-id order):\n\n"
    return opening + "".join(_raw_memory(output) for output in sorted(selected, key=lambda output: output.thread_id))


def _raw_memory(output: SelectedOutput) -> str:
    header = header_of(output)
    return (
        f"## Thread `{header.thread_id}`\n"
        f"updated_at: {header.updated_at}\n"
        f"cwd: {header.cwd}\n"
        f"rollout_path: {header.rollout_path}\n"
        f"rollout_summary_file: {stem_of(output)}.md\n"
        f"\n{output.raw_memory.strip()}\n\n"
    )


def _encode(text: str) -> bytes:
    """Encode for a file; a lone surrogate, which JSON may carry, becomes a question mark."""
    return text.encode("utf-8", "replace")
