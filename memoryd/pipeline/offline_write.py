"""Stage 2 without a model: the handbook and its summary, rewritten from the selected outputs, notes and imports alone.

Nothing of the previous files is read, so what lost its evidence is gone by itself; a person's own lines are put back by
publication. The same inputs give the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memoryd.ledger.outputs import SelectedOutput
from memoryd.pipeline.offline_groups import Project, handbook_of, projects_of
from memoryd.pipeline.offline_imported import Noted, read_imported
from memoryd.pipeline.offline_notes import Note, read_notes
from memoryd.pipeline.offline_overview import fitted_summary
from memoryd.pipeline.offline_text import one_line
from memoryd.text import byte_length
from memoryd.workspace.files import write_private
from memoryd.workspace.folder import MAX_FILE_BYTES
from memoryd.workspace.handbook import render_handbook
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.summary import render_summary

MAX_HANDBOOK_BYTES: Final = MAX_FILE_BYTES * 3 // 4
"""The rest is for what each row says of its summary file, which is filled in later."""

BULLETS_OF_A_SESSION: Final = (1000, 8, 4, 2, 1)
"""How many bullets of each kind a session or an imported file may have, tried in turn until a folder takes it all."""


def write_offline(work: Path, selected: Sequence[SelectedOutput], *, now: float, max_summary_bytes: int) -> None:
    """Write MEMORY.md and memory_summary.md of the staged folder `work`.

    `now` (epoch seconds) only decides which sessions the summary lists as recent. Raises StorageError or DiskFull.
    """
    cwds = {one_line(output.cwd) for output in selected if output.cwd}
    noted = read_imported(work, cwds=cwds)
    notes = read_notes(work, cwds={*cwds, *(each.cwd for each in noted)})
    projects = _fitting_projects(selected, notes, noted)
    handbook = handbook_of(projects, notes)
    summary = fitted_summary(handbook, projects, notes, now=now, max_bytes=max_summary_bytes)
    write_private(work / MEMORY_FILE, render_handbook(handbook).encode())
    write_private(work / SUMMARY_FILE, render_summary(summary).encode())


def _fitting_projects(
    selected: Sequence[SelectedOutput], notes: Sequence[Note], noted: Sequence[Noted]
) -> list[Project]:
    for max_bullets in BULLETS_OF_A_SESSION:
        projects = projects_of(selected, notes, noted, max_bullets=max_bullets)
        if byte_length(render_handbook(handbook_of(projects, notes))) <= MAX_HANDBOOK_BYTES:
            break
    return projects
