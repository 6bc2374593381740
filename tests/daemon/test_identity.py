import subprocess
import sys
from dataclasses import replace

from memoryd.daemon.identity import Identity


def test_a_name_is_read_back_also_with_a_worker_s_number() -> None:
    identity = Identity.of_this_process("run")
    assert Identity.read(str(identity)) == identity
    assert Identity.read(f"{identity}-3") == identity


def test_two_runs_have_different_names() -> None:
    assert str(Identity.of_this_process("run")) != str(Identity.of_this_process("run"))


def test_a_name_of_another_kind_is_none() -> None:
    assert Identity.read("somebody") is None


def test_this_process_lives_and_knows_itself() -> None:
    identity = Identity.of_this_process("sync")
    assert identity.is_this_process
    assert not identity.is_dead


def test_a_process_that_ended_is_dead() -> None:
    program = "from memoryd.daemon.identity import Identity; print(Identity.of_this_process('run'))"
    name = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()
    identity = Identity.read(name)
    assert identity is not None
    assert identity.is_dead
    assert not identity.is_this_process


def test_a_number_that_is_used_again_is_another_process() -> None:
    reused = replace(Identity.of_this_process("run"), started=1)
    assert reused.is_dead
    assert not reused.is_this_process


def test_what_ran_in_another_boot_is_dead() -> None:
    assert replace(Identity.of_this_process("run"), boot="0123456789ab").is_dead


def test_a_living_process_is_not_dead_though_it_is_another() -> None:
    program = (
        "from memoryd.daemon.identity import Identity; print(Identity.of_this_process('run'), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        identity = Identity.read(other.stdout.readline().strip())
        assert identity is not None
        assert not identity.is_dead
        assert not identity.is_this_process
        other.communicate("\n")
