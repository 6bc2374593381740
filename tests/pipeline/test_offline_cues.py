"""Which sentences are lasting preferences, and which are requests, reports, questions and small talk."""

import pytest

from memoryd.pipeline.offline_cues import CUES, Voice, classify, default_of

SAID, ASKED, CORRECTED = Voice.SAID, Voice.ASKED, Voice.CORRECTED

PREFERENCES = [
    ("From now on I prefer that you always run the tests before saying it is done", SAID),
    ("From now on, use uv instead of pip.", SAID),
    ("Always run ruff before you commit.", SAID),
    ("Please always add a changelog line.", ASKED),
    ("Never commit directly to main.", SAID),
    ("I prefer small commits.", SAID),
    ("Prefer composition over inheritance.", SAID),
    ("I'd rather have one long test than three clever ones.", SAID),
    ("Please use pnpm instead of npm.", CORRECTED),
    ("No, use httpx.", CORRECTED),
    ("No. We deploy with make release, never with docker push.", CORRECTED),
    ("No, the staging bucket is called orders-stage-eu.", CORRECTED),
    ("No, the parser must not know the lexer.", CORRECTED),
    ("Actually, let's go with zod for validation.", CORRECTED),
    ("Stop adding comments that repeat the code.", CORRECTED),
    ("Don't add new dependencies without asking.", CORRECTED),
    ("don’t mock the database", CORRECTED),
    ("I said named exports.", CORRECTED),
    ("I told you to keep the public API stable.", CORRECTED),
    ("Remember that the CI runs on Python 3.11.", SAID),
    ("remember: migrations are written by hand", SAID),
    ("Not in utils but in the domain package.", CORRECTED),
    ("We don't use default exports.", SAID),
    ("In this repo we use tabs.", SAID),
    ("Here we use tabs.", SAID),
    ("Our convention is kebab-case file names.", SAID),
    ("Use British spelling in all user-facing texts.", SAID),
    ("For every new endpoint, add a contract test.", SAID),
    ("Can you always show the diff before committing?", ASKED),
    ("Could you please use pathlib instead of os.path from now on?", ASKED),
    ("Would you rename it to x rather than y", ASKED),
    ("I changed my mind, keep the yarn lock file.", CORRECTED),
    ("Let's not use lodash anymore.", CORRECTED),
    ("I want you to always explain the trade-off first.", SAID),
    ("I don't like nested ternaries.", SAID),
    ("Use tabs, not spaces.", SAID),
    ("When you name a branch, always prefix it with the ticket number.", SAID),
    ("Ab jetzt bitte immer mit uv statt pip.", ASKED),
    ("Bitte nutze immer TypeScript.", ASKED),
    ("Nicht in utils, sondern im Domain-Paket.", CORRECTED),
    ("Nein, nimm Postgres.", CORRECTED),
    ("Nimm Postgres statt SQLite.", CORRECTED),
    ("Merk dir, dass wir Tabs nehmen.", SAID),
    ("Désormais, écris les tests avec vitest.", SAID),
    ("Je préfère les petites fonctions.", SAID),
    ("Utilise toujours pnpm.", SAID),
    ("Utilise pnpm plutôt que npm.", CORRECTED),
    ("A partir de ahora usa pnpm.", SAID),
    ("Prefiero commits pequeños.", SAID),
    ("Nunca hagas push a main.", SAID),
    ("Usa pnpm en lugar de npm.", CORRECTED),
]

NO_PREFERENCES = [
    "please fix the bug",
    "Please fix the pagination off-by-one bug in calc.py",
    "Add a search box to the header.",
    "Run the tests.",
    "Rename getUser to fetchUser.",
    "Please make the endpoint return 404.",
    "Can you explain how the cache works?",
    "Can you use the staging database?",
    "What do you prefer?",
    "Do you remember the port?",
    "why does it always fail?",
    "Is it not the parser but the lexer?",
    "We use Postgres 15 in production?",
    "The function should never be called twice, right?",
    "The test always fails on CI.",
    "It never returns.",
    "It returned 500 instead of 404.",
    "which never happens in production",
    "We have a problem with the login page.",
    "It is not working but I don't know why.",
    "it actually works now",
    "No, it still fails with the same error.",
    "Don't push yet.",
    "Don't touch the schema in this PR.",
    "Use the staging profile for this PR instead.",
    "stop the server",
    "I don't know.",
    "I don't remember the port.",
    "Don't worry about it.",
    "Actually that looks good, thanks.",
    "No problem!",
    "no worries, thanks",
    "Hello there",
    "Thanks, that's perfect!",
    "never mind",
    "good morning",
    "Nein danke.",
    "Der Test schlägt immer fehl.",
    "Immer noch kaputt.",
    "",
]


@pytest.mark.parametrize(("sentence", "voice"), PREFERENCES)
def test_a_lasting_preference_is_recognised_with_its_voice(sentence: str, voice: Voice) -> None:
    assert classify(sentence) is voice


@pytest.mark.parametrize("sentence", NO_PREFERENCES)
def test_requests_reports_questions_and_small_talk_are_no_preferences(sentence: str) -> None:
    assert classify(sentence) is None


@pytest.mark.parametrize(
    ("quote", "default"),
    [
        ("From now on, please use uv instead of pip.", "use uv instead of pip"),
        ("No. Use pnpm.", "Use pnpm"),
        ("Actually, I said: named exports!", "named exports"),
        ("Stop adding comments.", "Stop adding comments"),
        ("no longer use npm", "no longer use npm"),
        ("don’t mock the database", "don’t mock the database"),
        ("Ok, don’t mock it.", "don’t mock it"),
        ("No.", "No"),
        ("...", "..."),
    ],
)
def test_a_default_is_the_quote_without_its_lead_in(quote: str, default: str) -> None:
    assert default_of(quote) == default
    assert default in quote


def test_cues_have_names_of_their_own() -> None:
    assert len({cue.name for cue in CUES}) == len(CUES)
