"""Accepts what a consolidation wrote, or complains; what code can put right itself it does before it judges."""

from dataclasses import replace

from memoryd import logs
from memoryd.pipeline.context import Context
from memoryd.pipeline.forget_judging import leftovers, take_out
from memoryd.pipeline.gathering import Evidence
from memoryd.workspace import acceptance, mending, protection
from memoryd.workspace.files import write_texts
from memoryd.workspace.folder import Folder
from memoryd.workspace.protection import Kept
from memoryd.workspace.quarantine import Quarantine
from memoryd.workspace.summary import summary_budget

log = logs.get()


def judge(context: Context, evidence: Evidence) -> list[str]:
    """Accept or complain (blocking): put a person's lines right, mend what code can, judge what the run changed."""
    _keep(evidence, protection.keep_lines(evidence.protected, Folder.read(evidence.staged.work), may_move=False))
    _take_out(context, evidence)
    return _judge_kept(context, evidence)


def judge_model(context: Context, evidence: Evidence) -> tuple[str, ...]:
    """Judge a model's work: what it may lose once it was told so is a complaint too, once (blocking).

    That is a claim with live evidence that vanished; a person's line, which code then puts back, unless a new note
    speaks of it; and what a person deleted, which code then leaves out.
    """
    notes = evidence.new_notes() if evidence.has_named_persons else ""
    folder = Folder.read(evidence.staged.work)
    kept = protection.keep_lines(evidence.protected, folder, may_move=True, notes=notes)
    complaints = [] if evidence.has_named_persons else list(kept.complaints)
    evidence.has_named_persons = evidence.has_named_persons or bool(complaints)
    _keep(evidence, replace(kept, texts={}) if complaints else kept)
    if evidence.has_finished:
        _take_out(context, evidence)
    else:
        complaints += leftovers(
            evidence.staged.work,
            evidence.before,
            persons=evidence.persons,
            max_summary_bytes=summary_budget(context.settings.recall.max_tokens),
        )
    evidence.has_finished = True
    complaints += _judge_kept(context, evidence)
    vanished = acceptance.vanished_claims(
        before=evidence.before, after=Folder.read(evidence.staged.work), removed_threads=evidence.removed_threads
    )
    complaints += [complaint for complaint in vanished if complaint not in evidence.complained]
    evidence.complained.update(vanished)
    return tuple(complaints)


def _take_out(context: Context, evidence: Evidence) -> None:
    """Remove what no evidence supports any more, and what notes ask to forget, if the writer did not."""
    evidence.cleaned += take_out(
        evidence.staged.work,
        evidence.before,
        removed_threads=evidence.removed_threads,
        persons=evidence.persons,
        max_summary_bytes=summary_budget(context.settings.recall.max_tokens),
    )


def _keep(evidence: Evidence, kept: Kept) -> None:
    write_texts(evidence.staged.work, kept.texts)
    evidence.persons = kept.lines


def _judge_kept(context: Context, evidence: Evidence) -> list[str]:
    work = evidence.staged.work
    quarantine = Quarantine(context.home, f"{int(context.clock.now()):010d}-{work.parent.name[:8]}", context.redactor)
    strays = mending.clean_strays(work, evidence.before, quarantine=quarantine)
    evidence.strays += len(strays)
    if strays:
        log.warning("consolidation.tidied", count=len(strays))
    mending.rewrite_provenance(work)
    after = Folder.read(work)
    return list(
        acceptance.judge(
            before=evidence.before,
            after=after,
            removed_threads=evidence.removed_threads,
            max_summary_bytes=summary_budget(context.settings.recall.max_tokens),
            redactor=context.redactor,
            persons=evidence.persons,
            said=evidence.said,
        ).complaints
    )
