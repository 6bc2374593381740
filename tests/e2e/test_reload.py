"""SIGHUP to a daemon that runs, and what people are told of it."""

import os
import signal

from tests.support.growing import a_session_of_now
from tests.support.model_server import ModelServer
from tests.support.process import Place, Process

WRONG = "[discover]\nmin_idel = '1s'\n"


def test_sighup_reloads_the_settings_and_wrong_ones_leave_the_old_in_force(place: Place, server: ModelServer) -> None:
    place.codex.mkdir()
    place.configure(base_url=server.base_url, discover__min_idle="6h", discover__scan_interval="1s")
    with place.daemon() as daemon:
        thread_id = a_session_of_now(place.codex, "From now on always run the linter before committing.")
        place.configure(base_url=server.base_url, discover__min_idle="0s", discover__scan_interval="1s")
        daemon.send(signal.SIGHUP)
        told = daemon.wait_for_event("settings.reloaded")
        daemon.wait_for_event("job.completed", where=lambda event: event["job_key"] == thread_id)
        assert told["changed"] == ["discover.min_idle"]

        good = (place.home / "config.toml").read_text()
        place.write_config(WRONG)
        daemon.send(signal.SIGHUP)
        refused = daemon.wait_for_event("settings.refused")
        assert "min_idel" in refused["error"]
        said = place.run("status")
        assert said.code == 2
        assert "min_idel" in said.complaint
        assert f"memoryd (pid {daemon.pid}) goes on with its old settings" in said.complaint

        place.write_config(good)  # right again, and not yet read
        (finding,) = [each for each in place.status()["health"] if each["id"] == "settings_refused"]
        assert finding["severity"] == "error"
        assert "reload again" in finding["remedy"]
        daemon.send(signal.SIGHUP)
        daemon.wait_for_event("settings.reloaded", 2)
        assert "settings_refused" not in {each["id"] for each in place.status()["health"]}


def test_a_daemon_ends_with_the_terminal_on_which_it_was_started(place: Place) -> None:
    place.configure()
    ours, theirs = os.openpty()
    words = 'exec 2>"$TTY"; exec "$@"'
    extra = {**place.environ, "TTY": os.ttyname(theirs)}
    with Process(["sh", "-c", words, "sh", *place.words("run", "--log-format", "json")], extra) as daemon:
        said = b""
        while b"daemon.started" not in said:
            said += os.read(ours, 65536)
        daemon.send(signal.SIGHUP)
        while b"settings.reloaded" not in said:
            said += os.read(ours, 65536)
        os.close(theirs)
        os.close(ours)
        daemon.send(signal.SIGHUP)
        assert daemon.wait() == 0
