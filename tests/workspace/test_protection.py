import pytest

from memoryd.redact import Redactor
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home
from memoryd.workspace.protection import PersonLine, put_back
from memoryd.workspace.publish import prepare_commit, put_in_place
from memoryd.workspace.staging import stage
from tests.workspace.factories import MEMORY, NOW, files, write_files

MINE = "- never touch the ledger by hand"
CITING = "- the person's view of the tests [Task 2] [stated]"


def run(home: Home, repo: Repository, contents: dict[str, str | None]) -> None:
    """Consolidate: the result is exactly these files, whatever stood before."""
    staging = stage(home, repo, "run", now=NOW, redactor=Redactor())
    write_files(staging.work, {path: text for path, text in contents.items() if text is not None})
    for path in (path for path, text in contents.items() if text is None):
        (staging.work / path).unlink()
    put_in_place(home, repo, prepare_commit(repo, staging, "run\n", now=NOW), staging.base_id)


def handbook(home: Home) -> str:
    return (home.memories / "MEMORY.md").read_text()


def test_a_persons_line_survives_every_run_that_loses_it_until_the_person_removes_it(
    home: Home, repo: Repository
) -> None:
    run(home, repo, dict(files()))
    tabs = "- use tabs, never spaces [Task 1][Task 2] [stated]\n"
    write_files(home.memories, {"MEMORY.md": MEMORY.replace(tabs, f"{MINE}\n{tabs}")})
    for _ in range(3):
        run(home, repo, dict(files()))
        assert handbook(home) == MEMORY.replace(tabs, f"{tabs}{MINE}\n")
    write_files(home.memories, {"MEMORY.md": MEMORY})
    run(home, repo, dict(files()))
    assert handbook(home) == MEMORY


def test_after_a_kill_a_persons_line_is_put_back_once(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    write_files(home.memories, {"MEMORY.md": f"{MEMORY}{MINE}\n"})
    staging = stage(home, repo, "run", now=NOW, redactor=Redactor())
    write_files(staging.work, {"MEMORY.md": MEMORY.replace("Fridays", "Mondays")})
    commit = prepare_commit(repo, staging, "run\n", now=NOW)

    def killed(name: str) -> None:
        if name == "before_refs":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put_in_place(home, repo, commit, staging.base_id, reached=killed)
    put_in_place(home, repo, commit, staging.base_id)
    assert handbook(home) == MEMORY.replace("Fridays", "Mondays") + f"{MINE}\n"


def test_a_persons_line_goes_with_the_last_session_that_it_cites(home: Home, repo: Repository) -> None:
    run(home, repo, dict(files()))
    write_files(home.memories, {"MEMORY.md": f"{MEMORY}{CITING}\n"})
    run(home, repo, dict(files()))
    assert CITING in handbook(home)
    run(home, repo, {**files(), "rollout_summaries/b.md": None})
    assert CITING not in handbook(home)


def test_a_persons_line_in_the_summary_is_kept_and_memoryds_own_lines_are_not(home: Home, repo: Repository) -> None:
    run(home, repo, {"MEMORY.md": "a\nb\n", "memory_summary.md": "v1\n\n## General Tips\n\n- old\n"})
    write_files(home.memories, {"memory_summary.md": "v1\n\n## General Tips\n\n- old\n- mine\n"})
    run(home, repo, {"MEMORY.md": "b\n", "memory_summary.md": "v1\n\n## General Tips\n\n- new\n"})
    assert (home.memories / "memory_summary.md").read_text() == "v1\n\n## General Tips\n\n- new\n- mine\n"
    assert handbook(home) == "b\n"


@pytest.mark.parametrize(
    ("text", "line", "result"),
    [
        ("# A\nx\n\n# B\ny\n", PersonLine(("# A",), "- mine"), "# A\nx\n- mine\n\n# B\ny\n"),
        ("# A\n\n# B\n", PersonLine(("# A", "## C"), "- mine"), "# A\n\n## C\n\n- mine\n\n# B\n"),
        ("# B\ny\n", PersonLine(("# A", "## C"), "- mine"), "# B\ny\n\n# A\n\n## C\n\n- mine\n"),
        ("# B\ny\n", PersonLine((), "> mine"), "> mine\n# B\ny\n"),
        ("v1\n\n# B\n", PersonLine((), "mine"), "v1\nmine\n\n# B\n"),
    ],
)
def test_a_line_goes_to_the_end_of_its_section_and_brings_the_headings_that_are_gone(
    text: str, line: PersonLine, result: str
) -> None:
    assert put_back(text, [line]) == result
