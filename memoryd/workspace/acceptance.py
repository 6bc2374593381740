"""Whether the result of a consolidation may be published; only what the run changed or added is judged."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memoryd.ledger.outputs import SelectedOutput
from memoryd.redact import Redactor
from memoryd.workspace.folder import Folder


@dataclass(frozen=True, slots=True)
class Verdict:
    """`complaints` reject the result, a sentence each; `strays` are paths that are removed and reject nothing."""

    complaints: tuple[str, ...]
    strays: tuple[str, ...] = ()


def judge(
    *,
    before: Folder,
    after: Folder,
    selected: Sequence[SelectedOutput],
    removed_threads: Collection[str],
    max_summary_bytes: int,
    redactor: Redactor,
) -> Verdict:
    """Judge a run: `before` is the staged copy (Staging.base), `after` what stands in Staging.work."""
    raise NotImplementedError
