"""A person and the offline writer at one memory folder: consolidations without a ledger, as the pipeline runs them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.ledger.outputs import SelectedOutput
from memoryd.pipeline.offline_write import write_offline
from memoryd.redact import Redactor
from memoryd.workspace import mending, protection
from memoryd.workspace.acceptance import judge
from memoryd.workspace.diff import workspace_diff
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import ALWAYS_THERE, SUMMARY_FILE, Home
from memoryd.workspace.materialise import materialise
from memoryd.workspace.outline import Place, place_of, read_outline, walk
from memoryd.workspace.publish import prepare_commit, put_in_place
from memoryd.workspace.staging import Staging, discard, stage
from tests.support.offline_sessions import NOW

BUDGET = 40_000

Write = Callable[[Path], None]


@dataclass
class Shared:
    """A memory folder that a person edits and memoryd rewrites."""

    home: Home
    repo: Repository
    selected: Sequence[SelectedOutput] = ()
    redactor: Redactor = field(default_factory=Redactor)
    runs: int = 0

    def text(self, path: str) -> str:
        return (self.home.memories / path).read_text()

    def write(self, path: str, text: str) -> None:
        target = self.home.memories / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.text(path)
        assert text.count(old) == 1, (old, text)
        self.write(path, text.replace(old, new))

    def says(self, path: str) -> set[tuple[Place, str]]:
        """What a file states, and where."""
        return {(place_of(stack, line), line.key) for stack, line in walk(read_outline(self.text(path)))}

    def consolidate(self, selected: Sequence[SelectedOutput], write: Write | None = None) -> bool:
        """Consolidate these sessions, with the offline writer unless told otherwise; False when there is nothing to do.

        Fails when the result is not acceptable.
        """
        self.runs += 1
        staged = stage(self.home, self.repo, f"run-{self.runs}", now=NOW, redactor=self.redactor)
        try:
            materialise(staged.work, selected)
            if not workspace_diff(self.repo, staged.accepted, staged.work).changes:
                return False
            self._publish(staged, selected, write)
            return True
        finally:
            discard(staged)

    def _publish(self, staged: Staging, selected: Sequence[SelectedOutput], write: Write | None) -> None:
        protected = protection.read_protection(self.repo, staged)
        if write is not None:
            write(staged.work)
        elif selected:
            room = BUDGET - protected.size(SUMMARY_FILE)
            write_offline(staged.work, selected, now=NOW, max_summary_bytes=room)
        else:
            mending.empty_folder(staged.work)
        kept = protection.keep_lines(protected, Folder.read(staged.work), may_move=False)
        for path, text in kept.texts.items():
            (staged.work / path).write_text(text)
        mending.rewrite_provenance(staged.work)
        before = {output.thread_id for output in self.selected}
        verdict = judge(
            before=Folder.read(staged.base),
            after=Folder.read(staged.work),
            removed_threads=before - {output.thread_id for output in selected},
            max_summary_bytes=BUDGET,
            redactor=self.redactor,
            persons=kept.lines,
        )
        assert verdict.complaints == (), [self.text(path) for path in ALWAYS_THERE if self.selected]
        commit = prepare_commit(self.repo, staged, "run\n", now=NOW, persons=kept.lines)
        put_in_place(self.home, self.repo, commit, staged.base_id)
        self.selected = selected
