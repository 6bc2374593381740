from pathlib import PurePath
from typing import Any

import pytest

from memoryd.config import Discover, Sources
from memoryd.pipeline.eligibility import (
    MEANING,
    UNREADABLE,
    Exclusion,
    ReadingFound,
    Traits,
    Waiting,
    exclusion,
    matches_any,
    waiting,
    window,
)

HOME = PurePath("/home/dev/.memoryd")
NOW = 1_700_000_000.0
DAY = 86_400.0
HOUR = 3_600.0
MONTH = 30 * DAY


def judged(*, sources: dict[str, Any] | None = None, **traits: Any) -> Exclusion | None:
    given = {"kind": "interactive", "cwd": "/home/dev/app", "memory_mode": "enabled"} | traits
    return exclusion(
        Traits(**given),
        sources=Sources(**(sources or {})),
        memoryd_home=HOME,
        user_homes=(PurePath("/home/dev"), PurePath("/vol/home/dev")),
    )


def test_an_interactive_session_is_eligible() -> None:
    assert judged() is None


@pytest.mark.parametrize(
    ("traits", "reason"),
    [
        ({"kind": "subagent"}, Exclusion.SUBAGENT),
        ({"kind": "memory_run"}, Exclusion.MEMORY_RUN),
        ({"kind": "noninteractive"}, Exclusion.NONINTERACTIVE),
        ({"ephemeral": True}, Exclusion.EPHEMERAL),
        ({"memory_mode": "disabled"}, Exclusion.MEMORY_DISABLED),
        ({"memory_mode": "polluted"}, Exclusion.POLLUTED),
        ({"cwd": "/home/dev/.memoryd/staging/x"}, Exclusion.OWN_RUN),
    ],
)
def test_each_kind_of_session_that_is_no_persons_is_left_out_with_its_reason(
    traits: dict[str, Any], reason: Exclusion
) -> None:
    assert judged(**traits) is reason


@pytest.mark.parametrize("cwd", ["/home/dev", "/home/dev/", "/vol/home/dev", "/"])
def test_the_home_folder_and_the_root_are_no_project_unless_the_settings_say_so(cwd: str) -> None:
    assert judged(cwd=cwd) is Exclusion.HOME_DIRECTORY
    assert judged(cwd=cwd, sources={"include_home": True}) is None


@pytest.mark.parametrize("cwd", ["/home/dev/app", "/home", "/srv", None])
def test_any_other_folder_is_a_project(cwd: str | None) -> None:
    assert judged(cwd=cwd) is None


@pytest.mark.parametrize(
    ("originator", "globs", "left_out"),
    [
        ("claude-code-github-action", None, True),
        ("nightly-Bot", ["*-bot"], True),
        ("nightly-bot", [], False),
        ("codex_cli_rs", None, False),
        (None, ["*"], False),
    ],
)
def test_prompts_of_machines_are_known_by_who_began_the_session(
    originator: str | None, globs: list[str] | None, left_out: bool
) -> None:
    sources = {} if globs is None else {"exclude_originators": globs}
    assert judged(originator=originator, sources=sources) is (Exclusion.MACHINE_PROMPTS if left_out else None)


@pytest.mark.parametrize(
    ("traits", "reason"),
    [
        ({"kind": "subagent"}, None),
        ({"cwd": "/home/dev"}, None),
        ({"ephemeral": True}, None),
        ({"kind": "memory_run"}, Exclusion.MEMORY_RUN),
        ({"cwd": "/home/dev/.memoryd/memories"}, Exclusion.OWN_RUN),
    ],
)
def test_a_persons_wish_for_a_session_is_above_all_but_the_rules_against_loops(
    traits: dict[str, Any], reason: Exclusion | None
) -> None:
    assert judged(is_wanted=True, **traits) is reason


def test_noninteractive_runs_count_when_the_settings_say_so() -> None:
    assert judged(kind="noninteractive", sources={"include_noninteractive": True}) is None


@pytest.mark.parametrize(
    ("cwd", "globs", "matched"),
    [
        ("/home/dev/secret", ["/home/dev/secret"], True),
        ("/home/dev/secret/deep/down", ["/home/dev/secret"], True),
        ("/home/dev/secret/deep", ["/home/*/secret/"], True),
        ("/home/dev/secretary", ["/home/dev/secret"], False),
        ("/anything", ["/*"], True),
        (None, ["/*"], False),
        ("/home/dev", [], False),
    ],
)
def test_a_glob_excludes_a_directory_and_what_lies_below_it(cwd: str | None, globs: list[str], matched: bool) -> None:
    assert matches_any(cwd, globs) is matched


LINKS = {"/home/dev/clients": "/mnt/data/[old] clients", "/home/dev/.memoryd": "/mnt/memoryd", "/u": "/home/dev"}


def follow(path: str) -> str:
    """Follow LINKS."""
    for name, target in LINKS.items():
        if PurePath(path).is_relative_to(name):
            return follow(str(PurePath(target, PurePath(path).relative_to(name))))
    return path


@pytest.mark.parametrize(
    ("cwd", "globs", "reason"),
    [
        ("/mnt/data/[old] clients/a", ["/home/dev/clients"], Exclusion.EXCLUDED_CWD),
        ("/mnt/data/[old] clients/a/b", ["/home/dev/clients/*"], Exclusion.EXCLUDED_CWD),
        ("/home/dev/clients/a", ["/mnt/data/*clients"], Exclusion.EXCLUDED_CWD),
        ("/u/clients/a", ["/home/dev/clients"], Exclusion.EXCLUDED_CWD),
        ("/mnt/data/[old] clients", ["*/clients/x", "clients"], None),
        ("/mnt/memoryd/staging/x", [], Exclusion.OWN_RUN),
        ("/u", [], Exclusion.HOME_DIRECTORY),
        ("C:\\Users\\x", ["/home/dev/clients"], None),
    ],
)
def test_a_link_and_what_it_leads_to_are_one_folder(cwd: str, globs: list[str], reason: Exclusion | None) -> None:
    """Agents record their directory as it lies, or as they were told; people name the one they know."""
    found = exclusion(
        Traits("interactive", cwd, "enabled"),
        sources=Sources(exclude_cwd=tuple(globs)),
        memoryd_home=HOME,
        user_homes=(PurePath("/home/dev"),),
        as_it_lies=follow,
    )
    assert found == reason


@pytest.mark.parametrize(
    ("age_hours", "backfill", "expected"),
    [
        (1, "recent", Waiting.TOO_FRESH),
        (7, "recent", None),
        (7, "ask", None),
        (30, "ask", Waiting.CONSENT),
        (30, "recent", None),
        (30, "all", None),
        (24 * 11, "recent", Waiting.TOO_OLD),
        (24 * 11, "ask", Waiting.TOO_OLD),
        (24 * 11, "all", None),
        (24 * 31, "all", Waiting.TOO_OLD),
    ],
)
def test_age_and_consent_decide_when_a_session_is_due(
    age_hours: float, backfill: str, expected: Waiting | None
) -> None:
    when = window(
        now=NOW, discover=Discover(), useful_from=NOW - MONTH, first_start_at=int(NOW - DAY), backfill=backfill
    )
    assert waiting(NOW - age_hours * HOUR, when) is expected


def test_max_age_holds_for_what_came_after_the_first_start_even_with_all_history() -> None:
    when = window(
        now=NOW, discover=Discover(), useful_from=NOW - MONTH, first_start_at=int(NOW - 30 * DAY), backfill="all"
    )
    assert waiting(NOW - 11 * DAY, when) is Waiting.TOO_OLD


def test_now_ignores_idle_time() -> None:
    when = window(
        now=NOW, discover=Discover(), useful_from=NOW - MONTH, first_start_at=0, backfill="recent", ignore_idle=True
    )
    for age in (1, 0, -1, -1000 * DAY):
        assert waiting(NOW - age, when) is None


@pytest.mark.parametrize("backfill", ["ask", "recent", "all"])
def test_the_query_s_bound_never_cuts_off_a_session_that_is_due(backfill: str) -> None:
    first_start = int(NOW - 5 * DAY)
    when = window(now=NOW, discover=Discover(), useful_from=NOW - MONTH, first_start_at=first_start, backfill=backfill)
    due = [age for age in range(40) if waiting(NOW - age * DAY, when) is None]
    assert all(NOW - age * DAY >= when.oldest for age in due)


def test_every_reason_has_a_meaning_that_explain_can_print() -> None:
    assert {*Exclusion, *ReadingFound, *Waiting, UNREADABLE} == set(MEANING)
