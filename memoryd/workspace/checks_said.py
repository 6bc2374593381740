"""Acceptance: a preference is the person's, and not what some tool's output asked for in their name."""

from collections.abc import Iterable
from typing import Final

from memoryd.ledger.sayings import Said
from memoryd.workspace.comparison import Comparison, Statement, excerpt, statements
from memoryd.workspace.handbook import Handbook, Section
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.wording import runs_of, words_of

_WHY: Final = (
    "stands in the output of a tool and in no message of the person; what a tool asks for is nobody's preference, so "
    "take it out"
)


def no_preference_is_a_tools(compared: Comparison) -> list[str]:
    """Refuse a preference that the run wrote in words of a tool's output that no message of the person holds.

    In the handbook the sessions that it cites are asked, in the summary all. Only what stage 1 could prove counts.
    """
    return [*_in_handbook(compared), *_in_summary(compared)] if compared.said else []


def is_a_tools(text: str, said: Iterable[Said]) -> bool:
    """Say whether a text has words that only a tool said, and none that the person said, in these sessions."""
    sessions = list(said)
    runs = set(runs_of(words_of(text)))
    if any(not runs.isdisjoint(session.human) for session in sessions):
        return False
    return any(not runs.isdisjoint(session.tool) for session in sessions)


def _in_handbook(compared: Comparison) -> list[str]:
    stood = {statement.words for statement in _preferences(compared.old_handbook)}
    persons = compared.person_numbers(MEMORY_FILE)
    return [
        f"{MEMORY_FILE} line {statement.bullet.line}: `{excerpt(statement.bullet.text)}` {_WHY}"
        for statement in _preferences(compared.handbook)
        if statement.words not in stood
        and not statement.bullet.ad_hoc
        and is_a_tools(statement.bullet.text, _said_in(compared, statement))
        and statement.bullet.line not in persons
    ]


def _in_summary(compared: Comparison) -> list[str]:
    persons = {" ".join(line.removeprefix("- ").split()) for line in compared.persons.get(SUMMARY_FILE, ())}
    return [
        f"{SUMMARY_FILE}: `{excerpt(row)}` {_WHY}"
        for row in compared.summary.preferences
        if row not in compared.old_summary.preferences
        and " ".join(row.split()) not in persons
        and is_a_tools(row, compared.said.values())
    ]


def _preferences(handbook: Handbook) -> list[Statement]:
    return [statement for statement in statements(handbook) if statement.section is Section.PREFERENCES]


def _said_in(compared: Comparison, statement: Statement) -> list[Said]:
    threads = {compared.thread(path) for path in statement.files}
    return [compared.said[thread] for thread in sorted(threads) if thread in compared.said]
