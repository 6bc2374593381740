"""Messages of a Codex session: which words are the person's, which the harness's, another agent's or the assistant's.

New files say it part by part (content_item_kinds, then provenance); in older ones the markers of the text decide.
"""

import re
from collections import Counter
from itertools import groupby
from operator import itemgetter

import msgspec
from msgspec import Raw

from memoryd.sources.codex_records import ContentPart, Payload
from memoryd.sources.items import ASSISTANT_FINAL, HARNESS_CONTEXT, HUMAN, OTHER_AGENT, Item
from memoryd.sources.parts import Part, Spot
from memoryd.sources.rawjson import as_fields, as_list, as_text, is_text

DEVELOPER_ROLES = frozenset({"developer", "system"})
MEDIA_PARTS = {"input_image": "image", "image": "image", "input_audio": "audio"}
_CWD = re.compile(r"<cwd>\s*([^<]+?)\s*</cwd>")


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message of the session; `phase` is the assistant's own word for it, None where the format has none."""

    role: str
    parts: tuple[Part, ...]
    phase: str | None
    message_id: str | None


# content_item_kinds are `<family>.<name>`; a family that is not listed is the harness speaking
FAMILIES = {
    "user": Part(HUMAN, ""),
    "agents_md": Part(None, "", "agents_md"),
    "skills": Part(None, "", "skill"),
    "host_skills": Part(None, "", "skill"),
    "memories": Part(None, "", "memories"),
    "compaction": Part(None, "", "compaction"),
    "multi_agent": Part(OTHER_AGENT, ""),
}
HARNESS = Part(HARNESS_CONTEXT, "")

# opening marker, closing marker (empty: none needed), whose text it is; compared without regard to letter case
MARKERS = (
    ("# agents.md instructions", "</instructions>", FAMILIES["agents_md"]),
    ("<user_instructions>", "", FAMILIES["agents_md"]),
    ("<skill>", "</skill>", FAMILIES["skills"]),
    ("<environment_context>", "", HARNESS),
    ("<turn_aborted>", "", HARNESS),
    ("<user_shell_command>", "</user_shell_command>", HARNESS),
    ("<subagent_notification>", "", FAMILIES["multi_agent"]),
)
_LONGEST_MARKER = max(len(marker) for pair in MARKERS for marker in pair[:2])


def parse_message(fields: dict[str, Raw]) -> Message:
    """Read a `message` payload into parts; media and empty parts are left out (media leaves its reason)."""
    role = as_text(fields.get("role")) or ""
    said = fields.get("internal_chat_message_metadata_passthrough")
    origins = _origins(said) if role == "user" else []
    parts: list[Part] = []
    for index, raw in enumerate(content_parts(fields.get("content"))):
        text, medium = part_text(raw)
        if medium:
            parts.append(Part(None, "", medium))
        elif text.strip():
            parts.append(_attribute(text, role, origins[index] if index < len(origins) else None))
    phase = as_text(fields.get("phase"))
    return Message(role, tuple(parts), phase, as_text(fields.get("id")))


def usual_message(payload: Payload) -> Message:
    """Return the same of a `message` payload that is decoded already."""
    role, content = payload.role, payload.content
    origins = _origins(payload.said) if role == "user" else []
    parts: list[Part] = []
    for index, part in enumerate([ContentPart("", content)] if isinstance(content, str) else content or ()):
        if medium := MEDIA_PARTS.get(part.type):
            parts.append(Part(None, "", medium))
        elif part.text and not part.text.isspace():
            parts.append(_attribute(part.text, role, origins[index] if index < len(origins) else None))
    return Message(role, tuple(parts), payload.phase, payload.id)


def content_parts(raw: Raw | None) -> list[Raw]:
    """Return the parts of a content value: an array's, or the one string that it is."""
    if raw and is_text(raw):
        return [raw]
    return as_list(raw)


def part_text(raw: Raw) -> tuple[str, str | None]:
    """Return a part's text, or an empty one and the name of the medium that it is."""
    if is_text(raw):
        return as_text(raw) or "", None
    fields = as_fields(raw)
    medium = MEDIA_PARTS.get(as_text(fields.get("type")) or "")
    return ("", medium) if medium else (as_text(fields.get("text")) or "", None)


def speaks_human(message: Message) -> bool:
    """Say whether a message begins a human turn."""
    return any(part.kind is HUMAN for part in message.parts)


def message_items(message: Message, spot: Spot, dropped: Counter[str]) -> list[Item]:
    """Turn a message into items, one per run of parts of the same speaker; what is dropped is counted."""
    if message.role in DEVELOPER_ROLES:
        dropped["developer"] += 1
        return []
    if len(message.parts) == 1 and (kind := message.parts[0].kind) is not None:  # what nearly every message is
        return [Item(kind, message.parts[0].text.strip(), spot.ordinal, spot.at, spot.cwd)]
    dropped.update(part.reason for part in message.parts if part.kind is None)
    kept = [(part.kind, part.text.strip()) for part in message.parts if part.kind is not None]
    return [
        Item(kind, "\n\n".join(text for _, text in run), spot.ordinal, spot.at, spot.cwd)
        for kind, run in groupby(kept, key=itemgetter(0))
    ]


def environment_cwd(message: Message) -> str | None:
    """Return the directory that an <environment_context> part names."""
    for part in message.parts:
        if part.kind is HARNESS_CONTEXT and (found := _CWD.search(part.text)):
            return found.group(1)
    return None


def _attribute(text: str, role: str, origin: Part | None) -> Part:
    """Say who speaks in a part of a message of this role."""
    if role == "assistant":
        return Part(ASSISTANT_FINAL, text)
    if role != "user":
        return Part(HARNESS_CONTEXT, text)
    speaker = origin or _by_marker(text)
    return Part(speaker.kind, text, speaker.reason)


def _by_marker(text: str) -> Part:
    trimmed = text.strip()
    start, end = trimmed[:_LONGEST_MARKER].lower(), trimmed[-_LONGEST_MARKER:].lower()
    for opening, closing, speaker in MARKERS:
        if start.startswith(opening) and end.endswith(closing):
            return speaker
    return FAMILIES["user"]


def _origins(raw: Raw | None) -> list[Part | None]:
    """Return what the file itself says of each part, None where it says nothing."""
    if not raw:
        return []
    said = as_fields(raw)
    kinds = [_by_kind(as_text(raw)) for raw in as_list(said.get("content_item_kinds"))]
    provenances = [_by_provenance(raw) for raw in as_list(said.get("content_item_metadata"))]
    length = max(len(kinds), len(provenances))
    kinds += [None] * (length - len(kinds))
    provenances += [None] * (length - len(provenances))
    return [kind or provenance for kind, provenance in zip(kinds, provenances, strict=True)]


def _by_kind(kind: str | None) -> Part | None:
    if not kind or kind == "unknown":
        return None
    return FAMILIES.get(kind.partition(".")[0], HARNESS)


def _by_provenance(raw: Raw) -> Part | None:
    provenance = as_fields(as_fields(raw).get("provenance"))
    kind = as_text(provenance.get("type"))
    if kind == "tool":
        namespace = as_text(provenance.get("namespace")) or ""
        return FAMILIES["multi_agent"] if namespace.startswith("multi_agent") else HARNESS
    return _by_kind(kind)
