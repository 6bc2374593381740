"""Memories of any size, as a diligent agent would have written them: outputs of stage 1, and the two files on them."""

from memoryd.ledger.outputs import NewOutput, SelectedOutput
from memoryd.workspace.stems import session_stem
from tests.workspace.factories import an_output

PROJECTS = 16
VOCABULARY = """
postgres index checkout deploy branch pytest fixture retry timeout socket cursor lock ledger parser token budget schema
migration linter formatter container network volume secret release rollback queue worker lease cache
"""
WORDS = VOCABULARY.split()
SUMMARY_HEAD = """\
v1

## User Profile

Works on many projects.

## User preferences

- step by step

## General Tips

- none

## What's in Memory
"""
SCOPE = """
### {cwd}

#### 2025-11-29

- project {project:02d}: step, fact
  - desc: work
  - learnings: steps
"""
UPDATED_AT = 1_764_409_095


def thread_id(number: int) -> str:
    """A time-ordered id, so that names and order are those of real sessions."""
    return f"0194f5a6-{number:04x}-7cde-8123-456789abcdef"


def stem(number: int) -> str:
    return session_stem(thread_id(number), UPDATED_AT, f"work_{number}")


def cwd(number: int) -> str:
    return f"/home/dev/project-{number % PROJECTS:02d}"


def words(seed: int, count: int) -> str:
    """Some words that are nearly the same for nobody else."""
    return " ".join(f"{WORDS[(seed * 7 + n * (seed % 5 + 1)) % len(WORDS)]}" for n in range(count))


def new_output(number: int, lines: int, edition: int = 0) -> NewOutput:
    """What stage 1 said of a session, `lines` lines of some 100 bytes in each of its two texts."""
    facts = "\n".join(f"- fact {n} of {number} in edition {edition}: {words(number * 31 + n, 9)}" for n in range(lines))
    said = f"always run step {number} before the release of {words(number, 3)}"
    signal = f'Preference signals:\n- when releasing, the user said: "{said}" -> do it\n'
    head = f"---\ndescription: {number}\ncwd: {cwd(number)}\n---\n### Task 1: work {number}\n"
    return NewOutput(
        thread_id=thread_id(number),
        source_updated_at=UPDATED_AT + number + edition * 1000,
        raw_memory=f"{head}{signal}\nReusable knowledge:\n{facts}",
        rollout_summary=f"# Work {number}\n\n## Task 1: work {number}\n{signal}Reusable knowledge:\n{facts}",
        rollout_slug=f"work_{number}",
        stem=stem(number),
    )


def selected(number: int, lines: int, edition: int = 0) -> SelectedOutput:
    """The same as the selection gives it."""
    new = new_output(number, lines, edition)
    return an_output(
        new.thread_id,
        raw_memory=new.raw_memory,
        rollout_summary=new.rollout_summary,
        stem=new.stem,
        cwd=cwd(number),
        updated_at=new.source_updated_at,
    )


def handbook(sessions: int, bullets: int, *, reworded: bool = False) -> str:
    """MEMORY.md on so many sessions, with so many bullets for each; `reworded`: every bullet in a few other words."""
    return (
        "\n\n".join(_group(project, sessions, bullets, reworded=reworded) for project in range(min(PROJECTS, sessions)))
        + "\n"
    )


def summary(sessions: int) -> str:
    """memory_summary.md that reaches every group."""
    return SUMMARY_HEAD + "".join(
        SCOPE.format(cwd=cwd(project), project=project) for project in range(min(PROJECTS, sessions))
    )


def _group(project: int, sessions: int, bullets: int, *, reworded: bool) -> str:
    own = range(project, sessions, PROJECTS)
    tasks = "\n\n".join(
        f"## Task {n}: work {number}\n\n### rollout_summary_files\n- rollout_summaries/{stem(number)}.md\n\n"
        f"### keywords\n- step {number}, fact"
        for n, number in enumerate(own, start=1)
    )
    preferences = "\n".join(
        f"- when releasing: always run step {number} before the release of {words(number, 3)} [Task {n}] [stated]"
        for n, number in enumerate(own, start=1)
    )
    also = "still " if reworded else ""
    facts = "\n".join(
        f"- fact {fact} of {number} {also}holds: {words(number * 31 + fact, 9)} [Task {n}] [verified]"
        for n, number in enumerate(own, start=1)
        for fact in range(bullets)
    )
    return (
        f"# Task Group: project {project:02d}\nscope: project {project:02d}\n"
        f"applies_to: cwd={cwd(project)}; reuse_rule=only here\n\n{tasks}\n\n## User preferences\n{preferences}\n\n"
        f"## Reusable knowledge\n{facts}"
    )
