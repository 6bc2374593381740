"""What a consolidation works from: the selected outputs in a staged copy of the folder, and what changed there."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memoryd.ledger import outputs, sayings
from memoryd.ledger.forgetting import untidy
from memoryd.ledger.jobs import Lease
from memoryd.ledger.outputs import SelectedOutput
from memoryd.ledger.sayings import Said
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.plausibility import Standing, clock_standing
from memoryd.workspace import staging
from memoryd.workspace.diff import WorkspaceDiff, workspace_diff
from memoryd.workspace.extensions import expire_extension_resources
from memoryd.workspace.files import write_private
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import AD_HOC_NOTES, DIFF_FILE
from memoryd.workspace.materialise import materialise
from memoryd.workspace.proposals import digest_of
from memoryd.workspace.protection import Protection
from memoryd.workspace.staging import Staging
from memoryd.workspace.undoing import with_standing


@dataclass(slots=True)
class Evidence:
    """What a consolidation works from, and what it compares with."""

    selected: Sequence[SelectedOutput]
    removed_threads: frozenset[str]
    staged: Staging
    before: Folder
    diff: WorkspaceDiff
    protected: Protection = field(default_factory=Protection)
    persons: Mapping[str, frozenset[str]] = field(default_factory=dict)
    said: Mapping[str, Said] = field(default_factory=dict)
    complained: set[str] = field(default_factory=set)
    has_named_persons: bool = False
    has_finished: bool = False
    cleaned: int = 0
    untidy: tuple[str, ...] | None = None
    """Sessions to look at anew although nothing else changed, since code alone has cleaned up; None: no need."""
    strays: int = 0
    inputs: str = ""
    """A digest of what was staged, before anything was written."""

    def new_notes(self) -> str:
        """Return the text of the notes that came or changed since the last accepted commit."""
        paths = [change.path for change in self.diff.changes if change.path.startswith(f"{AD_HOC_NOTES}/")]
        work = Folder.read(self.staged.work)
        return "\n".join(work.text(path) for path in paths)


async def gather(context: Context, lease: Lease) -> Evidence:
    """Select the outputs, stage a copy of the folder, put the evidence in it, and see what changed.

    While the clock is in doubt nothing is left out for its age.
    """
    settings = context.settings.consolidate
    clock = await clock_standing(context.ledger, context.clock)
    selected = await context.ledger.read(
        outputs.select_for_consolidation,
        now=clock.judged_at,
        max_raw_memories=settings.max_raw_memories,
        max_unused=settings.max_unused,
    )
    before = await context.ledger.read(outputs.previously_selected)
    context.still_ours()
    evidence = await in_thread(_stage, context, lease.token, selected, {row.thread_id for row in before}, clock)
    evidence.said = await context.ledger.read(sayings.of_threads, [row.thread_id for row in evidence.selected])
    evidence.untidy = await context.ledger.read(untidy)
    return evidence


def _stage(
    context: Context, token: str, rows: Sequence[SelectedOutput], earlier: Collection[str], clock: Standing
) -> Evidence:
    now = clock.last.wall
    staged = staging.stage(context.home, context.repository, token, now=now, redactor=context.redactor)
    before = Folder.read(staged.base)
    selected = [_cleaned(context, row) for row in with_standing(rows, before)]
    removed = frozenset(earlier) - {row.thread_id for row in selected}
    materialise(staged.work, selected)
    if clock.doubt is None:
        expire_extension_resources(staged.work, now, context.settings.consolidate.extension_retention)
    diff = workspace_diff(context.repository, staged.accepted, staged.work)
    write_private(staged.work / DIFF_FILE, diff.text.encode("utf-8", "replace"))
    return Evidence(selected, removed, staged, before, diff, inputs=digest_of(Folder.read(staged.work)))


def _cleaned(context: Context, row: SelectedOutput) -> SelectedOutput:
    """Redact once more what goes into the folder: the patterns may be newer than the row, and match its file's path."""
    clean = context.redactor.clean
    return replace(
        row,
        raw_memory=clean(row.raw_memory),
        rollout_summary=clean(row.rollout_summary),
        cwd=clean(row.cwd or "") or None,
        git_branch=clean(row.git_branch or "") or None,
        rollout_path=clean(row.rollout_path or "") or None,
    )
