"""Proposals as git keeps them: one ref each, so that nothing that waits for a person's word is ever collected."""

import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import DIFF_FILE

PROPOSALS: Final = "refs/memoryd/proposals"


def ref_of(number: int) -> str:
    """Return the ref that keeps a proposal."""
    return f"{PROPOSALS}/{number}"


def digest_of(staged: Folder) -> str:
    """Return a digest of what a run works from; the diff that is made of it does not count."""
    digest = sha256()
    for path, text in sorted(staged.files.items()):
        if path != DIFF_FILE:
            digest.update(f"{path}\0{len(text)}\0{text}".encode("utf-8", "replace"))
    return digest.hexdigest()


def keep_proposals(repo: Repository, waiting: Mapping[int, str]) -> None:
    """Make the refs of proposals exactly those that wait (number: commit); idempotent, and nearly free without any.

    A proposal whose commit is not there any more (the history was built anew) gets no ref.
    """
    if not waiting and not _may_have_refs(repo):
        return
    out = repo.run("for-each-ref", "--format=%(refname) %(objectname)", f"{PROPOSALS}/").decode()
    there = dict(row.split(" ", 1) for row in out.splitlines())
    wanted = {ref_of(number): commit for number, commit in waiting.items() if repo.resolve(commit)}
    lines = [f"update {ref} {commit}" for ref, commit in wanted.items() if there.get(ref) != commit]
    lines += [f"delete {ref} {commit}" for ref, commit in there.items() if ref not in wanted]
    if lines:
        repo.run("update-ref", "--stdin", stdin="".join(f"{line}\n" for line in lines).encode())


def _may_have_refs(repo: Repository) -> bool:
    return any(os.path.lexists(repo.git_dir / name) for name in (PROPOSALS, "packed-refs"))
