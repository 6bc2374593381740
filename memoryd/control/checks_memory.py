"""Checks of `doctor`: what stands in the memory folder, a person's files among it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from memoryd.control.checked import Checked
from memoryd.control.console import plural
from memoryd.control.patient import Patient
from memoryd.errors import MemorydError
from memoryd.redact import Redactor
from memoryd.workspace.acceptance import judge
from memoryd.workspace.folder import Folder, Odd
from memoryd.workspace.layout import MEMORY_FILE, is_misplaced
from memoryd.workspace.summary import summary_budget

MOST_TOLD: Final = 10
OF_NO_INTEREST: Final = frozenset({Odd.HIDDEN, Odd.EDITOR_FILE})
NO_INPUT: Final = "it is left out of the memory; move it elsewhere, or leave it"


async def check_memory(patient: Patient) -> list[Checked]:
    """Say which files hold secrets or are no inputs, and what stands there that no run would be let write."""
    home = patient.home
    if not home.memories.is_dir():
        return []
    try:
        folder = await asyncio.to_thread(Folder.read, home.memories)
    except MemorydError as error:
        return [Checked("memory", "error", error.message, error.remedy)]
    redactor = Redactor(patient.settings.privacy.patterns)
    found = [*_secrets(folder, redactor), *_no_inputs(folder), *_complaints(folder, redactor, patient)]
    found = [
        replace(each, evidence=redactor.clean(each.evidence), remedy=redactor.clean(each.remedy)) for each in found
    ]
    return found[:MOST_TOLD] or [
        Checked("memory", "ok", f"{plural(len(folder.files), 'file')} in {home.memories}, none with a known secret")
    ]


def _secrets(folder: Folder, redactor: Redactor) -> Iterator[Checked]:
    """Name files and lines, never what stands there."""
    for path, text in folder.files.items():
        if redactor.contains_secret(path):
            yield Checked(
                "secret",
                "error",
                f"{path}: a secret in its name; the file is neither committed nor sent to a model",
                "rename it; the provider that the secret belongs to should replace it",
            )
        if not redactor.contains_secret(text):
            continue
        numbers = [str(n) for n, line in enumerate(text.split("\n"), start=1) if redactor.contains_secret(line)]
        where = f"{path}, line {', '.join(numbers[:5])}" if numbers else path
        yield Checked(
            "secret",
            "error",
            f"{where}: a secret; the file is neither committed nor sent to a model",
            f"take it out of {path}; the provider that it belongs to should replace it",
        )


def _no_inputs(folder: Folder) -> Iterator[Checked]:
    odd = {path: reason for path, reason in folder.odd.items() if reason not in OF_NO_INTEREST}
    odd |= {path: Odd.MISPLACED for path in folder.files if is_misplaced(path)}
    for path, reason in sorted(odd.items()):
        yield Checked("no_input", "warning", f"{path}: {reason}", NO_INPUT)


def _complaints(folder: Folder, redactor: Redactor, patient: Patient) -> Iterator[Checked]:
    """Judge what stands as if a run had written all of it: what is a person's is nobody's fault, and told here."""
    if not folder.text(MEMORY_FILE).strip():
        return
    clean = Folder({path: redactor.clean(text) for path, text in folder.files.items()})
    budget = summary_budget(patient.settings.recall.max_tokens)
    verdict = judge(before=Folder(), after=clean, removed_threads=(), max_summary_bytes=budget, redactor=redactor)
    for complaint in verdict.complaints:
        remedy = "mend it if it is yours; the next consolidation may mend it, and never fails for it"
        yield Checked("memory_form", "info", complaint, remedy)
