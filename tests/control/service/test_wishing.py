"""What goes into the service: programs' folders, variables, keys; what an upgrade keeps; what is found wrong."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd import config
from memoryd.config import Settings
from memoryd.control.service import placing
from memoryd.control.service.checking import judge
from memoryd.control.service.ground import STANDARD_PATH, Ground, is_fleeting, refuse_unable
from memoryd.control.service.hardening import writable_places
from memoryd.control.service.keys import as_seen, plan_keys, write_keys
from memoryd.control.service.search_path import search_path
from memoryd.control.service.state import State
from memoryd.control.service.wishing import home_of, unseen, wish_of
from memoryd.errors import ConfigError, ServiceError, StorageError, UsageError
from tests.control.service.conftest import Programs, a_wish

KEY = "sk-kept-0123456789abcdef"
PYTHON = Path("/opt/new/bin/python")


def settings_of(ground: Ground, text: str = "", home: Path | None = None) -> Settings:
    folder = home or ground.home / ".memoryd"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    return config.load(folder, environ={"HOME": str(ground.home)})


ASKING = """\
[extract]
model = "m"
[consolidate]
model = "m"
[providers.main]
kind = "openai"
api_key_env = "MAIN_KEY"
"""


def executable(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    return program


def test_the_folders_of_agents_programs_come_before_the_usual_ones_and_those_of_before_stay(
    ground: Ground, tmp_path: Path
) -> None:
    settings = settings_of(ground)
    here, odd, earlier = tmp_path / "local bin", tmp_path / "a:b", tmp_path / "earlier"
    executable(here, "claude")
    executable(odd, "codex")
    executable(tmp_path / "elsewhere", "unrelated")
    earlier.mkdir()
    environ = {"PATH": f"{odd}:{here}:{tmp_path / 'elsewhere'}:relative"}
    told = search_path(settings, environ, before=f"{earlier}:{tmp_path / 'gone'}:/usr/bin")
    assert told.split(":") == [str(here), str(earlier), *STANDARD_PATH]


def test_a_program_that_the_settings_name_is_found_too(ground: Ground, tmp_path: Path) -> None:
    executable(tmp_path / "mine", "my-agent")
    settings = settings_of(ground, '[providers.own]\nkind = "command"\ncommand = ["my-agent"]\n')
    assert search_path(settings, {"PATH": str(tmp_path / "mine")}).startswith(f"{tmp_path / 'mine'}:")


def test_a_home_is_named_only_where_it_was_moved(ground: Ground, tmp_path: Path) -> None:
    usual = wish_of(settings_of(ground), ground, PYTHON, {}, None)
    moved = wish_of(settings_of(ground, home=tmp_path / "h"), ground, PYTHON, {}, None)
    assert list(usual.environment) == ["PATH"]
    assert moved.environment["MEMORYD_HOME"] == str(tmp_path / "h")


def test_an_upgrade_brings_a_new_interpreter_and_keeps_what_this_shell_does_not_say(ground: Ground) -> None:
    before = a_wish(environment={"PATH": "/usr/bin", "CODEX_HOME": "/moved/codex", "MEMORYD_HOME": "/moved/memoryd"})
    after = wish_of(settings_of(ground), ground, PYTHON, {}, before)
    assert after.interpreter == PYTHON
    assert after.environment["CODEX_HOME"] == "/moved/codex"
    assert home_of(None, {}, before) == Path("/moved/memoryd")
    assert home_of(Path("/given"), {}, before) == Path("/given")
    assert home_of(None, {"MEMORYD_HOME": "/said"}, before) is None, "the environment's own"
    assert home_of(None, {}, a_wish()) is None


def test_variables_that_move_agents_are_kept_and_settings_in_variables_are_named(ground: Ground) -> None:
    environ = {**ground.environ, "CODEX_HOME": "~/codex", "MEMORYD_LOG__LEVEL": "debug", "MEMORYD_HOME": "/h"}
    moved = Ground(environ, ground.uid, ground.user, ground.home)
    told = wish_of(settings_of(ground), moved, PYTHON, {}, None)
    assert told.environment["CODEX_HOME"] == str(ground.home / "codex")
    assert "MEMORYD_LOG__LEVEL" not in told.environment
    assert unseen(environ) == ["MEMORYD_LOG__LEVEL"]


def test_a_key_that_only_a_shell_has_is_refused_before_anything_is_written(ground: Ground) -> None:
    settings = settings_of(ground, ASKING)
    with pytest.raises(UsageError, match="MAIN_KEY, a variable that a service does not see") as caught:
        plan_keys(settings, {"MAIN_KEY": KEY}, None, store=False)
    assert "--store-keys" in caught.value.remedy
    assert KEY not in str(caught.value)
    assert not (settings.home / "credentials").exists()


def test_a_stored_key_is_private_found_again_and_replaced_when_stored_anew(ground: Ground) -> None:
    settings = settings_of(ground, ASKING)
    keys = plan_keys(settings, {"MAIN_KEY": KEY}, None, store=True)
    (file,) = write_keys(keys)
    assert file == settings.home / "credentials" / "MAIN_KEY"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    assert as_seen(keys) == {"MAIN_KEY": KEY}
    later = plan_keys(settings, {}, a_wish(credentials={"MAIN_KEY": file}), store=False)
    assert (later.files, later.to_write, as_seen(later)) == ({"MAIN_KEY": file}, {}, {"MAIN_KEY": KEY})
    write_keys(plan_keys(settings, {"MAIN_KEY": "sk-newer"}, None, store=True))
    assert file.read_text() == "sk-newer"


def test_a_credential_file_of_the_users_own_stays_where_it_is(ground: Ground, tmp_path: Path) -> None:
    own = tmp_path / "own-key"
    own.write_text(KEY)
    before = a_wish(credentials={"MAIN_KEY": own})
    assert plan_keys(settings_of(ground, ASKING), {}, before, store=False).files == {"MAIN_KEY": own}


def test_what_is_no_key_is_not_stored(ground: Ground) -> None:
    with pytest.raises(ConfigError, match="does not hold one key"):
        plan_keys(settings_of(ground, ASKING), {"MAIN_KEY": "two words"}, None, store=True)


def test_hardening_leaves_the_logins_of_agents_writable(ground: Ground) -> None:
    text = '[extract]\nmodel = "default"\n[consolidate]\nmodel = "default"\n'
    settings = settings_of(ground, f'{text}[providers.own]\nkind = "command"\ncommand = ["codex", "exec"]\n')
    places = writable_places(settings, {"HOME": str(ground.home)})
    assert places[0] == settings.home
    assert ground.home / ".codex" in places
    assert Path("/moved") in writable_places(settings, {"HOME": str(ground.home), "CODEX_HOME": "/moved"})


def test_an_interpreter_that_does_not_start_memoryd_is_refused_with_what_it_said(
    ground: Ground, programs: Programs
) -> None:
    programs.add("python")
    programs.when("python *", (1, "", "Traceback:\nModuleNotFoundError: No module named 'memoryd'\n"))
    with pytest.raises(ServiceError, match="No module named 'memoryd'"):
        refuse_unable(a_wish(str(programs.folder / "python")), ground)
    programs.when("python *", (0, "memoryd 0.1.0\n", ""))
    refuse_unable(a_wish(str(programs.folder / "python")), ground)


def test_a_file_is_put_in_place_whole_and_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file"
    assert placing.place(file, "one")
    assert not placing.place(file, "one")
    assert placing.place(file, "two")
    assert [path.name for path in file.parent.iterdir()] == ["file"]
    with pytest.raises(StorageError, match="cannot write"):
        placing.place(file / "below", "three")


def a_state(file: Path, **changes: object) -> State:
    told: dict[str, object] = {"is_running": True, "activity": "active (running)", "pid": 7, "is_enabled": True}
    return State("systemd", file, is_installed=True, **{**told, **changes})  # type: ignore[arg-type]  # fields by name


HOME = Path("/home/mika/.memoryd")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [("service", "ok")]),
        ({"linger": False}, [("service_linger", "ok")]),
        ({"interpreter": Path("/there/is/no/python")}, [("service_interpreter", "error")]),
        ({"is_running": False, "activity": "failed"}, [("service_stopped", "error")]),
        ({"is_running": False, "activity": "unknown"}, [("service_manager", "warning")]),
        ({"is_enabled": False}, [("service_disabled", "warning")]),
        ({"home": "/another"}, [("service", "ok")]),
    ],
)
def test_what_is_wrong_is_found(changes: dict[str, object], expected: list[tuple[str, str]], tmp_path: Path) -> None:
    found = judge(a_state(tmp_path, **changes), None, HOME, HOME)
    assert [(each.id, each.severity) for each in found] == expected
    assert all(each.remedy for each in found if each.severity != "ok")


def test_no_service_is_no_fault_and_a_key_file_that_is_gone_or_open_is_one(tmp_path: Path) -> None:
    assert [each.severity for each in judge(State("systemd", tmp_path, is_installed=False), None, HOME, HOME)] == ["ok"]
    file = tmp_path / "KEY"
    wish = a_wish(credentials={"KEY": file})
    assert "is gone" in judge(a_state(tmp_path), wish, HOME, HOME)[0].evidence
    file.write_text(KEY)
    file.chmod(0o644)
    assert "can be read by others" in judge(a_state(tmp_path), wish, HOME, HOME)[0].evidence
    file.chmod(0o600)
    assert judge(a_state(tmp_path), wish, HOME, HOME)[0].severity == "ok"


@pytest.mark.parametrize(
    ("interpreter", "expected"),
    [
        ("/home/mika/.cache/uv/archive-v0/x/bin/python", True),
        ("/tmp/x/bin/python", True),
        ("/home/mika/.local/pipx/venvs/memoryd/bin/python", False),
    ],
)
def test_an_interpreter_that_will_be_cleaned_away_is_known(interpreter: str, expected: bool) -> None:
    assert is_fleeting(Path(interpreter)) is expected


def test_a_home_that_this_shell_alone_has_is_said_to_the_service(ground: Ground, tmp_path: Path) -> None:
    """A manager takes HOME from the account: without it the service would serve another memory than install says."""
    account = replace(ground, account_home=ground.home)
    elsewhere = replace(ground, account_home=tmp_path / "account")
    settings = settings_of(ground)
    assert {"HOME", "MEMORYD_HOME"}.isdisjoint(wish_of(settings, account, PYTHON, {}, None).environment)
    told = wish_of(settings, elsewhere, PYTHON, {}, None).environment
    assert (told["HOME"], told["MEMORYD_HOME"]) == (str(ground.home), str(ground.home / ".memoryd"))


def test_a_relative_home_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Ground.of({"HOME": "user"}, os.getuid()).home == tmp_path / "user"
