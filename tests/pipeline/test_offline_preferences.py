"""What a person wants: quotes with their situation, said once, and replaced by what they said later."""

import pytest

from memoryd.pipeline.offline_phrases import Voice
from memoryd.pipeline.offline_preferences import Preference, Quote, merged, preferences_of
from memoryd.pipeline.offline_subjects import replaces, terms_of
from tests.support.offline_sessions import CWD, final, flat, human, run


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Always use npm here.", "Actually use pnpm instead of npm from now on."),
        (
            "Use CSS modules for styling.",
            "I changed my mind about the styling: let's use Tailwind instead of CSS modules.",
        ),
        ("Always add comments.", "Don't add comments."),
        ("Never squash commits.", "Always squash commits before merging."),
        ("Indent YAML files with 2 spaces.", "Indent YAML files with 4 spaces."),
        ("Write commit messages in German.", "Write commit messages in English."),
        ("Keep the release notes in docs/notes.", "On second thought keep the release notes in CHANGELOG.md."),
        ("Immer npm verwenden.", "Ab jetzt pnpm statt npm verwenden."),
        ("Use the old API client", "We no longer use the old API client"),
    ],
)
def test_a_later_statement_on_the_same_subject_replaces_the_earlier(earlier: str, later: str) -> None:
    assert replaces(later, earlier)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Always run the tests before committing.", "Never push to main."),
        ("Always run the tests before committing.", "Don't commit without running the linter."),
        ("Keep commit messages under 60 characters.", "From now on write commit messages in German."),
        ("Use pytest.", "Use ruff."),
        ("Please always use types.", "Please always use docstrings."),
        ("", "Use ruff."),
    ],
)
def test_statements_on_different_subjects_both_hold(earlier: str, later: str) -> None:
    assert not replaces(later, earlier)


def test_the_terms_of_a_statement_leave_out_what_every_statement_says() -> None:
    assert terms_of("Please always run the Tests in src/app.py with C++, don't mock buses") == [
        "test",
        "src/app.py",
        "c+",
        "mock",
        "buse",
    ]


def test_a_correction_says_what_it_answered() -> None:
    items = flat(
        human("Install it."),
        run("ls -la"),
        run("npm install"),
        human("No, we use pnpm."),
        final("Okay. The tests use mocks now."),
        human("Don't mock the database."),
        human("Stop mocking the clock."),
    )

    assert [one.situation for one in preferences_of(items, cwd=CWD)] == [
        "the agent had run `npm install`",
        'the agent had said "The tests use mocks now."',
        f"working in {CWD}",
    ]


def test_a_rule_is_said_of_its_directory_also_when_that_is_unknown() -> None:
    items = flat(final("Good morning to you."), human("Always run make."))

    assert [one.situation for one in preferences_of(items, cwd=CWD)] == [f"working in {CWD}"]
    assert [one.situation for one in preferences_of(items, cwd=None)] == ["working"]


def test_a_changed_mind_keeps_all_quotes_in_order_and_the_last_one_holds() -> None:
    items = flat(
        human("Always use npm."),
        human("Use yarn instead of npm."),
        human("Actually, use pnpm instead of yarn."),
    )

    (preference,) = preferences_of(items, cwd=CWD)

    assert [quote.text for quote in preference.quotes] == [
        "Always use npm.",
        "Use yarn instead of npm.",
        "Actually, use pnpm instead of yarn.",
    ]
    assert preference.default == "use pnpm instead of yarn"


def test_sentences_of_one_message_do_not_replace_each_other() -> None:
    items = [human("Stop using autogenerate. Remember that autogenerate drops indexes.")]

    assert len(preferences_of(items, cwd=CWD)) == 2


def test_what_is_said_twice_counts_once_and_cites_both() -> None:
    def said(text: str, task: int) -> Preference:
        return Preference("working", (Quote(Voice.SAID, text),), (task,))

    (preference,) = merged([[said("Always run make.", 1)], [said("always run make", 3), said("Always run make.", 2)]])

    assert preference == Preference("working", (Quote(Voice.SAID, "Always run make."),), (1, 2, 3))


def test_only_people_have_preferences() -> None:
    items = flat(final("From now on I will always run the tests."), run("echo 'Always use npm.'"))

    assert preferences_of(items, cwd=CWD) == []


def test_of_a_flood_of_rules_the_latest_are_kept() -> None:
    items = [human(f"Always check item{number} of part{number}.") for number in range(50)]

    kept = preferences_of(items, cwd=CWD)

    assert len(kept) == 30
    assert kept[-1].latest.text == "Always check item49 of part49."
