"""Whether the result of a consolidation may be published; only what the run changed or added is judged."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from memoryd.ledger.sayings import Said
from memoryd.redact import Redactor
from memoryd.workspace import checks_evidence, checks_form, checks_said, checks_text
from memoryd.workspace.comparison import compare, is_writable
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import (
    AD_HOC_INSTRUCTIONS,
    DIFF_FILE,
    MEMORY_FILE,
    RAW_MEMORIES,
    ROLLOUT_SUMMARIES,
    SKILLS,
    SUMMARY_FILE,
)
from memoryd.workspace.summary import VERSION_LINE

NOBODYS: Final[Mapping[str, Collection[str]]] = {}
NOTHING_SAID: Final[Mapping[str, Said]] = {}
MAX_COMPLAINTS: Final = 40
"""More would only crowd the context of the model that has to mend them; it can ask again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`complaints` reject the result, a sentence each; `strays` are paths that are removed and reject nothing."""

    complaints: tuple[str, ...]
    strays: tuple[str, ...] = ()


def judge(
    *,
    before: Folder,
    after: Folder,
    removed_threads: Collection[str],
    max_summary_bytes: int,
    redactor: Redactor,
    persons: Mapping[str, Collection[str]] = NOBODYS,
    said: Mapping[str, Said] = NOTHING_SAID,
) -> Verdict:
    """Judge a run: `before` is the staged copy (Staging.base), `after` what stands in Staging.work.

    `persons` are the lines of each file that are a person's: their form and length is nobody's complaint.
    `said` tells who spoke the words of each session's preference signals. `removed_threads` are the sessions that this
    run no longer selects. Claims that vanished are a matter of their own
    (`vanished_claims`).
    """
    compared = compare(before, after, removed_threads, persons, said)
    complaints = [
        *checks_form.handbook_exists(compared),
        *checks_form.summary_exists(compared),
        *checks_text.has_no_secret(compared, redactor),
        *checks_form.handbook_follows_structure(compared),
        *checks_form.summary_follows_structure(compared),
        *checks_form.summary_keeps_budget(compared, max_summary_bytes),
        *checks_form.skills_follow_structure(compared),
        *checks_text.has_no_placeholder(compared),
        *checks_evidence.named_summaries_exist(compared),
        *checks_evidence.no_claim_outlives_its_sessions(compared),
        *checks_said.no_preference_is_a_tools(compared),
        *checks_evidence.handbook_keeps_its_substance(compared),
        *checks_evidence.every_group_is_reached(compared),
    ]
    return Verdict(_bounded(complaints), strays(before, after))


def vanished_claims(*, before: Folder, after: Folder, removed_threads: Collection[str]) -> tuple[str, ...]:
    """Return a complaint for each claim that vanished with live evidence; the caller says it once."""
    return checks_evidence.vanished_claims(compare(before, after, removed_threads))


def artefacts_stand(folder: Folder) -> tuple[str, ...]:
    """Say what keeps a folder in which nothing changed from being left alone, a sentence each."""
    complaints = [f"{MEMORY_FILE} is missing or empty"] if not folder.text(MEMORY_FILE).strip() else []
    if folder.text(SUMMARY_FILE).split("\n", 1)[0].rstrip("\r") != VERSION_LINE:
        complaints.append(f"{SUMMARY_FILE} is missing or does not begin with `{VERSION_LINE}`")
    return tuple(complaints)


def strays(before: Folder, after: Folder) -> tuple[str, ...]:
    """Return what a run left where nothing of its kind belongs: odd entries, and new files outside the known places."""
    misplaced = (path for path in after.files if path not in before.files and not _belongs(path))
    return tuple(sorted({*after.odd, *misplaced}))


def _belongs(path: str) -> bool:
    if path in (RAW_MEMORIES, DIFF_FILE, AD_HOC_INSTRUCTIONS):
        return True
    folder, _, name = path.partition("/")
    if folder == ROLLOUT_SUMMARIES:
        return name.endswith(".md") and "/" not in name
    return is_writable(path) and (folder != SKILLS or "/" in name)


def _bounded(complaints: list[str]) -> tuple[str, ...]:
    if len(complaints) <= MAX_COMPLAINTS:
        return tuple(complaints)
    rest = len(complaints) - MAX_COMPLAINTS
    return (*complaints[:MAX_COMPLAINTS], f"and {rest} complaints more, which are listed when these are mended")
