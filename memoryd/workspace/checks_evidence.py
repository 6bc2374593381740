"""Acceptance: whether what the memory says rests on sessions that are there, and what it may not lose."""

from collections import defaultdict

from memoryd.text import byte_length
from memoryd.workspace.comparison import (
    Comparison,
    Statement,
    excerpt,
    handbook_files,
    statements,
)
from memoryd.workspace.handbook import Section
from memoryd.workspace.layout import MEMORY_FILE
from memoryd.workspace.summary import index_of


def named_summaries_exist(compared: Comparison) -> list[str]:
    """A task may only name rollout summaries that are there; rows that were dangling before are not judged."""
    stood_dangling = handbook_files(compared.old_handbook) - compared.before.files.keys()
    return [
        f"{MEMORY_FILE} line {row.line}: {row.path} does not exist; name only files of rollout_summaries/"
        for group in compared.handbook.groups
        for task in group.tasks
        for row in task.summary_files
        if row.path not in compared.after.files and row.path not in stood_dangling
    ]


def no_claim_outlives_its_sessions(compared: Comparison) -> list[str]:
    """A statement goes when every session that supported it is gone.

    Citing a task of another session instead is no way out, unless that session is new or changed in this run: an old
    one did not begin to support the statement because the real one was removed.
    """
    supported = _support_before(compared)
    known = compared.before.files.keys() | compared.after.files.keys()
    complaints = []
    for statement in statements(compared.handbook):
        files = statement.files & known
        rests_on_nothing = bool(files) and not any(compared.is_live(path) for path in files)
        if rests_on_nothing or _is_reattributed(compared, statement, supported):
            complaints.append(
                f"{MEMORY_FILE} line {statement.bullet.line}: every session that supported "
                f"`{excerpt(statement.bullet.text)}` is gone; remove it"
            )
    return complaints


def handbook_keeps_its_substance(compared: Comparison) -> list[str]:
    """The handbook may lose more than half of its bytes only with half of the sessions that support it."""
    old_size, size = (byte_length(folder.text(MEMORY_FILE)) for folder in (compared.before, compared.after))
    supporting = handbook_files(compared.old_handbook) & compared.before.files.keys()
    removed = [path for path in supporting if not compared.is_live(path)]
    if size * 2 >= old_size or (supporting and len(removed) * 2 >= len(supporting)):
        return []
    sessions = f"{len(removed)} of its {len(supporting)} sessions were removed"
    return [f"{MEMORY_FILE} shrank from {old_size} to {size} bytes although only {sessions}; keep what still holds"]


def every_group_is_reached(compared: Comparison) -> list[str]:
    """Each task group must be found from the summary: by a topic of its title or a scope of its cwd."""
    old_index, index = index_of(compared.old_summary), index_of(compared.summary)
    unreached_before = {
        group.title.casefold()
        for group in compared.old_handbook.groups
        if not old_index.reaches(title=group.title, cwd=group.cwd)
    }
    return [
        f"{MEMORY_FILE} line {group.line}: the task group `{excerpt(group.title)}` cannot be reached from the summary; "
        f"give it a topic of exactly that name, or a `### {group.cwd or '<its cwd>'}`"
        for group in compared.handbook.groups
        if group.title.casefold() not in unreached_before and not index.reaches(title=group.title, cwd=group.cwd)
    ]


def vanished_claims(compared: Comparison) -> tuple[str, ...]:
    """Name the statements that are gone although a session that supports them is still there.

    Gone: no bullet of the section of that name cites a task of such a session. Said once to the writer; if it stays
    with its decision, the claim is closed as dropped.
    """
    cited: defaultdict[Section, set[str]] = defaultdict(set)
    for statement in statements(compared.handbook):
        cited[statement.section] |= statement.files
    complaints = []
    for statement in statements(compared.old_handbook):
        live = {path for path in statement.files & compared.before.files.keys() if compared.is_live(path)}
        if live and not live & cited[statement.section]:
            complaints.append(
                f"`{excerpt(statement.bullet.text)}` ({statement.section}, {excerpt(statement.group.title)}) is gone, "
                f"but {', '.join(sorted(live))} still supports it; keep it, or leave it out again to drop it"
            )
    return tuple(complaints)


def _support_before(compared: Comparison) -> dict[str, set[str]]:
    """Return, for each statement that stood before, the rollout summaries that supported it."""
    supported: defaultdict[str, set[str]] = defaultdict(set)
    for statement in statements(compared.old_handbook):
        supported[statement.words] |= statement.files & compared.before.files.keys()
    return supported


def _is_reattributed(compared: Comparison, statement: Statement, supported: dict[str, set[str]]) -> bool:
    files = supported.get(statement.words)
    if not files or statement.bullet.ad_hoc or any(compared.is_live(path) for path in files):
        return False
    return not any(compared.is_fresh(path) for path in statement.files if compared.is_live(path))
