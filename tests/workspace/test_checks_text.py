import pytest

from memoryd.workspace.checks_text import is_omission


@pytest.mark.parametrize(
    "line",
    [
        "...",
        "- …",
        "[rest unchanged]",
        "- [rest unchanged]",
        "... (unchanged)",
        "(... unchanged ...)",
        "# ... existing content ...",
        "<!-- ... existing sections unchanged ... -->",
        "... rest of the file ...",
        "[... other tasks omitted ...]",
        "[remaining bullets kept as before]",
        "(omitted for brevity)",
        "The remaining tasks are unchanged.",
        "## Task 2: x … (unchanged)",
        "- use tabs [rest of the section]",
        "[...truncated...]",
        "[... 12 lines ...]",
        "// ... previous entries unchanged",
        "<!-- unchanged -->",
        "<!-- rest of the handbook stays the same -->",
        "# ... keep existing ...",
        "[Same as above]",
        "[content unchanged]",
        "{{rest unchanged}}",
        "*(unchanged)*",
        "`[rest unchanged]`",
        "- [unchanged] [Task 1] [stated]",
        "- ... [Task 1] [stated]",
        "# Task Group: [unchanged]",
        "## Task 3: ... (unchanged)",
        "<rest of file>",
        "--- rest unchanged ---",
        "[…]",
        "unchanged",
        "[snip]",
        "[remaining content as in previous version]",
    ],
)
def test_a_line_that_stands_for_omitted_text_is_seen(line: str) -> None:
    assert is_omission(line)


@pytest.mark.parametrize(
    "line",
    [
        "- use tabs [Task 1] [stated]",
        "- other settings are kept the same between runs [Task 1] [stated]",
        '- the user said: "no ... just keep it" [Task 1] [stated]',
        "- the server answers 304 (unchanged) [Task 1] [verified]",
        "- `[rest unchanged]` is what the model wrote [Task 1] [verified]",
        "- see [the rest of the guide](docs/guide.md) [Task 1] [verified]",
        "- go test ./... passes [Task 2] [verified]",
        "- the rest of the pipeline is unchanged by this flag and stays fast [Task 1] [verified]",
        "- tail -n +5 prints the remaining lines [Task 1] [verified]",
        "- keep existing files [Task 1] [stated]",
        "- leave the rest as it is [Task 1] [stated]",
        "- `unchanged` is printed [Task 1] [verified]",
        "## Task 1: keep it the same",
        "---",
        "### keywords",
        "",
    ],
)
def test_ordinary_sentences_are_left_alone(line: str) -> None:
    assert not is_omission(line)
