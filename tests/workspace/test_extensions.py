from pathlib import Path

from memoryd.workspace.extensions import expire_extension_resources, seed_instructions
from memoryd.workspace.layout import AD_HOC_INSTRUCTIONS
from memoryd.workspace.stems import stamp_time
from tests.workspace.factories import read_files, write_files

WEEK = 7 * 86_400.0
AT = stamp_time("2025-03-08T00-00-00") or 0.0


def test_resources_go_exactly_when_they_are_as_old_as_the_retention(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "extensions/x/instructions.md": "i",
            "extensions/x/resources/2025-03-01T00-00-00-due.md": "",
            "extensions/x/resources/2025-03-01T00-00-01-young.md": "",
            "extensions/x/resources/2025-99-01T00-00-00-no-time.md": "",
            "extensions/x/resources/other.md": "",
            "extensions/x/resources/2024-03-01T00-00-00-note.txt": "",
            "extensions/x/notes/2024-03-01T00-00-00-note.md": "",
            "extensions/no-extension/resources/2024-03-01T00-00-00-a.md": "",
        },
    )
    assert expire_extension_resources(tmp_path, AT, WEEK) == ["extensions/x/resources/2025-03-01T00-00-00-due.md"]
    assert len(read_files(tmp_path)) == 7


def test_the_instructions_for_notes_are_written_once_and_never_over_a_persons(tmp_path: Path) -> None:
    seed_instructions(tmp_path)
    assert "[ad-hoc note]" in (tmp_path / AD_HOC_INSTRUCTIONS).read_text()
    (tmp_path / AD_HOC_INSTRUCTIONS).write_text("mine")
    seed_instructions(tmp_path)
    assert (tmp_path / AD_HOC_INSTRUCTIONS).read_text() == "mine"
