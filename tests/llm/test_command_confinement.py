"""What confines a program: each mechanism that this machine has is tried for real, the others are skipped."""

import os
from pathlib import Path

import pytest

from memoryd import config
from memoryd.llm.command.confinement import Bounds, Confiner, Mechanism, Tools, confined, holds, is_at_hand
from memoryd.llm.command.process import Launch, run

TOOLS = Tools.found_in(config.environ())
REAL = [mechanism for mechanism in Mechanism if mechanism is not Mechanism.NONE]
ELSEWHERE = """
echo in > inside && cat
for place in "$1/ledger" "$1/memories/MEMORY.md" "$1/new" "$2/beside"; do (echo x >> "$place") 2>/dev/null; done
rm -f "$1/ledger" "$2/theirs" 2>/dev/null
mv "$2/theirs" "$2/moved" 2>/dev/null
ln -s "$2/theirs" link && (echo x >> link) 2>/dev/null
exit 0
"""


class Ground:
    def __init__(self, folder: Path) -> None:
        folder = folder.resolve()
        self.home, self.user = folder / "memoryd", folder / "user"
        self.run = self.home / "staging" / "command-1"
        for each in (self.run, self.home / "memories", self.user):
            each.mkdir(parents=True)
        (self.home / "ledger").write_text("ledger")
        (self.home / "memories" / "MEMORY.md").write_text("memory")
        (self.user / "theirs").write_text("theirs")
        self.bounds = Bounds((self.run,), self.home, 20.0)

    def files(self) -> dict[str, str]:
        root = self.home.parent
        return {
            str(path.relative_to(root)): path.read_text()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_relative_to(self.run)
        }

    def launch(self, script: str, *words: object) -> Launch:
        argv = ("/bin/sh", "-c", script, "sh", *map(str, words))
        return Launch(argv, {"PATH": os.environ["PATH"], "MARK": "passes"}, self.run, self.run)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def at_hand(mechanism: Mechanism) -> Mechanism:
    if not is_at_hand(mechanism, TOOLS):
        pytest.skip(f"this machine has no {mechanism}")
    return mechanism


@pytest.fixture(params=REAL)
async def mechanism(request: pytest.FixtureRequest, ground: Ground) -> Mechanism:
    found = at_hand(request.param)
    if not await holds(found, TOOLS, ground.run, ground.home):
        pytest.skip(f"{found} is here and does not work")
    return found


async def test_a_program_writes_in_its_folder_and_nowhere_else(ground: Ground, mechanism: Mechanism) -> None:
    """I7: neither the house nor the user's files change, and its input and output pass."""
    before = ground.files()
    launch = confined(mechanism, ground.launch(ELSEWHERE, ground.home, ground.user), ground.bounds, TOOLS)
    ended = await run(launch, b"the question", seconds=20)
    assert (ended.code, ended.stdout) == (0, b"the question")
    assert (ground.run / "inside").read_text() == "in\n"
    assert ground.files() == before


async def test_its_variables_pass(ground: Ground, mechanism: Mechanism) -> None:
    ended = await run(confined(mechanism, ground.launch("echo $MARK"), ground.bounds, TOOLS), b"", seconds=20)
    assert ended.stdout == b"passes\n"


async def test_what_it_starts_ends_with_it(ground: Ground, mechanism: Mechanism) -> None:
    mark = f"98764.{os.getpid():09d}"
    script = f"setsid sh -c 'setsid sleep {mark} >/dev/null 2>&1 </dev/null &'; sleep {mark}"
    ended = await run(confined(mechanism, ground.launch(script), ground.bounds, TOOLS), b"", seconds=0.5)
    assert ended.timed_out
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _holds(path, f"sleep\0{mark}")]


def _holds(path: Path, words: str) -> bool:
    try:
        return words in path.read_bytes().decode(errors="replace")
    except OSError:
        return False


@pytest.mark.parametrize("mechanism", [Mechanism.SYSTEMD, Mechanism.BUBBLEWRAP])
async def test_the_better_ones_show_an_empty_house(ground: Ground, mechanism: Mechanism) -> None:
    at_hand(mechanism)
    if not await holds(mechanism, TOOLS, ground.run, ground.home):
        pytest.skip(f"{mechanism} is here and does not work")
    script = ground.launch('ls "$1"', ground.home)
    ended = await run(confined(mechanism, script, ground.bounds, TOOLS), b"", seconds=20)
    assert ended.stdout == b"staging\n"


async def test_a_login_outside_of_its_folder_can_be_renewed(ground: Ground, mechanism: Mechanism) -> None:
    login = ground.user / "theirs"
    bounds = Bounds((ground.run, login), ground.home, 20.0)
    await run(confined(mechanism, ground.launch('echo new > "$1"', login), bounds, TOOLS), b"", seconds=20)
    assert login.read_text() == "new\n"


async def test_the_best_that_works_is_taken_and_told_once(ground: Ground) -> None:
    told: list[Mechanism] = []

    async def note(mechanism: Mechanism) -> None:
        told.append(mechanism)

    confiner = Confiner(TOOLS, note=note)
    found = [await confiner.mechanism(ground.run, ground.home) for _ in range(2)]
    working = [each for each in REAL if is_at_hand(each, TOOLS) and await holds(each, TOOLS, ground.run, ground.home)]
    assert found == [next(iter(working), Mechanism.NONE)] * 2
    assert told == found[:1]


async def test_what_is_here_and_does_not_work_is_passed_over(ground: Ground, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexec /bin/sh -c 'exit 1'\n")
    broken.chmod(0o700)
    useless = tmp_path / "useless"
    useless.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    useless.chmod(0o700)

    async def note(_mechanism: Mechanism) -> None:
        pass

    tools = Tools(str(broken), "/bin/true", str(useless), (("XDG_RUNTIME_DIR", "/nowhere"),))
    allowed = (Mechanism.SYSTEMD, Mechanism.BUBBLEWRAP, Mechanism.NONE)
    confiner = Confiner(tools, note=note, allowed=allowed)
    assert await confiner.mechanism(ground.run, ground.home) is Mechanism.NONE


def test_a_unit_is_ended_by_its_name_and_no_value_stands_on_the_command_line(ground: Ground) -> None:
    tools = Tools("/usr/bin/systemd-run", "/usr/bin/systemctl", "", (("XDG_RUNTIME_DIR", "/run/user/1"),))
    launch = confined(Mechanism.SYSTEMD, ground.launch("true"), ground.bounds, tools)
    assert "passes" not in " ".join(launch.argv)
    assert ("-E", "MARK") in zip(launch.argv, launch.argv[1:], strict=False)
    unit = next(word.removeprefix("--unit=") for word in launch.argv if word.startswith("--unit="))
    assert launch.stop[-3:] == ("--user", "stop", unit)
    assert launch.environ["XDG_RUNTIME_DIR"] == "/run/user/1"
