"""Another memory folder without what rests on sessions that are not to be remembered here: forgotten, or disabled."""

from collections.abc import Collection
from typing import Final

from memoryd.workspace.cleaning import clean_up
from memoryd.workspace.cleaning_summary import clean_summary
from memoryd.workspace.folder import MAX_FILE_BYTES, Folder
from memoryd.workspace.headers import headers_of
from memoryd.workspace.layout import RAW_MEMORIES, SUMMARY_FILE
from memoryd.workspace.rereading import reread

_ANY_SIZE: Final = MAX_FILE_BYTES


def without_sessions(folder: Folder, threads: Collection[str]) -> Folder:
    """Return a folder as a purge of these sessions leaves it, its summary judged by words rather than written anew.

    A purge may have been what a person asked for, and its words must not come back by another way.
    """
    doomed = {path for path, header in headers_of(folder).items() if header.thread_id in threads}
    if not doomed:
        return folder
    left = {path: text for path, text in folder.files.items() if path not in doomed}
    if RAW_MEMORIES in left:
        left[RAW_MEMORIES] = "\n".join(each.raw_memory for each in reread(folder) if each.thread_id not in threads)
    work = Folder(left, folder.odd)
    cleaning = clean_up(folder, work, purge=True, max_summary_bytes=_ANY_SIZE)
    texts = {**left, **cleaning.texts}
    if left.get(SUMMARY_FILE):
        texts[SUMMARY_FILE], _ = clean_summary(left[SUMMARY_FILE], cleaning.lost)
    return Folder({path: text for path, text in texts.items() if text is not None}, folder.odd)
