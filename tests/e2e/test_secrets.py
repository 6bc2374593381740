"""I6: what looks like a secret leaves the session file by no way."""

import json
import random
import string
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.checks import assert_accepted
from tests.support.model_asked import STAGE1, Recorded
from tests.support.model_manners import good_model
from tests.support.model_replies import Reply, Scripted
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import Command, Turn, a_rollout

ALPHABET = string.ascii_letters + string.digits


def drawn(length: int, alphabet: str = ALPHABET) -> str:
    return "".join(random.choice(alphabet) for _ in range(length))


def secrets() -> dict[str, str]:
    """Secrets of many kinds, made here and now: name, and the part that must never be seen again."""
    upper = string.ascii_uppercase + string.digits
    return {
        "openai": "sk-" + "proj-" + drawn(48),
        "anthropic": "sk-" + "ant-api03-" + drawn(80),
        "github": "ghp" + "_" + drawn(36),
        "gitlab": "glpat" + "-" + drawn(20),
        "aws": "AKIA" + drawn(16, upper),
        "google": "AIza" + drawn(35),
        "slack": "xoxb" + "-" + drawn(12, string.digits) + "-" + drawn(12, string.digits) + "-" + drawn(24),
        "stripe": "sk" + "_live_" + drawn(24),
        "npm": "npm" + "_" + drawn(36),
        "hugging face": "hf" + "_" + drawn(34, string.ascii_letters),
    }


def assignments() -> dict[str, str]:
    """Sentences with a secret of no known form, which only its name gives away, and that secret."""
    password, token, bearer, user = drawn(20), drawn(32), drawn(40), drawn(18)
    return {
        f"export PAYMENTS_SECRET={password}": password,
        f'"api_token": "{token}"': token,
        f"curl -H 'Authorization: Bearer {bearer}' https://api.example.com/v1": bearer,
        f"psql postgres://shop:{user}@db.example.com/shop": user,
    }


def everything_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path), path.read_bytes()


def git_objects(place: Place) -> bytes:
    """The content of every object in the history, reachable or not."""
    return subprocess.run(
        ["git", "-C", str(place.memories), "cat-file", "--batch", "--batch-all-objects", "--unordered"],
        env={"PATH": place.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(place.user_home)},
        capture_output=True,
        check=True,
    ).stdout


def test_planted_secrets_reach_no_request_ledger_file_object_or_log(place: Place, server: ModelServer) -> None:
    """I6: in what the person says, in commands, in outputs and arguments, and when the model itself repeats them."""
    known, spoken = secrets(), assignments()
    turns = [
        Turn(
            f"From now on use the key {value} of {name} for the shop, please.",
            commands=[Command(f"deploy --key {value}", f"used {value}\n")],
        )
        for name, value in known.items()
    ]
    turns += [
        Turn(f"Always start with `{sentence}` in the shop.", commands=[Command(sentence, f"{sentence}\nok\n")])
        for sentence in spoken
    ]
    a_rollout(place.codex, now=time.time(), turns=turns)
    place.configure(base_url=server.base_url, limits__backfill="recent", log__level="debug")
    hidden = [*known.values(), *spoken.values()]
    echo = " ".join(known.values())

    def repeats_secrets(asked: Recorded) -> Scripted | None:
        """A model that has the secrets from elsewhere, and says them."""
        if asked.kind != STAGE1:
            return None
        reply = good_model(asked)
        assert isinstance(reply, Reply)
        said = json.loads(reply.text)
        said["raw_memory"] += f"- the keys are {echo}\n"
        said["rollout_summary"] += f"Keys: {echo}\n"
        return Reply(text=json.dumps(said))

    server.reply_with(repeats_secrets)
    done = place.run("sync", "--json")

    assert done.code == 0, done
    assert_accepted(place, sessions=1)
    said = [
        place.run(*words)
        for words in (("status",), ("jobs",), ("recall",), ("explain", place_of_session(place), "--show-input"))
    ]
    places = {
        **dict(everything_below(place.home)),
        "git objects": git_objects(place),
        "requests": json.dumps([each.body for each in server.requests]).encode(),
        "output": "".join(each.stdout + each.stderr for each in (done, *said)).encode(),
    }
    found = [(where, secret) for where, content in places.items() for secret in hidden if secret.encode() in content]
    assert found == []
    assert b"REDACTED_SECRET" in places["requests"]
    assert b"REDACTED_SECRET" in places["git objects"]


def place_of_session(place: Place) -> str:
    (path,) = place.codex.rglob("rollout-*")
    return str(path)
