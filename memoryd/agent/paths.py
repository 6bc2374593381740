"""Which paths the agent may name, and which it may write: rules over the string, before any file is touched."""

import re
import unicodedata

from memoryd.agent.refusals import RefusalKind, RefusedError

MEMORY_FILE = "MEMORY.md"
SUMMARY_FILE = "memory_summary.md"
SKILLS = "skills"
SKILL_FILE = "SKILL.md"

MAX_PATH_CHARS = 512
MAX_NAME_BYTES = 255
MAX_DEPTH = 8
MAX_SKILL_DEPTH = 5  # skills/<name>/ and at most three names below

WRITABLE = f"{MEMORY_FILE}, {SUMMARY_FILE} and {SKILLS}/<name>/{SKILL_FILE} (with the skill's own files beside it)"

_SKILL_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SKILL_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# Controls, invisible format characters, surrogates, line and paragraph separators: never part of an honest name.
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def components(path: str, *, folder: bool = False) -> tuple[str, ...]:
    """Split a path into its components; `""` is the memory folder itself and has none.

    With `folder`, one trailing slash is accepted, as list_files writes it. Raises RefusedError for every path that is
    absolute, climbs, is hidden, or holds characters that have no place in a name.
    """
    if folder and len(path) > 1 and path.endswith("/"):
        path = path[:-1]
    if not path:
        return ()
    _refuse_bad_characters(path)
    parts = tuple(path.split("/"))
    if len(parts) > MAX_DEPTH:
        raise RefusedError(RefusalKind.BAD_PATH, f"the path has more than {MAX_DEPTH} components")
    for part in parts:
        _refuse_bad_component(part)
    return parts


def check_writable(parts: tuple[str, ...]) -> None:
    """Raise RefusedError unless the agent may write or delete this file."""
    if parts in ((MEMORY_FILE,), (SUMMARY_FILE,)):
        return
    if parts[:1] == (SKILLS,) and len(parts) >= 3:
        _check_skill_file(parts)
        return
    raise RefusedError(RefusalKind.NOT_WRITABLE, f"only {WRITABLE} may be written or deleted{_hint(parts)}")


def is_visible(name: str) -> bool:
    """Tell whether a name on disk exists for the agent: neither hidden nor unspeakable."""
    try:
        _refuse_bad_characters(name)
        _refuse_bad_component(name)
    except RefusedError:
        return False
    return True


def same_but_for_case(name: str, names: list[str]) -> str | None:
    """Find the visible name that differs from `name` only in case or Unicode form, if there is one."""
    folded = _folded(name)
    return next((other for other in sorted(names) if _folded(other) == folded and is_visible(other)), None)


def _refuse_bad_characters(path: str) -> None:
    if len(path) > MAX_PATH_CHARS:
        raise RefusedError(RefusalKind.BAD_PATH, f"the path is longer than {MAX_PATH_CHARS} characters")
    if "\\" in path:
        raise RefusedError(RefusalKind.BAD_PATH, "backslashes are not allowed: separate components with /")
    if any(unicodedata.category(character) in _FORBIDDEN_CATEGORIES for character in path):
        raise RefusedError(RefusalKind.BAD_PATH, "control and invisible characters are not allowed in a path")
    if path.startswith("/"):
        raise RefusedError(RefusalKind.BAD_PATH, f'"{path}" is absolute: paths are relative to the memory folder')


def _refuse_bad_component(part: str) -> None:
    plain = unicodedata.normalize("NFKC", part)
    if part == "":
        raise RefusedError(RefusalKind.BAD_PATH, 'the path has an empty component: write it as "folder/file.md"')
    if plain == "..":
        raise RefusedError(RefusalKind.BAD_PATH, '".." is not allowed: nothing above the memory folder exists here')
    if plain == ".":
        raise RefusedError(RefusalKind.BAD_PATH, '"." is not allowed: the memory folder itself is ""')
    if plain.startswith("."):
        raise RefusedError(RefusalKind.HIDDEN, f'hidden names such as "{part}" do not exist here')
    if "/" in plain or "\\" in plain:
        raise RefusedError(RefusalKind.BAD_PATH, f'"{part}" holds a look-alike of a separator')
    if len(part.encode()) > MAX_NAME_BYTES:
        raise RefusedError(RefusalKind.BAD_PATH, f"a component is longer than {MAX_NAME_BYTES} bytes")


def _check_skill_file(parts: tuple[str, ...]) -> None:
    if not _SKILL_NAME.fullmatch(parts[1]):
        raise RefusedError(
            RefusalKind.NOT_WRITABLE,
            f'"{parts[1]}" is no name for a skill: lower-case letters, digits and hyphens, at most 64 characters',
        )
    if len(parts) > MAX_SKILL_DEPTH:
        raise RefusedError(RefusalKind.NOT_WRITABLE, f"a skill has at most {MAX_SKILL_DEPTH - 2} levels below its name")
    for part in parts[2:]:
        if not _SKILL_PART.fullmatch(part):
            raise RefusedError(
                RefusalKind.NOT_WRITABLE,
                f'"{part}" is no name for a file of a skill: letters, digits, "_", "-" and ".", at most 100 characters',
            )
        if part.casefold() == SKILL_FILE.casefold() and part != SKILL_FILE:
            raise RefusedError(RefusalKind.NAME_DIFFERS, f'"{part}" must be written {SKILL_FILE}')
    if SKILL_FILE in parts[:-1]:
        raise RefusedError(RefusalKind.NOT_WRITABLE, f"{SKILL_FILE} is a file, and no folder")


def _hint(parts: tuple[str, ...]) -> str:
    if not parts:
        return "; this path is the folder itself"
    if parts[:1] == (SKILLS,):
        return f"; a skill's file lies at {SKILLS}/<name>/{SKILL_FILE}"
    near = same_but_for_case(parts[0], [MEMORY_FILE, SUMMARY_FILE, SKILLS])
    return f'; did you mean "{"/".join((near, *parts[1:]))}"?' if near else ""


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
