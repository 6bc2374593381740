"""Where everything of one memoryd home lies, and the names of the memory folder's own files."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from memoryd.errors import StorageError
from memoryd.workspace.files import translated

MEMORY_FILE: Final = "MEMORY.md"
SUMMARY_FILE: Final = "memory_summary.md"
SKILLS: Final = "skills"
ROLLOUT_SUMMARIES: Final = "rollout_summaries"
RAW_MEMORIES: Final = "raw_memories.md"
EXTENSIONS: Final = "extensions"
DIFF_FILE: Final = "phase2_workspace_diff.md"
AD_HOC_INSTRUCTIONS: Final = f"{EXTENSIONS}/ad_hoc/instructions.md"
AD_HOC_NOTES: Final = f"{EXTENSIONS}/ad_hoc/notes"

MISFIT_REMEDY: Final = "move it elsewhere: memoryd makes its own in its place"
ALWAYS_THERE: Final = (MEMORY_FILE, SUMMARY_FILE)
"""The two files that agents read: once written they exist for good; published last, in this order."""

_OWN_FILES: Final = (*ALWAYS_THERE, RAW_MEMORIES, DIFF_FILE)
OWN_FOLDERS: Final = (ROLLOUT_SUMMARIES, SKILLS, EXTENSIONS, f"{EXTENSIONS}/ad_hoc", AD_HOC_NOTES)


def is_evidence(path: str) -> bool:
    """Say whether a path of the memory folder belongs to what is made of the selected sessions."""
    folder, _, name = path.partition("/")
    return path == RAW_MEMORIES or (folder == ROLLOUT_SUMMARIES and name.endswith(".md") and "/" not in name)


def is_misplaced(path: str) -> bool:
    """Say whether a file stands where memoryd has a folder, or in a folder where memoryd has a file."""
    above = [parent.as_posix() for parent in PurePosixPath(path).parents]
    return path in OWN_FOLDERS or any(folder in _OWN_FILES or is_evidence(folder) for folder in above)


@dataclass(frozen=True, slots=True)
class Home:
    """One MEMORYD_HOME: the only folder that memoryd writes."""

    path: Path

    @property
    def config_file(self) -> Path:
        """The user's settings."""
        return self.path / "config.toml"

    @property
    def ledger_file(self) -> Path:
        """Jobs, stage-1 outputs and their companions."""
        return self.path / "ledger.sqlite3"

    @property
    def memories(self) -> Path:
        """The memory folder, which a person reads and edits."""
        return self.path / "memories"

    @property
    def git_dir(self) -> Path:
        """The history of the memory folder."""
        return self.memories / ".git"

    @property
    def staging(self) -> Path:
        """Consolidations in progress."""
        return self.path / "staging"

    @property
    def quarantine(self) -> Path:
        """What runs left where nothing belongs."""
        return self.path / "quarantine"

    @property
    def recall(self) -> Path:
        """Ready-made summaries per project."""
        return self.path / "recall"

    @property
    def bin(self) -> Path:
        """The hook's runner."""
        return self.path / "bin"

    @property
    def backups(self) -> Path:
        """Daily copies of the ledger."""
        return self.path / "backups"

    @property
    def lock_file(self) -> Path:
        """Held by the process that may write."""
        return self.path / "memoryd.lock"

    @property
    def socket(self) -> Path:
        """The daemon's control socket."""
        return self.path / "memoryd.sock"

    def links(self) -> list[Path]:
        """Return what memoryd would write to, and by it to another place: links of its own folders and files.

        The home itself may be a link, and so may the settings, which are only read.
        """
        return [path for path in (*self._folders(), self.ledger_file, self.lock_file) if path.is_symlink()]

    def misfits(self) -> dict[Path, str]:
        """Return what is neither the folder nor the file that belongs there, each with what it is not.

        Whoever opens a FIFO waits for ever.
        """
        folders = {path: "no folder" for path in self._folders() if path.exists() and not path.is_dir()}
        files = (self.ledger_file, self.lock_file)
        return folders | {path: "no regular file" for path in files if path.exists() and not path.is_file()}

    def _folders(self) -> tuple[Path, ...]:
        return (self.memories, self.staging, self.quarantine, self.recall, self.bin, self.backups)


def prepare(home: Home) -> None:
    """Make the home's folders that are missing, 0700; what exists keeps its mode.

    Raises StorageError (DiskFull) where a folder cannot be made, and where something else, or a link, is in the place
    of one, or of the ledger or the lock.
    """
    refuse_links(home)
    for path, is_not in home.misfits().items():
        raise StorageError(f"{path} is {is_not}", remedy=MISFIT_REMEDY)
    for folder in (home.path, home.memories, home.staging, home.recall, home.bin):
        with translated("make the folder", folder, remedy="free the name, or choose another place with --home"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def refuse_links(home: Home) -> None:
    """Raise StorageError where something in the home is a link: nothing outside of it is ever written."""
    for path in home.links():
        raise StorageError(
            f"{path} is a symlink, and memoryd writes nothing outside its home", remedy=link_remedy(home)
        )


def link_remedy(home: Home) -> str:
    """Return what to do about a link in the home."""
    return f"put what it leads to in its place, or move all of {home.path}, which itself may be a link"
