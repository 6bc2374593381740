from memoryd.recall.summary import of_project

SUMMARY = """\
v1

## User Profile

A person.

## User preferences

- short answers

## General Tips

## What's in Memory

### /src/app

#### 2026-11-01

- Paging: pages
  - desc: how pages are counted
  - learnings: round up

### /src/other

#### 2026-11-02

- Login: cookies
  - desc: how people log in

### Older Memory Topics
"""


def test_a_project_is_given_its_own_entries_and_of_others_the_topics() -> None:
    given = of_project(SUMMARY, "/src/app/deep")
    assert "how pages are counted" in given
    assert "round up" in given
    assert "- Login: cookies" in given
    assert "how people log in" not in given


def test_a_folder_of_no_project_is_given_the_topics_and_what_holds_everywhere() -> None:
    given = of_project(SUMMARY, "/elsewhere")
    assert "- short answers" in given
    assert "- Paging: pages" in given
    assert "how pages are counted" not in given


def test_a_sibling_with_the_same_beginning_is_another_project() -> None:
    assert "how pages are counted" not in of_project(SUMMARY, "/src/app2")


def test_a_summary_of_a_persons_own_form_is_given_whole() -> None:
    own = "v1\n\nWhatever I like to write here.\n"
    assert of_project(own, "/src/app") == own
