"""The property list: key by key and type by type, without a secret, and read back as it was written."""

import plistlib
from pathlib import Path

import pytest

from memoryd.control.service import shipped
from memoryd.control.service.placing import MARK
from memoryd.control.service.plist import log_of, read_plist, render_plist
from memoryd.errors import UsageError
from tests.control.service.conftest import a_wish

TEMPLATE = shipped.read_shipped(shipped.AGENT)
HOME = Path("/Users/mika/.memoryd")


def test_it_is_this_one_key_by_key_and_type_by_type(tmp_path: Path) -> None:
    key = tmp_path / "credentials" / "KEY"
    key.parent.mkdir()
    key.write_text("secret")
    wish = a_wish("/opt/venv/bin/python", {"PATH": "/a:/usr/bin", "MEMORYD_HOME": str(HOME)}, {"KEY": key})
    text = render_plist(TEMPLATE, wish, HOME)
    expected = {
        "Label": "dev.memoryd",
        "ProgramArguments": ["/opt/venv/bin/python", "-P", "-m", "memoryd.control.main", "run"],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "ThrottleInterval": 30,
        "ExitTimeOut": 45,
        "Umask": 63,
        "Nice": 10,
        "LowPriorityIO": True,
        "StandardOutPath": "/Users/mika/.memoryd/daemon.log",
        "StandardErrorPath": "/Users/mika/.memoryd/daemon.log",
        "EnvironmentVariables": {
            "PATH": "/a:/usr/bin",
            "MEMORYD_HOME": "/Users/mika/.memoryd",
            "CREDENTIALS_DIRECTORY": str(key.parent),
        },
    }
    told = plistlib.loads(text.encode())
    assert told == expected
    assert {name: type(value) for name, value in told.items()} == {
        name: type(value) for name, value in expected.items()
    }, "a boolean is no number here"
    assert "secret" not in text
    assert MARK in text
    assert read_plist(text) == wish
    assert log_of(text) == HOME / "daemon.log"


@pytest.mark.parametrize("odd", ["/a b/<python>", '/a&b/"it\'s"', "/ä/$HOME"])
def test_whatever_a_path_holds_is_read_back_as_it_was(odd: str) -> None:
    wish = a_wish(odd, {"PATH": odd})
    assert read_plist(render_plist(TEMPLATE, wish, HOME)) == wish


@pytest.mark.parametrize("char", ["\x01", "\udcff"])
def test_a_path_with_a_character_that_no_property_list_can_hold_is_refused(char: str) -> None:
    with pytest.raises(UsageError, match="cannot hold"):
        render_plist(TEMPLATE, a_wish(f"/a{char}/python"), HOME)


def test_keys_in_several_folders_are_refused() -> None:
    with pytest.raises(UsageError, match="several folders"):
        render_plist(TEMPLATE, a_wish(credentials={"A": Path("/a/A"), "B": Path("/b/B")}), HOME)


@pytest.mark.parametrize("text", ["", "<plist/>", "not xml", "<plist version='1.0'><dict/></plist>"])
def test_what_is_no_property_list_of_ours_is_none(text: str) -> None:
    assert read_plist(text) is None
    assert log_of(text) is None
