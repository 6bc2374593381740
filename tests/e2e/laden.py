"""A run of memoryd over sessions full of secrets, and everything that it leaves behind.

    python -m tests.e2e.laden FOLDER        makes such a run, and puts what it left into FOLDER as plain files
    kingfisher scan --no-validate --no-update-check FOLDER/left         must find nothing
    kingfisher scan --no-validate --no-update-check FOLDER/codex        finds what was planted

(kingfisher is in the dev group: a scanner that shares no rule with memoryd.)
"""

import argparse
import html
import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.support.model_asked import STAGE1, Recorded
from tests.support.model_manners import good_model
from tests.support.model_replies import Reply, Scripted, Status
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.secrets import SHAPES, WAYS, secret_parts
from tests.support.sessions import Command, Turn, a_rollout

PER_SESSION = 12
HUSHED = "nobody-hears-of-this"
"""What stands in private spans only."""
NAMED = {
    ("export PAYMENTS_SECRET=", ""): "kW7pLmQ2xZ9vRt4BnH",
    ("mysql --password=", " shop"): "Tg5RfVb8YhNuJm3K",
    ("curl -H 'Authorization: Bearer ", "' https://example.org"): "Zx1Cv2Bn3Ml4Kj5Hg6Fd7Sa8Qw9Er0T",
    ("psql postgres://shop:", "@db.example.org/shop"): "Pl0Ok9Ij8Uh7Yg6T",
}
"""Secrets of no known form, by what stands before and behind them."""


def needles() -> dict[bytes, str]:
    """Pieces of what was planted, any of which would be a leak, with the name of the secret."""
    found = {piece.encode(): name for name, secret in SHAPES.items() for piece in secret_parts(secret)}
    found[HUSHED.encode()] = "private"
    return found | {secret.encode(): words for (words, _), secret in NAMED.items()}


def plant(place: Place, *, now: float) -> list[Path]:
    """Record sessions with every secret in what people, agents and programs said, and in names."""
    names = list(SHAPES)
    paths = []
    for start in range(0, len(names), PER_SESSION):
        chunk = names[start : start + PER_SESSION]
        short = next(SHAPES[name] for name in chunk if "\n" not in SHAPES[name] and len(SHAPES[name]) < 60)
        turns = [_private_turn(), *(_turn(name) for name in chunk)]
        turns += [
            Turn(
                f"Always start with `{words}{secret}{rest}` in the shop.", commands=[Command(f"{words}{secret}{rest}")]
            )
            for (words, rest), secret in NAMED.items()
        ]
        paths.append(
            a_rollout(
                place.codex,
                now=now,
                idle_hours=7 + start / 100,
                turns=turns,
                cwd=f"/home/dev/shop-{start}/{short}",
                branch=f"feature/{short}",
            )
        )
    return paths


def _private_turn() -> Turn:
    span = f"<private>{HUSHED}</private>"
    escaped = [span, html.escape(span), json.dumps({"a": span}).replace("<", "\\u003c"), f"<Private why='x'>{HUSHED}"]
    return Turn(
        f"Always use tabs in the shop, {span} please.",
        answer=f"I know: {span}",
        commentary=f"```\n<private>\n{HUSHED}",
        commands=[Command(f"echo '{way}'", f"so {way}") for way in escaped],
    )


def _turn(name: str) -> Turn:
    secret = SHAPES[name]
    dump = "\n".join(way(secret) for way in WAYS.values())
    return Turn(
        f"From now on use the key {secret} of {name} for the shop, please.",
        answer=f"I noted {secret}.",
        commentary=f"Now I try {secret}.",
        commands=[
            Command(f"deploy --key {secret} < 'keys/{secret}.txt'", dump),
            Command(f"git commit -m 'Use {secret}'", f"[feature/{secret} 1a2b3c4] Use {secret}\n", exit_code=1),
        ],
    )


def pages() -> list[str]:
    """Return the words with which each session's first request is refused."""
    names = list(SHAPES)
    return [
        "\n".join(SHAPES[name] for name in names[at : at + PER_SESSION]) for at in range(0, len(names), PER_SESSION)
    ]


def write_note(place: Place) -> Path:
    """Leave a note of a person's with a secret in it: the file stays theirs, and goes nowhere."""
    note = place.memories / "extensions" / "ad_hoc" / "notes" / "2026-01-02T03-04-05-keys.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("\n".join(SHAPES.values()), encoding="utf-8")
    return note


def repeats_secrets(asked: Recorded) -> Scripted | None:
    """A model that has the secrets from elsewhere, and says them in each field of its reply."""
    if asked.kind != STAGE1:
        return None
    reply = good_model(asked)
    assert isinstance(reply, Reply)
    said = json.loads(reply.text)
    echo = "\n".join(f"- the key of {name} is {secret}" for name, secret in SHAPES.items())
    said["raw_memory"] += f"\nReusable knowledge:\n{echo}\n"
    said["rollout_summary"] += f"\n{echo}\n"
    said["rollout_slug"] = f"use {SHAPES['github classic']}"
    return Reply(text=json.dumps(said))


def run_all(place: Place, server: ModelServer) -> dict[str, bytes]:
    """Run a refused pass, a whole pass and one of a daemon; return all that was sent, written, logged and told.

    The sessions themselves and the person's own note are no part of it.
    """
    paths = plant(place, now=time.time())
    place.configure(
        base_url=server.base_url, limits__backfill="recent", log__level="debug", ledger__retry_base="0s",
        extract__max_input_tokens=400_000,
    )  # fmt: skip
    told: dict[str, bytes] = {}

    def tell(command: str, *words: str) -> str:
        done = place.run(command, *words)
        told[f"{command} {' '.join(words)} ({len(told)})"] = (done.stdout + done.stderr).encode()
        return done.stdout

    server.then(*(Status(400, f"not allowed: {page}", code=page, param=page) for page in pages()))
    tell("sync", "--json")
    tell("jobs")
    tell("status")
    server.reply_with(repeats_secrets)
    for (key,) in place.query("SELECT job_key FROM jobs WHERE status <> 'done'"):
        tell("jobs", "retry", key)
    tell("sync", "--now", "--json")
    note = write_note(place)
    with place.daemon() as daemon:
        a_rollout(place.codex, now=time.time(), turns=[_turn("github classic")], cwd="/home/dev/late")
        server.reply_with(lambda asked: Status(400, f"no, {SHAPES['aws id']}") if asked.kind == STAGE1 else None)
        tell("sync", "--now", "--json")
        told["the daemon"] = daemon.output.encode()
    for (key,) in place.query("SELECT job_key FROM jobs"):
        tell("jobs", "show", key)
        tell("jobs", "show", key, "--json")
    for words in (("status", "--json"), ("jobs", "--json"), ("recall",), ("explain", str(paths[0]), "--show-input")):
        tell(*words)
    for path in paths:
        tell("explain", str(path), "--json")
    return told | {
        "requests": json.dumps([each.body for each in server.requests], ensure_ascii=False).encode(),
        "git objects": git_objects(place),
        "ledger as text": ledger_as_text(place),
        **{str(path.relative_to(place.home)): path.read_bytes() for path in files(place.home) if path != note},
        "names of files": "\n".join(str(path) for path in place.home.rglob("*")).encode(),
    }


def files(folder: Path) -> Iterator[Path]:
    """Return the files below a folder, links aside."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def git_objects(place: Place) -> bytes:
    """Return the content of every object in the history, reachable or not; messages of commits are objects too."""
    return subprocess.run(
        ["git", "-C", str(place.memories), "cat-file", "--batch", "--batch-all-objects", "--unordered"],
        env={"PATH": place.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(place.user_home)},
        capture_output=True,
        check=True,
    ).stdout


def ledger_as_text(place: Place) -> bytes:
    """Return every row of the ledger as SQL, which holds together what pages may tear apart."""
    with closing(sqlite3.connect(f"file:{place.home / 'ledger.sqlite3'}?mode=ro", uri=True)) as connection:
        return "\n".join(connection.iterdump()).encode("utf-8", "replace")


def main() -> None:
    parser = argparse.ArgumentParser(description="A run over sessions full of secrets.")
    parser.add_argument("folder", type=Path)
    place = Place(parser.parse_args().folder.absolute())
    place.folder.mkdir(parents=True)
    with ModelServer() as server:
        write_left(place.folder / "left", run_all(place, server))
    print(f"{place.folder / 'left'} must hold none of what {place.codex} holds")


def write_left(folder: Path, left: dict[str, bytes]) -> None:
    """Write what a run left behind as plain files, decompressed and decoded, for a scanner to read."""
    folder.mkdir(parents=True)
    for number, (name, content) in enumerate(left.items()):
        if ".git/" not in name:  # its objects are there as text
            safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:80]
            (folder / f"{number:04d}-{safe}.txt").write_bytes(content.replace(b"\\n", b"\n"))


if __name__ == "__main__":
    main()
