"""Which files and directories mattered."""

from memoryd.pipeline.offline_files import edited_paths, is_edit, named_paths, places_of
from memoryd.sources.items import Item, ItemKind
from tests.support.offline_sessions import CWD, final, flat, human, patch, run


def test_edited_files_come_first_and_both_spellings_of_a_path_count_together() -> None:
    places = places_of(
        flat(
            human("Look at src/a.py and docs/guide.md."),
            patch(f"{CWD}/src/a.py", "src/b.py"),
            patch("src/a.py"),
            run("cat docs/guide.md"),
            final("I changed src/a.py and read once.md."),
        ),
        cwd=CWD,
    )

    assert places.edited == ("src/a.py", "src/b.py")
    assert places.named == ("docs/guide.md",)
    assert places.directories == ()


def test_a_directory_that_holds_several_of_them_mattered() -> None:
    places = places_of(flat(patch("src/x/a.py", "src/x/b.py", "src/x/c.py", "d.py")), cwd=None)

    assert places.directories == ("src/x/",)


def test_edits_are_seen_in_patches_tools_and_shell_commands() -> None:
    items = [
        *patch("a.py"),
        Item(ItemKind.TOOL_CALL, '{"file_path": "/w/b.ts", "content": ""}', 0, tool="Write"),
        Item(ItemKind.TOOL_CALL, "sed -i 's/x/y/' c.cfg", 0, tool="shell"),
        Item(ItemKind.TOOL_CALL, "cat > d.md <<'EOF'\nx\nEOF", 0, tool="shell"),
        Item(ItemKind.TOOL_CALL, "make 2> /dev/null.txt; grep a->b.py", 0, tool="shell"),
        human("*** Update File: no.py"),
    ]

    assert edited_paths(items) == ["a.py", "/w/b.ts", "c.cfg", "d.md"]


def test_patches_and_editing_tools_are_edits() -> None:
    kinds = [is_edit(item) for item in (patch("a.py")[0], *run("make")[:1], Item(ItemKind.TOOL_CALL, "x", 0))]

    assert kinds == [True, False, False]


def test_paths_are_told_from_addresses_versions_and_words() -> None:
    text = "See https://example.com/a.py, v1.2.md5, e.g. this, src/app.py, ./Makefile, ~/x/conf.toml and index.html."

    assert named_paths(text) == ["src/app.py", "./Makefile", "~/x/conf.toml", "index.html"]
