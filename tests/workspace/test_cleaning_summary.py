"""What of the summary goes with evidence that is gone, where nothing is cited and words decide."""

from memoryd.workspace.cleaning_summary import Lost, clean_summary
from memoryd.workspace.forgotten_words import ForgottenWords

SUMMARY = """v1

## User Profile

## User preferences

## General Tips

## What's in Memory

### /home/dev/shop

#### 2026-11-14

- always use squashed merges: always, use, squashed, merges
  - desc: uncertain
- always use tabs: always, use, tabs
  - desc: uncertain

### Older Memory Topics
"""


def lost(*, gone: str, stays: str) -> Lost:
    return Lost(frozenset(), frozenset(), ForgottenWords.of([gone], [stays], strict=False))


def test_a_topic_that_only_gone_evidence_has_words_for_goes_though_its_project_stands() -> None:
    text, removed = clean_summary(SUMMARY, lost(gone="always use squashed merges", stays="always use tabs uncertain"))
    assert "squashed" not in text
    assert "- always use tabs: always, use, tabs\n  - desc: uncertain\n" in text
    assert "always use squashed merges: always, use, squashed, merges" in removed


def test_a_topic_whose_words_others_have_too_loses_the_keywords_that_they_do_not_have() -> None:
    text, _ = clean_summary(SUMMARY, lost(gone="squashed", stays="always use tabs merges uncertain"))
    assert "- always use squashed merges: always, use, merges\n" in text


def test_a_summary_that_loses_nothing_comes_back_to_the_byte() -> None:
    assert clean_summary(SUMMARY, lost(gone="rebase", stays="tabs")) == (SUMMARY, [])
