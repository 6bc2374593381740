"""Acceptance: the form of MEMORY.md, memory_summary.md and skills."""

import re
from typing import Final

from memoryd.text import byte_length
from memoryd.workspace.comparison import Comparison, new_problems
from memoryd.workspace.layout import MEMORY_FILE, ROLLOUT_SUMMARIES, SKILLS, SUMMARY_FILE
from memoryd.workspace.markdown import Problem
from memoryd.workspace.summary import MAX_PROFILE_WORDS, VERSION_LINE, profile_words

MAX_SKILL_LINES: Final = 500
_SKILL_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")
_FRONTMATTER: Final = re.compile(r"---\n(.*?)\n---(?:\n|$)", re.DOTALL)


def handbook_exists(compared: Comparison) -> list[str]:
    """MEMORY.md must be there, hold something, and hold task groups where there are sessions to remember."""
    if MEMORY_FILE not in compared.after.files:
        return [_missing(compared, MEMORY_FILE)]
    if not compared.after.text(MEMORY_FILE).strip():
        return [f"{MEMORY_FILE} is empty; write what the sessions taught"]
    has_sessions = any(path.startswith(f"{ROLLOUT_SUMMARIES}/") for path in compared.after.files)
    if has_sessions and not compared.handbook.groups:
        return [f"{MEMORY_FILE} has no `# Task Group:` block although there are sessions to remember"]
    return []


def handbook_follows_structure(compared: Comparison) -> list[str]:
    """What the run wrote in MEMORY.md must follow the structure of the file."""
    return _complaints(
        compared,
        MEMORY_FILE,
        new_problems(
            compared.before.text(MEMORY_FILE),
            compared.old_handbook.problems,
            compared.after.text(MEMORY_FILE),
            compared.handbook.problems,
        ),
    )


def summary_exists(compared: Comparison) -> list[str]:
    """memory_summary.md must be there and begin with its version."""
    if SUMMARY_FILE not in compared.after.files:
        return [_missing(compared, SUMMARY_FILE)]
    first = compared.after.text(SUMMARY_FILE).split("\n", 1)[0]
    if first != VERSION_LINE and compared.is_changed(SUMMARY_FILE):
        return [f"{SUMMARY_FILE} must begin with a line that is exactly `{VERSION_LINE}`"]
    return []


def summary_follows_structure(compared: Comparison) -> list[str]:
    """What the run wrote in memory_summary.md must follow the structure of the file."""
    problems = new_problems(
        compared.before.text(SUMMARY_FILE),
        compared.old_summary.problems,
        compared.after.text(SUMMARY_FILE),
        (problem for problem in compared.summary.problems if f"exactly `{VERSION_LINE}`" not in problem.message),
    )
    return _complaints(compared, SUMMARY_FILE, problems) if SUMMARY_FILE in compared.after.files else []


def summary_keeps_budget(compared: Comparison, max_bytes: int) -> list[str]:
    """memory_summary.md and its profile must not grow beyond their limits; what was too long may only shrink.

    A person's own lines do not count.
    """
    complaints = []
    size, old_size = (byte_length(folder.text(SUMMARY_FILE)) for folder in (compared.after, compared.before))
    size -= sum(byte_length(row) + 1 for row in compared.person_lines(SUMMARY_FILE))
    if size > max(max_bytes, old_size):
        complaints.append(f"{SUMMARY_FILE} has {size} bytes; at most {max_bytes} are allowed, so shorten it")
    words, old_words = profile_words(compared.summary), profile_words(compared.old_summary)
    words -= sum(len(row.split()) for row in compared.summary.profile if row in compared.persons.get(SUMMARY_FILE, ()))
    if words > max(MAX_PROFILE_WORDS, old_words):
        complaints.append(f"the User Profile has {words} words; at most {MAX_PROFILE_WORDS} are allowed")
    return complaints


def skills_follow_structure(compared: Comparison) -> list[str]:
    """A SKILL.md that the run wrote must have a usable frontmatter and a readable length."""
    complaints = []
    for path in compared.written():
        if path.startswith(f"{SKILLS}/") and path.endswith("/SKILL.md"):
            complaints += [f"{path}: {complaint}" for complaint in _skill_complaints(path, compared.after.text(path))]
    return complaints


def _skill_complaints(path: str, text: str) -> list[str]:
    folder = path.split("/")[1]
    match = _FRONTMATTER.match(text)
    rows = [line.partition(":") for line in (match[1] if match else "").split("\n")]
    fields = {name.strip(): value.strip().strip("\"'") for name, _, value in rows}
    complaints = []
    if not _SKILL_NAME.fullmatch(fields.get("name", "")) or fields["name"] != folder:
        complaints.append(f"its frontmatter needs `name: {folder}` (lower-case letters, digits, hyphens; at most 64)")
    if not fields.get("description"):
        complaints.append("its frontmatter needs a `description:`")
    if text.count("\n") >= MAX_SKILL_LINES:
        complaints.append(f"it must have fewer than {MAX_SKILL_LINES} lines")
    return complaints


def _missing(compared: Comparison, path: str) -> str:
    odd = compared.after.odd.get(path)
    return f"{path} is {odd}; write it anew" if odd else f"{path} is missing; write it"


def _complaints(compared: Comparison, path: str, problems: list[Problem]) -> list[str]:
    persons = compared.person_numbers(path)
    return [f"{path} line {problem.line}: {problem.message}" for problem in problems if problem.line not in persons]
