"""What a forgetting takes of imports: they are kept like a person's words, and go with the session they came from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from memoryd.pipeline.context import Context
from memoryd.pipeline.importing import digest_of_resource
from memoryd.workspace import importing_record, protection
from memoryd.workspace.cleaning import Cleaning
from memoryd.workspace.folder import Folder
from memoryd.workspace.importing_resources import written_in
from memoryd.workspace.layout import SUMMARY_FILE
from memoryd.workspace.outline import Line, read_outline, walk
from memoryd.workspace.protection import Protection
from memoryd.workspace.staging import Staging


@dataclass(frozen=True, slots=True)
class Theirs:
    """What is the person's in a staged folder; `brought` came with an import, and is forgotten like memoryd's own.

    `rows` are the rows of each file that the person wrote.
    """

    guarded: Protection
    brought: Mapping[str, tuple[Line, ...]]
    rows: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, context: Context, staged: Staging, recorded: Collection[str]) -> "Theirs":
        """Find out whose the lines of a staged folder are (blocking); `recorded`: digests of what imports brought."""
        guarded = protection.read_protection(context.repository, staged)
        if staged.parent is None or not guarded.guarded:
            return cls(guarded, {}, {})
        brought = importing_record.brought(context.repository, staged.parent, guarded, recorded)
        own = importing_record.without(guarded, brought)
        files = Folder.read(staged.base)
        rows = {path: _rows_of(files.text(path), each.persons) for path, each in own.guarded.items()}
        return cls(guarded, brought, rows)

    def still_guarded(self, cleaning: Cleaning) -> Protection:
        """Return what is put back where it was lost: of what came with an import, what rests on nothing that is gone.

        The handbook was judged statement by statement; the summary may have been written anew.
        """
        gone = {path: list(lines) for path, lines in self.brought.items()}
        if SUMMARY_FILE in gone:
            gone[SUMMARY_FILE] = [line for line in gone[SUMMARY_FILE] if cleaning.lost.words.are_in(line.key)]
        return importing_record.without(self.guarded, gone)

    def standing(self, after: Folder, kept: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Return the rows of each file that stay the person's, those that came with an import included."""
        return {
            path: kept.get(path, frozenset())
            | importing_record.standing_rows(after.text(path), self.brought.get(path, ()))
            for path in {*kept, *self.brought}
        }

    def recorded(self, after: Folder, recorded: Collection[str], *, purge: bool) -> frozenset[str]:
        """Return the record without what went; after a purge, whose history an undo cannot reach, what stands."""
        keys = {line.key for lines in self.brought.values() for line in lines}
        standing = {line.key for path in self.brought for _, line in walk(read_outline(after.text(path)))}
        stay, go = (frozenset(map(importing_record.digest_of, each)) for each in (keys & standing, keys - standing))
        return stay if purge else frozenset(recorded) - go

    def without_brought(self, after: Folder, persons: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Return the rows of each file that the person wrote."""
        return {
            path: rows - importing_record.standing_rows(after.text(path), self.brought.get(path, ()))
            for path, rows in persons.items()
        }


def withdraw_resources(
    staged: Staging, before: Folder, threads: Collection[str], known: Mapping[str, str]
) -> frozenset[str]:
    """Remove what an import brought that was written in these sessions, unless a person has changed it since.

    `known` are the digests of the resources as imports wrote them. Returns the paths of those that went.
    """
    withdrawn = set()
    for path in written_in(before, threads):
        target = staged.work / path
        if target.is_file() and digest_of_resource(target.read_bytes()) == known.get(path):
            target.unlink()
            withdrawn.add(path)
    return frozenset(withdrawn)


def _rows_of(text: str, numbers: Collection[int]) -> frozenset[str]:
    return frozenset(row for number, row in enumerate(text.split("\n"), start=1) if number in numbers)
