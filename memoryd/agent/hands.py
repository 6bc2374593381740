"""Carry out one parsed call in the folder, and say what it did in a form that can be counted."""

from dataclasses import dataclass

from memoryd.agent.files import Folder
from memoryd.agent.literal import decode
from memoryd.agent.paths import check_writable, components
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.agent.tools import Change, DeleteFile, EditFile, Look, WriteFile
from memoryd.agent.views import look
from memoryd.text import plain


@dataclass(frozen=True, slots=True)
class Deed:
    """The answer to one call. `changed`: a file is different now; `refusal`: why it was not carried out."""

    answer: str
    changed: bool = False
    refusal: RefusalKind | None = None


def perform(folder: Folder, request: Look | Change) -> Deed:
    """Carry out a call; a refusal is an answer, too. Raises StorageError and DiskFull only."""
    try:
        match request:
            case WriteFile():
                return _write(folder, request)
            case EditFile():
                return _edit(folder, request)
            case DeleteFile():
                return _delete(folder, request)
            case _:
                return Deed(look(folder, request))
    except RefusedError as refused:
        return refuse(refused)


def refuse(refused: RefusedError) -> Deed:
    """Render a refusal as the answer to its call."""
    return Deed(refused.answer, refusal=refused.kind)


def _write(folder: Folder, request: WriteFile) -> Deed:
    parts = components(request.path)
    data = _seen(request.content).encode()
    if not folder.write(parts, data):
        return Deed(f"unchanged: {request.path} held exactly this already")
    return Deed(f"written: {request.path}, {len(data)} bytes", changed=True)


def _edit(folder: Folder, request: EditFile) -> Deed:
    parts = components(request.path)
    check_writable(parts)
    text = decode(folder.read(parts), request.path)
    at = _only_occurrence(text, request)
    data = (text[:at] + _seen(request.new) + text[at + len(request.old) :]).encode()
    if not folder.write(parts, data):
        return Deed(f"unchanged: old and new are the same in {request.path}")
    return Deed(f"edited: {request.path}, {len(data)} bytes", changed=True)


def _delete(folder: Folder, request: DeleteFile) -> Deed:
    folder.delete(components(request.path))
    return Deed(f"deleted: {request.path}", changed=True)


def _only_occurrence(text: str, request: EditFile) -> int:
    if not request.old:
        raise RefusedError(RefusalKind.BAD_ARGUMENTS, "edit_file: old is empty; write_file replaces a whole file")
    at = text.find(request.old)
    if at < 0:
        raise RefusedError(
            RefusalKind.NOT_UNIQUE, f"old does not occur in {request.path}: copy the passage exactly from read_file"
        )
    if text.find(request.old, at + 1) >= 0:
        raise RefusedError(
            RefusalKind.NOT_UNIQUE,
            f"old occurs more than once in {request.path}: take in more of what stands around it",
        )
    return at


def _seen(content: str) -> str:
    """Return what a reader sees of the model's text: what nobody sees hides secrets and headings from who judges it."""
    if "\0" in content:
        raise RefusedError(RefusalKind.NOT_TEXT, "the content holds a NUL character: only text can be written")
    try:
        content.encode("utf-8")
    except UnicodeEncodeError:
        raise RefusedError(RefusalKind.NOT_TEXT, "the content is no valid Unicode text") from None
    return plain(content)
