"""What a question finds: by words that are partly the same, in the right order, on the line where it stands now."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.errors import UsageError
from memoryd.ledger import outputs
from memoryd.recall import search as searching
from memoryd.recall.search import Kind, Question, Ranker, search
from memoryd.recall.search_words import Term
from tests.ledger.factories import an_output
from tests.recall.search_folder import DAY, NOW, THREAD, SearchFolder, a_group, a_search_folder, a_summary


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SearchFolder]:
    with a_search_folder(tmp_path) as made:
        yield made


@pytest.fixture
def shop(folder: SearchFolder) -> SearchFolder:
    """A folder with one project's handbook, a summary and a skill."""
    folder.write(
        "MEMORY.md",
        a_group(
            "install packages with uv, never with pip",
            "the database listens on port 5434 in tests [Task 1] [verified]",
            "retries are set in max_retry_count of src/http_client.py [Task 1] [inferred]",
            "ask before a force push [ad-hoc note]",
            "Grüße werden auf Deutsch geschrieben, 記憶を使う",
        ),
    )
    folder.write("rollout_summaries/a.md", a_summary("# Ran it\n\nKey steps:\n- the database was moved to port 5434"))
    folder.write(
        "skills/ship/SKILL.md", "---\nname: ship\ndescription: ship the shop\n---\n\n# Ship\n\n1. make it so\n"
    )
    folder.refresh()
    return folder


def test_a_hit_says_what_it_is_where_it_stands_how_it_is_founded_and_from_whom(shop: SearchFolder) -> None:
    hit = shop.find("which port is the database on?")[0]

    row = (shop.home.memories / hit.path).read_text().split("\n")[hit.line - 1]
    assert row == "- the database listens on port 5434 in tests [Task 1] [verified]"
    assert (hit.kind, hit.scope, hit.mark, hit.section) == (Kind.BULLET, "/src/shop", "verified", "User preferences")
    assert (hit.text, hit.snippet) == ("the database listens on port 5434 in tests",) * 2
    assert (hit.threads, hit.end_line) == ((THREAD,), hit.line)
    assert hit.updated_at == 1_795_168_800
    assert hit.score > 0


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("how do I install a package?", "install packages with uv, never with pip"),
        (
            "What should I use for the installation of a new package, please?",
            "install packages with uv, never with pip",
        ),
        ("maxRetryCount", "retries are set in max_retry_count of src/http_client.py"),
        ("max-retry-count", "retries are set in max_retry_count of src/http_client.py"),
        ("where is `src/http_client.py` configured", "retries are set in max_retry_count of src/http_client.py"),
        ("HttpClient", "retries are set in max_retry_count of src/http_client.py"),
        ("GRUSSE AUF DEUTSCH", "Grüße werden auf Deutsch geschrieben, 記憶を使う"),
        ("gruße", "Grüße werden auf Deutsch geschrieben, 記憶を使う"),
        ("記憶", "Grüße werden auf Deutsch geschrieben, 記憶を使う"),
        ("憶を使", "Grüße werden auf Deutsch geschrieben, 記憶を使う"),
        ("databas", "the database listens on port 5434 in tests"),
        ("may I force-push", "ask before a force push"),
    ],
)
def test_words_that_are_only_partly_the_same_find(shop: SearchFolder, question: str, found: str) -> None:
    assert shop.texts(question, kinds=frozenset({Kind.BULLET}))[:1] == [found]


def test_the_headings_and_keywords_above_a_statement_find_it(folder: SearchFolder) -> None:
    folder.write("MEMORY.md", a_group("run `make ship`", title="billing worker", keywords="staging, helm"))
    folder.refresh()

    assert folder.texts("staging of the billing worker", kinds=frozenset({Kind.BULLET})) == ["run `make ship`"]


def test_each_kind_is_found_and_can_be_asked_for_alone(shop: SearchFolder) -> None:
    kinds = {hit.kind for word in ("database", "shop", "ship") for hit in shop.find(word)}

    assert kinds == set(Kind)
    assert {hit.kind for hit in shop.find("database ship", kinds=frozenset({Kind.SKILL}))} == {Kind.SKILL}
    assert {hit.path for hit in shop.find("database", kinds=frozenset({Kind.SUMMARY}))} == {"rollout_summaries/a.md"}


def test_what_holds_now_comes_before_what_a_session_saw(shop: SearchFolder) -> None:
    assert [hit.kind for hit in shop.find("which port does the database use")][:2] == [Kind.BULLET, Kind.SUMMARY]


def test_a_mark_asks_for_bullets_that_are_founded_so(shop: SearchFolder) -> None:
    asked = "database packages retries force push"

    assert shop.texts(asked, marks=frozenset({"verified"})) == ["the database listens on port 5434 in tests"]
    assert shop.texts(asked, marks=frozenset({"ad-hoc note"})) == ["ask before a force push"]
    assert {hit.mark for hit in shop.find(asked, marks=frozenset({"stated", "inferred"}))} == {"stated", "inferred"}


def test_an_age_leaves_out_what_is_older(folder: SearchFolder) -> None:
    folder.write("rollout_summaries/a.md", a_summary("tabs are wanted", updated_at="2026-11-20"))
    folder.write("rollout_summaries/b.md", a_summary("tabs are loathed", updated_at="2026-01-20", thread="b"))
    folder.refresh()

    assert folder.texts("tabs") == ["tabs are wanted", "tabs are loathed"]
    assert folder.texts("tabs", max_age_days=30) == ["tabs are wanted"]
    assert folder.texts("tabs", max_age_days=1) == []


@pytest.fixture
def projects(folder: SearchFolder) -> SearchFolder:
    """Three groups that say much the same in two projects and everywhere."""
    folder.write(
        "MEMORY.md",
        "\n".join(
            [
                a_group("tests of the worker run with nox, says the runbook", cwd="/src/shop", title="shop"),
                a_group("tests of the worker run with tox", cwd="/src/bank", title="bank"),
                a_group("tests of the worker run in a checkout", cwd="any", title="everywhere"),
            ]
        ),
    )
    folder.refresh()
    return folder


def test_the_project_that_is_asked_from_comes_first_and_others_last(projects: SearchFolder) -> None:
    bullets = frozenset({Kind.BULLET})

    at_home = [hit.scope for hit in projects.find("how do tests of the worker run", cwd="/src/shop", kinds=bullets)]
    inside = [hit.scope for hit in projects.find("tests of the worker", cwd="/src/shop/api/v1", kinds=bullets)]

    assert at_home == ["/src/shop", "global", "/src/bank"]
    assert inside[0] == "/src/shop"


def test_a_search_in_a_project_finds_nothing_of_others(projects: SearchFolder) -> None:
    found = projects.find("how do tests of the worker run", cwd="/src/bank", scope="project")

    assert {hit.scope for hit in found} == {"/src/bank", "global"}


def test_a_home_folder_is_no_project_of_what_lies_below_it(folder: SearchFolder) -> None:
    folder.write("MEMORY.md", a_group("tabs at the root", cwd="/"))
    folder.refresh()

    assert folder.texts("tabs", cwd="/src/shop", scope="project") == []
    assert folder.texts("tabs", cwd="/", scope="project") == ["tabs at the root"]


def test_what_was_used_and_what_is_recent_decides_between_what_fits_as_well(folder: SearchFolder) -> None:
    for name, day in (("a", "2026-01-20"), ("b", "2026-01-20"), ("c", "2026-11-20")):
        folder.write(f"rollout_summaries/{name}.md", a_summary(f"use tabs {name}", thread=name, updated_at=day))
    folder.refresh()
    assert folder.texts("use tabs")[0] == "use tabs c"

    outputs.store(folder.conn, an_output("b"), now=NOW)
    for message in range(20):
        outputs.cite(folder.conn, ["b"], str(message), NOW)

    assert folder.texts("use tabs") == ["use tabs b", "use tabs c", "use tabs a"]


def test_a_persons_edit_moves_lines_and_takes_some_away_before_the_index_hears_of_it(shop: SearchFolder) -> None:
    text = (shop.home.memories / "MEMORY.md").read_text()
    shop.write("MEMORY.md", "> mine\n> also mine\n\n" + text.replace("install packages with uv", "I use anything"))

    hit = shop.find("database port")[0]
    row = (shop.home.memories / "MEMORY.md").read_text().split("\n")[hit.line - 1]
    assert "port 5434" in row
    assert shop.texts("install packages with uv", kinds=frozenset({Kind.BULLET})) == []

    shop.refresh()
    assert shop.texts("use anything never pip", kinds=frozenset({Kind.BULLET})) == ["I use anything, never with pip"]


def test_a_passage_of_several_lines_is_found_again_only_whole(shop: SearchFolder) -> None:
    summary = "rollout_summaries/a.md"
    before = shop.find("database moved", kinds=frozenset({Kind.SUMMARY}))[0]
    shop.write(summary, a_summary("# Ran it\n\nMore.\n\nKey steps:\n- the database was moved to port 5434"))
    moved = shop.find("database moved", kinds=frozenset({Kind.SUMMARY}))[0]
    shop.write(summary, a_summary("# Ran it\n\nKey steps:\n- the database was moved to port 9999"))

    assert (moved.line, moved.end_line) == (before.line + 2, before.end_line + 2)
    assert shop.find("database moved", kinds=frozenset({Kind.SUMMARY})) == ()


@pytest.mark.parametrize("how", ["removed", "a folder", "a link"])
def test_what_stood_in_a_file_that_is_none_any_more_is_not_found(shop: SearchFolder, how: str, tmp_path: Path) -> None:
    file = shop.home.memories / "MEMORY.md"
    text = file.read_text()
    file.unlink()
    if how == "a folder":
        file.mkdir()
    elif how == "a link":
        (tmp_path / "elsewhere").write_text(text)
        file.symlink_to(tmp_path / "elsewhere")

    assert shop.find("install packages", kinds=frozenset({Kind.BULLET})) == ()
    shop.refresh()
    assert shop.find("install packages") == ()


def test_the_same_text_in_the_same_place_is_given_once(folder: SearchFolder) -> None:
    folder.write("rollout_summaries/a.md", a_summary("tabs, not spaces"))
    folder.write("rollout_summaries/b.md", a_summary("tabs, not spaces", thread="b"))
    folder.refresh()

    assert folder.texts("tabs") == ["tabs, not spaces"]


def test_a_limit_is_kept_and_none_finds_nothing(shop: SearchFolder) -> None:
    asked = "database packages retries force push"

    assert [len(shop.find(asked, limit=limit)) for limit in (0, 1, 3)] == [0, 1, 3]


@pytest.mark.parametrize("question", ["", "   ", "???", "\0", "\ud800", "\u0301\u200b", "—"])
def test_a_question_without_a_letter_or_a_digit_finds_nothing(shop: SearchFolder, question: str) -> None:
    assert shop.find(question) == ()


def test_an_empty_index_finds_nothing_and_says_so(folder: SearchFolder) -> None:
    assert folder.find("anything") == ()
    assert not searching.has_index(folder.conn)


@pytest.mark.parametrize(
    "asked",
    [
        Question("x", scope="everything"),
        Question("x", scope="project"),
        Question("x", marks=frozenset({"sure"})),
        Question("x", limit=-1),
        Question("x", max_age_days=-1),
        Question("x", max_age_days=float("nan")),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused_with_what_can(folder: SearchFolder, asked: Question) -> None:
    with pytest.raises(UsageError):
        search(folder.conn, folder.home, asked, now=NOW)


def test_a_second_ranker_can_be_fused_in(shop: SearchFolder) -> None:
    """Nothing ships that judges meaning; what it would have to be is a function of the same form."""
    wanted = "ask before a force push"
    (number,) = (row[0] for row in shop.conn.execute("SELECT rowid FROM search_words WHERE text = ?", (wanted,)))

    def by_meaning(_conn: object, _terms: Sequence[Term], _filters: object) -> dict[int, float]:
        return {number: 7.5}

    both: tuple[Ranker, ...] = (searching.by_words, by_meaning)
    hits = search(shop.conn, shop.home, Question("packages"), now=NOW, rankers=both)

    assert shop.texts("packages") == ["install packages with uv, never with pip"]
    assert {hit.text for hit in hits} == {"install packages with uv, never with pip", wanted}


SYNTAX = ["AND", "OR", "NOT", "NEAR", "NEAR(", ")", '"', "'", "*", "^", ":", "-", "+", "{", "}", "text", "place :"]
WORDS = ["a", "uv", "記憶", "maxRetryCount", "src/http_client.py", "\0", "\ud800", "٣", "ª", "𝔘", "ſ", "İ", "e\u0301"]
LONG = ["port", "5434", "the", "x" * 500, "a_b" * 200, "ab" * 3000]
QUERIES = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(SYNTAX + WORDS), max_size=12).map(" ".join),
    st.lists(st.sampled_from(LONG), max_size=60).map(" ".join),
)


@pytest.fixture(scope="module")
def laden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchFolder]:
    with a_search_folder(tmp_path_factory.mktemp("laden")) as made:
        made.write(
            "MEMORY.md", a_group("install packages with uv", "port 5434 記憶 e\u0301 ſ", "src/http_client.py aB c")
        )
        made.refresh()
        yield made


@given(words=QUERIES, limit=st.integers(0, 5), scope=st.sampled_from(["all", "project"]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_question_is_ever_an_error(laden: SearchFolder, words: str, limit: int, scope: str) -> None:
    hits = laden.find(words, limit=limit, scope=scope, cwd="/src/shop")

    assert len(hits) <= limit
    assert all(hit.score >= 0 and hit.snippet for hit in hits)


@given(text=st.text(min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_a_text_is_found_by_itself_if_it_has_a_word_of_its_own(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    line = " ".join(text.encode("utf-8", "ignore").decode().replace("\0", " ").split())
    with a_search_folder(tmp_path_factory.mktemp("own")) as folder:
        folder.write("rollout_summaries/a.md", a_summary(f"qqzz {line}"))
        folder.refresh()

        assert [hit.kind for hit in folder.find(f"qqzz {line}")] == [Kind.SUMMARY]


def test_an_age_of_days_counts_from_now(folder: SearchFolder) -> None:
    folder.write("rollout_summaries/a.md", a_summary("tabs"))
    folder.refresh()
    updated_at = folder.find("tabs")[0].updated_at
    assert updated_at is not None
    age = (NOW - updated_at) / DAY

    assert [len(folder.find("tabs", max_age_days=days)) for days in (age, age - 0.01)] == [1, 0]
