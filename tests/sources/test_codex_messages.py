"""The words of a message go to whoever said them: by what the file itself says, else by their markers."""

import json
from collections import Counter
from typing import Any

import pytest

from memoryd.sources.codex_messages import environment_cwd, message_items, parse_message, speaks_human
from memoryd.sources.items import ItemKind
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields

SPOT = Spot(4, 100.0, "/home/dev/shop")


def said(role: str, *parts: Any, **fields: Any) -> tuple[list[tuple[ItemKind, str]], Counter[str]]:
    content = [{"type": "input_text", "text": part} if isinstance(part, str) else part for part in parts]
    payload = {"type": "message", "role": role, "content": content} | fields
    dropped: Counter[str] = Counter()
    items = message_items(parse_message(as_fields(json.dumps(payload).encode())), SPOT, dropped)
    assert all((item.ordinal, item.at, item.cwd) == (4, 100.0, "/home/dev/shop") for item in items)
    return [(item.kind, item.text) for item in items], dropped


def metadata(*kinds: str | None, provenance: list[Any] | None = None) -> dict[str, Any]:
    inner: dict[str, Any] = {"content_item_kinds": list(kinds)} if kinds else {}
    if provenance is not None:
        inner["content_item_metadata"] = [{"provenance": entry} for entry in provenance]
    return {"internal_chat_message_metadata_passthrough": inner}


AGENTS_MD = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nrun tests\n</INSTRUCTIONS>"
CONTEXT = "<environment_context>\n  <cwd> /home/dev/old </cwd>\n</environment_context>"


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("Please fix it", ItemKind.HUMAN, None),
        (AGENTS_MD, None, "agents_md"),
        (f"  \n{AGENTS_MD.upper()}\n", None, "agents_md"),
        ("# AGENTS.md instructions are wrong, please fix them", ItemKind.HUMAN, None),
        ("<skill>\nname\n</skill>", None, "skill"),
        ("<SKILL>\nname\n</Skill>", None, "skill"),
        ("<skill> is a tag I want you to explain", ItemKind.HUMAN, None),
        ("<user_instructions>\nrules\n</user_instructions>", None, "agents_md"),
        (CONTEXT, ItemKind.HARNESS_CONTEXT, None),
        ("<turn_aborted>\nThe user interrupted\n</turn_aborted>", ItemKind.HARNESS_CONTEXT, None),
        ("<user_shell_command>\nls\n</user_shell_command>", ItemKind.HARNESS_CONTEXT, None),
        ('<subagent_notification>\n{"status":{}}\n</subagent_notification>', ItemKind.OTHER_AGENT, None),
    ],
)
def test_markers_decide_where_the_file_says_nothing(text: str, kind: ItemKind | None, reason: str | None) -> None:
    items, dropped = said("user", text)
    assert [item_kind for item_kind, _ in items] == ([kind] if kind else [])
    assert dict(dropped) == ({reason: 1} if reason else {})


@pytest.mark.parametrize(
    ("origin", "kind", "reason"),
    [
        ("user.text", ItemKind.HUMAN, None),
        ("agents_md.instructions", None, "agents_md"),
        ("environments.environment_context", ItemKind.HARNESS_CONTEXT, None),
        ("memories.instructions", None, "memories"),
        ("skills.skill", None, "skill"),
        ("host_skills.instructions", None, "skill"),
        ("multi_agent.subagent_notification", ItemKind.OTHER_AGENT, None),
        ("generic.turn_aborted", ItemKind.HARNESS_CONTEXT, None),
        ("something.new", ItemKind.HARNESS_CONTEXT, None),
    ],
)
def test_the_kind_that_the_file_gives_wins_over_markers(origin: str, kind: ItemKind | None, reason: str | None) -> None:
    for text in ("plain words", AGENTS_MD):
        items, dropped = said("user", text, **metadata(origin))
        assert [item_kind for item_kind, _ in items] == ([kind] if kind else [])
        assert dict(dropped) == ({reason: 1} if reason else {})


@pytest.mark.parametrize(
    ("provenance", "kind"),
    [
        ({"type": "user"}, ItemKind.HUMAN),
        ({"type": "harness", "hook": False}, ItemKind.HARNESS_CONTEXT),
        ({"type": "tool", "namespace": "multi_agent_v1"}, ItemKind.OTHER_AGENT),
        ({"type": "tool", "namespace": "browser"}, ItemKind.HARNESS_CONTEXT),
        ({"type": "agents_md"}, None),
        ({}, ItemKind.HUMAN),
        (None, ItemKind.HUMAN),
    ],
)
def test_provenance_decides_where_no_kind_is_given(provenance: Any, kind: ItemKind | None) -> None:
    for kinds in ((), ("unknown",)):
        items, _ = said("user", "words", **metadata(*kinds, provenance=[provenance]))
        assert [item_kind for item_kind, _ in items] == ([kind] if kind else [])


def test_parts_are_judged_one_by_one_and_runs_of_one_speaker_become_one_item() -> None:
    items, dropped = said(
        "user", AGENTS_MD, CONTEXT, "first", "second", {"type": "input_image", "image_url": "data:..."}, "third"
    )
    assert items == [(ItemKind.HARNESS_CONTEXT, CONTEXT), (ItemKind.HUMAN, "first\n\nsecond\n\nthird")]
    assert dropped == {"agents_md": 1, "image": 1}


def test_an_image_does_not_shift_what_the_file_says_of_the_parts() -> None:
    image = {"type": "input_image", "image_url": "data:..."}
    items, _ = said("user", image, "words", CONTEXT, **metadata("user.image", "user.text", "environments.context"))
    assert items == [(ItemKind.HUMAN, "words"), (ItemKind.HARNESS_CONTEXT, CONTEXT)]


def test_a_run_that_ends_in_a_dropped_part_is_not_lost() -> None:
    items, dropped = said("user", "words", {"type": "input_audio", "data": "..."})
    assert items == [(ItemKind.HUMAN, "words")]
    assert dropped == {"audio": 1}


def test_developer_and_system_messages_are_dropped() -> None:
    for role in ("developer", "system"):
        assert said(role, "rules") == ([], Counter({"developer": 1}))


def test_other_roles_are_context() -> None:
    assert said("tool", "words")[0] == [(ItemKind.HARNESS_CONTEXT, "words")]


def test_empty_parts_and_contents_of_the_wrong_type_give_nothing() -> None:
    assert said("user", "  \n", {"type": "input_text"}, {"type": "mystery"}, 5, None) == ([], Counter())
    assert said("user", content=None) == ([], Counter())
    assert said("user", content={"text": "x"}) == ([], Counter())


def test_a_content_that_is_one_string_is_its_only_part() -> None:
    assert said("user", content="hello")[0] == [(ItemKind.HUMAN, "hello")]


def test_the_phase_is_kept_as_the_file_says_it() -> None:
    payload = b'{"role":"assistant","id":"msg_1","phase":"commentary","content":[{"type":"output_text","text":"x"}]}'
    message = parse_message(as_fields(payload))
    assert (message.phase, message.message_id) == ("commentary", "msg_1")
    assert not speaks_human(message)


def test_the_directory_is_read_from_the_environment_context_only() -> None:
    def directory(text: str) -> str | None:
        payload = {"role": "user", "content": [{"type": "input_text", "text": text}]}
        return environment_cwd(parse_message(as_fields(json.dumps(payload).encode())))

    assert directory(CONTEXT) == "/home/dev/old"
    assert directory("my <cwd>/home/dev/else</cwd> is this") is None
    assert directory("<environment_context></environment_context>") is None
