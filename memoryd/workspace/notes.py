"""Notes in extensions/ad_hoc/notes: written once under a name of their own; what some of them ask to forget."""

import hashlib
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from memoryd.errors import StorageError, UsageError
from memoryd.text import plain
from memoryd.workspace.files import fsync_folder, translated
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import AD_HOC_NOTES, Home
from memoryd.workspace.wording import words_of

MAX_NAME_BYTES: Final = 128
MAX_SLUG: Final = 80
_STAMP: Final = "%Y-%m-%dT%H-%M-%S"
_NO_SLUG: Final = re.compile(r"[^a-z0-9]+")
_ONE_WORD: Final = re.compile(r"[\w.:@+-]{1,120}")
_ORIGIN: Final = re.compile(r"\A---\n(?:[a-z0-9_]+: .*\n)+---\n")
_FRONT_MATTER: Final = re.compile(r"\A---\nasks: forget\n---\n")
_FREE_REQUEST: Final = re.compile(r"\s*(?:[-*+]\s+)?(?:please,?\s+)?forget(?:\s+that\b|:)\s*(.+)", re.IGNORECASE)
_REQUEST: Final = """\
---
asks: forget
---
Forget what is quoted here, in these words and in others, wherever the memory says it: remove it from MEMORY.md, from
memory_summary.md and from skills, and do not write it again. This request itself is nothing to remember.

"""


def write_note(home: Home, text: str, *, now: float) -> Path:
    """Write a note under a new name (a time and the beginning of the text); never over another one.

    Raises UsageError for a blank text, StorageError where a folder on the way is none.
    """
    if not text.strip():
        raise UsageError("a note needs words", remedy='for instance `memoryd note "Deploy with make release"`')
    folder = _real_folder(home)
    stem = f"{datetime.fromtimestamp(now, UTC).strftime(_STAMP)}-{_slug(text)}"
    number = 1
    while True:
        path = folder / f"{stem if number == 1 else f'{stem}-{number}'}.md"
        try:
            with translated("write", path):
                descriptor = _create(path)
        except StorageError as error:
            if not isinstance(error.__cause__, FileExistsError):
                raise
            number += 1
            continue
        with translated("write", path):
            _fill(descriptor, path, (text.strip() + "\n").encode("utf-8", "replace"))
        fsync_folder(folder)
        return path


def _fill(descriptor: int, path: Path, data: bytes) -> None:
    """Write a new file whole, or leave none: on a full disk half a note would be taken in as one."""
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def with_origin(text: str, *, by: str, session: str = "", quote: str = "") -> str:
    """Put before a note who wrote it, in which session, and a digest of the user's words that it rests on.

    The digest is of the words alone, case and punctuation aside, so that who has the session can find them in it.
    What nobody sees in it is left out: with a NUL in it, it would be no text. Raises UsageError for a writer or session
    that is not one word.
    """
    said = plain(text).strip()
    if not said:
        return ""  # write_note refuses it
    lines = [f"by: {by}"]
    lines += [f"session: {session}"] if session else []
    if quote:
        digest = hashlib.sha256(" ".join(words_of(quote)).encode("utf-8", "surrogatepass")).hexdigest()
        lines.append(f"quote_sha256: {digest}")
    for word in (by, session):
        if word and not _ONE_WORD.fullmatch(word):
            raise UsageError(f"{word[:80]!r} is no name of a writer or a session", remedy="`memoryd note --help`")
    return "\n".join(["---", *lines, "---", said])


def request_to_forget(text: str) -> str:
    """Return the text of a note that asks that a text be forgotten. Raises UsageError for one without words."""
    if not words_of(text):
        raise UsageError("what is to be forgotten needs words", remedy='`memoryd forget --text "WORDS"`')
    return _REQUEST + "".join(f"> {row}\n" for row in text.strip().splitlines())


def is_request(text: str) -> bool:
    """Say whether a note is nothing but a request to forget."""
    return _FRONT_MATTER.match(text) is not None


def asked_to_forget(folder: Folder) -> tuple[str, ...]:
    """Return the texts that notes ask to be forgotten, unless a later note says them again."""
    notes = sorted((path, text) for path, text in folder.files.items() if path.startswith(f"{AD_HOC_NOTES}/"))
    asked: list[str] = []
    for _path, text in notes:
        requests = _requests(text)
        if not is_request(text):
            said = "\n".join(row for row in text.splitlines() if not _FREE_REQUEST.fullmatch(row))
            asked = [one for one in asked if not says(said, one)]
        asked += requests
    return tuple(dict.fromkeys(asked))


def says(text: str, wanted: str) -> bool:
    """Say whether a text holds the words of another in a row, letter case and punctuation aside."""
    words = " ".join(words_of(wanted))
    return bool(words) and f" {words} " in f" {' '.join(words_of(text))} "


def _requests(text: str) -> list[str]:
    if is_request(text):
        quoted = [row[1:].strip() for row in text.splitlines() if row.startswith(">")]
        return [" ".join(quoted)] if any(quoted) else []
    return [match[1].strip() for row in text.splitlines() if (match := _FREE_REQUEST.fullmatch(row))]


def _slug(text: str) -> str:
    body = text.rsplit("\n> ", 1)[-1] if is_request(text) else _ORIGIN.sub("", text)
    slug = _NO_SLUG.sub("-", body.strip().lower())[:MAX_SLUG].strip("-") or "note"
    return f"forget-{slug}"[:MAX_SLUG].rstrip("-") if is_request(text) else slug


def _real_folder(home: Home) -> Path:
    """Return the folder of notes, made where it is missing; each component must be a real folder."""
    folder = home.memories
    for name in ("", *AD_HOC_NOTES.split("/")):
        folder = folder / name
        with translated("make the folder", folder, remedy="free the name, or check the permissions and the disk"):
            folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():
            raise StorageError(
                f"{folder} is a symlink, and notes are written to real folders only", remedy="put a folder in its place"
            )
    return folder


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
