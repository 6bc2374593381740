"""An agent's own program at work: it gets a copy, and three places of its copy are taken back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.agent.caps import AgentCaps
from memoryd.agent.errand import Workplace, run_errand, take_back
from memoryd.agent.files import MAX_TOTAL_FILES
from memoryd.agent.loop import AgentRun, Brief
from memoryd.errors import RateLimited, ResultRejected
from memoryd.llm.question import Answer, Question, Stop, Usage
from tests.support.clock import FakeClock

BRIEF = Brief("m-1", "low", "Keep the memory.", "Here is what changed.")


class Program:
    """Does one thing to its folder each time it is run."""

    def __init__(self, *deeds: Callable[[Path], None], usage: int = 100, clock: FakeClock | None = None) -> None:
        self.deeds = list(deeds)
        self.asked: list[Question] = []
        self.usage = usage
        self.clock = clock

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        assert question.errand is not None
        self.deeds.pop(0)(question.errand.folder)
        return Answer("done", (), (), Usage(self.usage, 1), Stop.COMPLETE, "m-1")

    @property
    def messages(self) -> list[str]:
        return [question.turns[0].text for question in self.asked if hasattr(question.turns[0], "text")]


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    root = tmp_path / "work"
    (root / "skills" / "old").mkdir(parents=True)
    (root / "rollout_summaries").mkdir()
    (root / "MEMORY.md").write_text("the handbook\n")
    (root / "skills" / "old" / "SKILL.md").write_text("a skill\n")
    (root / "raw_memories.md").write_text("evidence\n")
    return Workplace(root, tmp_path / "copy")


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def writes(path: str, text: str = "new\n") -> Callable[[Path], None]:
    def deed(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)

    return deed


def nothing(_folder: Path) -> None:
    pass


async def run(
    place: Workplace, program: Program, *verdicts: tuple[str, ...], caps: AgentCaps | None = None
) -> AgentRun:
    judged = list(verdicts)

    async def finish(_summary: str) -> tuple[str, ...]:
        return judged.pop(0) if judged else ()

    return await run_errand(
        BRIEF,
        ask=program.ask,
        place=place,
        finish=finish,
        repair=lambda complaints: f"Repair: {'; '.join(complaints)}",
        caps=caps or AgentCaps(),
        clock=FakeClock(),
    )


async def test_it_works_in_a_copy_and_its_work_is_taken_back(place: Workplace) -> None:
    program = Program(writes("MEMORY.md"))
    done = await run(place, program)
    assert (done.summary, done.requests, done.usage.input) == ("done", 1, 100)
    errand = program.asked[0].errand
    assert errand is not None
    assert errand.folder == place.copy
    assert files(place.root)["MEMORY.md"] == "new\n"


@pytest.mark.parametrize(
    "path",
    [
        "raw_memories.md",
        "rollout_summaries/x.md",
        "stray.md",
        ".git/config",
        "skills/x.md",
        "skills/Bad Name/SKILL.md",
        "skills/ok/.hidden",
    ],
)
async def test_what_lies_elsewhere_is_not_taken(place: Workplace, path: str) -> None:
    before = files(place.root)
    await run(place, Program(writes(path)))
    assert files(place.root) == before


async def test_new_skills_come_and_removed_ones_go(place: Workplace) -> None:
    def deed(folder: Path) -> None:
        (folder / "skills" / "old" / "SKILL.md").unlink()
        writes("skills/fresh/SKILL.md")(folder)

    await run(place, Program(deed))
    assert {path for path in files(place.root) if path.startswith("skills")} == {"skills/fresh/SKILL.md"}


def linked(folder: Path) -> None:
    (folder / "MEMORY.md").unlink()
    (folder / "MEMORY.md").symlink_to("/etc/hostname")


def linked_skills(folder: Path) -> None:
    (folder / "skills").rename(folder / "moved")
    (folder / "skills").symlink_to("/etc")


def binary(folder: Path) -> None:
    (folder / "memory_summary.md").write_bytes(b"\xff\xfe\x00")


def huge(folder: Path) -> None:
    (folder / "memory_summary.md").write_bytes(b"x" * (2 << 20))


@pytest.mark.parametrize("deed", [linked, linked_skills, binary, huge])
async def test_links_binaries_and_monsters_bring_nothing_in(place: Workplace, deed: Callable[[Path], None]) -> None:
    await run(place, Program(deed))
    taken = files(place.root)
    assert taken.get("MEMORY.md", "the handbook\n") == "the handbook\n"
    assert "memory_summary.md" not in taken
    assert not any(path.is_symlink() for path in place.root.rglob("*"))


def test_what_nobody_sees_does_not_come_in_with_a_text(place: Workplace) -> None:
    writes("MEMORY.md", "seen\u200bunseen\x1b[2J\n")(place.copy)
    take_back(place)
    assert files(place.root)["MEMORY.md"] == "seenunseen\n"


async def test_complaints_go_to_a_further_run_that_finds_the_work_as_it_was(place: Workplace) -> None:
    def mend(folder: Path) -> None:
        assert (folder / "MEMORY.md").read_text() == "bad\n"
        assert not (folder / "stray.md").exists()
        writes("MEMORY.md", "good\n")(folder)

    def spoil(folder: Path) -> None:
        writes("MEMORY.md", "bad\n")(folder)
        writes("stray.md")(folder)

    program = Program(spoil, mend)
    done = await run(place, program, ("it is bad",))
    assert done.requests == 2
    assert program.messages == ["Here is what changed.", "Here is what changed.\n\nRepair: it is bad"]
    assert files(place.root)["MEMORY.md"] == "good\n"


async def test_after_two_repairs_the_result_is_rejected(place: Workplace) -> None:
    program = Program(nothing, nothing, nothing)
    with pytest.raises(ResultRejected, match="turned down 3 times: c3") as caught:
        await run(place, program, ("c1",), ("c2",), ("c3",))
    assert caught.value.complaints == ("c3",)
    assert len(program.asked) == 3


async def test_a_run_that_took_too_many_tokens_gets_no_repair(place: Workplace) -> None:
    program = Program(nothing, usage=5_000)
    with pytest.raises(ResultRejected, match="max_tokens, 1000") as caught:
        await run(place, program, ("c1",), caps=AgentCaps(max_tokens=1_000))
    assert caught.value.complaints[1:] == ("c1",)


async def test_runs_count_as_requests(place: Workplace) -> None:
    with pytest.raises(ResultRejected, match="max_requests"):
        await run(place, Program(nothing), ("c1",), caps=AgentCaps(max_requests=1))


async def test_a_run_is_reserved_with_what_the_folder_makes_likely(place: Workplace) -> None:
    (place.root / "raw_memories.md").write_text("x" * 300_000)
    program = Program(nothing)
    await run(place, program)
    expected = program.asked[0].max_output_tokens
    assert expected is not None
    assert 400_000 <= expected <= 450_000


async def test_a_program_that_removes_its_folder_is_rejected(place: Workplace) -> None:
    def leave(folder: Path) -> None:
        folder.rename(folder.with_name("away"))

    with pytest.raises(ResultRejected, match="left no folder"):
        await run(place, Program(leave))


def test_more_files_than_may_stand_are_turned_down_at_once_and_nothing_is_taken(place: Workplace) -> None:
    before = files(place.root)
    for number in range(MAX_TOTAL_FILES + 1):
        writes(f"skills/s{number}/SKILL.md")(place.copy)
    with pytest.raises(ResultRejected, match=f"left {MAX_TOTAL_FILES + 1} files"):
        take_back(place)
    assert files(place.root) == before


async def test_an_error_of_the_provider_passes(place: Workplace) -> None:
    def refuse(_folder: Path) -> None:
        raise RateLimited("later")

    with pytest.raises(RateLimited):
        await run(place, Program(refuse))
