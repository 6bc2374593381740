"""The text of the unit: what is written is what systemd reads, and what is read back."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from memoryd.control.service import shipped
from memoryd.control.service.hardening import render_hardening
from memoryd.control.service.unit import command_line, quoted, read_unit, render_unit
from memoryd.errors import UsageError
from tests.control.service.conftest import a_wish

TEMPLATE = shipped.read_shipped(shipped.UNIT)
ODD = """/o dd/$HOME ${X}/%h/'it"s\\x/python"""


def test_the_unit_is_the_shipped_one_with_what_holds_on_this_machine() -> None:
    wish = a_wish(environment={"PATH": "/a:/b", "MEMORYD_HOME": "/h"}, credentials={"KEY": Path("/k/KEY")})
    told = render_unit(TEMPLATE, wish).splitlines()
    own = [
        'Environment="PATH=/a:/b"',
        'Environment="MEMORYD_HOME=/h"',
        "LoadCredential=KEY:/k/KEY",
        'ExecStart="/opt/venv/bin/python" "-P" "-m" "memoryd.control.main" "run"',
    ]
    shipped_lines = [line for line in TEMPLATE.splitlines() if not line.startswith("ExecStart=")]
    assert [line for line in told if line not in own] == shipped_lines
    assert [line for line in told if line in own] == own


@pytest.mark.parametrize("odd", [ODD, "/plain/python", "/with space/python", "/with%percent/python", "/d$ollar/python"])
def test_whatever_a_path_holds_is_read_back_as_it_was(odd: str) -> None:
    wish = a_wish(odd, {"PATH": odd, "MEMORYD_HOME": odd}, {"KEY": Path("/k %/KEY")})
    assert read_unit(render_unit(TEMPLATE, wish), Path("/home/mika")) == wish


def test_each_word_is_quoted_and_nothing_in_it_is_expanded() -> None:
    assert quoted('a"b\\c%d$e') == '"a\\"b\\\\c%%d$e"'
    assert quoted('a"b\\c%d$e', in_command=True) == '"a\\"b\\\\c%%d$$e"'


@pytest.mark.parametrize("char", ["$", '"', "'", "\\"])
def test_a_program_that_systemd_would_refuse_or_misread_is_started_by_env(char: str) -> None:
    assert command_line([f"/a{char}b/python", "run"]).startswith('"/usr/bin/env" "/a')
    assert command_line(["/a b%/python", "run"]) == '"/a b%%/python" "run"'


@pytest.mark.parametrize("char", ["\n", "\r", "\t", "\x00", "\x7f", "\udcff"])
def test_a_path_with_a_character_that_no_unit_can_hold_is_refused(char: str) -> None:
    for wish in (
        a_wish(f"/a{char}b/python"),
        a_wish(environment={"MEMORYD_HOME": f"/h{char}"}),
        a_wish(credentials={"KEY": Path(f"/k{char}")}),
    ):
        with pytest.raises(UsageError, match="cannot hold"):
            render_unit(TEMPLATE, wish)


def test_a_unit_that_was_copied_by_hand_is_read_too() -> None:
    read = read_unit(TEMPLATE, Path("/home/mika"))
    assert read is not None
    assert read.interpreter == Path("/home/mika/.local/bin/memoryd")


def test_a_unit_without_a_command_is_none_of_ours() -> None:
    assert read_unit("[Service]\nExecStart=\n", Path("/home/mika")) is None


def test_the_hardening_names_what_may_be_written_and_only_the_first_must_exist() -> None:
    text = render_hardening([Path("/h o/%me"), Path("/tmp")])
    assert 'ReadWritePaths="/h o/%%me" "-/tmp"' in text.splitlines()
    assert "PrivateUsers=yes" in text.splitlines()


def test_systemd_reads_unit_and_drop_in_without_a_complaint(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze on this machine")
    python = tmp_path / "o dd %h" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\n")
    python.chmod(0o700)
    unit, odd = tmp_path / "memoryd.service", tmp_path / "odd.service"
    environment = {"PATH": "/usr/bin:/bin", "MEMORYD_HOME": "/h %o$m\"e\\'"}
    unit.write_text(render_unit(TEMPLATE, a_wish(str(python), environment, {"KEY": Path("/k %/KEY")})))
    odd.write_text(render_unit(TEMPLATE, a_wish(ODD)))
    drop_ins = tmp_path / "memoryd.service.d"
    drop_ins.mkdir()
    (drop_ins / "50-hardening.conf").write_text(render_hardening([Path("/h o%me"), Path("/tmp")]))
    asked = subprocess.run(
        [analyze, "--user", "verify", "--recursive-errors=yes", str(unit), str(odd)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "recursive-errors" in asked.stderr:
        pytest.skip("this systemd-analyze is older than 250 and does not report misspelt keys")
    assert (asked.returncode, asked.stderr) == (0, "")
