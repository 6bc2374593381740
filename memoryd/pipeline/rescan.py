"""Old rows under new rules: when what counts as a secret has changed, all that is stored is redacted once more.

The folder follows by a consolidation: evidence is materialised from the rows, and a line of MEMORY.md with what is by
now a secret reaches the writer without it (staging). What history already holds (git, backups) is not rewritten here.
"""

from typing import Final

from memoryd import logs
from memoryd.ledger import backups, jobs, meta
from memoryd.ledger.rescanning import Texts, clean_rows
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.discover import enqueueing
from memoryd.workspace.folder import Folder

log = logs.get()

RULES_KEY: Final = "redaction_rules"
BATCH_ROWS: Final = 50
"""A transaction of some 10 ms: a row holds a few kilobytes."""
SHOWN_IN_THE_FOLDER: Final = (Texts.OUTPUTS, Texts.SESSIONS)


async def rescan(context: Context) -> int:
    """Redact all stored rows anew if the rules are not those that they went through; return how many changed.

    Interrupted, it begins again: the rules are recorded last, together with the consolidation that is asked for.
    """
    rules = context.redactor.fingerprint
    if await context.ledger.read(meta.get, RULES_KEY) == rules:
        return 0
    changed = {texts: await _clean_all(context, texts) for texts in Texts}
    rows = sum(changed.values())
    in_folder = await in_thread(_holds_secret, context)
    if in_folder or any(changed[texts] for texts in SHOWN_IN_THE_FOLDER):
        await context.ledger.write(jobs.enqueue_consolidation, reason="rules", **enqueueing(context))
    if rows:
        await context.ledger.apart(backups.shorten_log)
    await context.ledger.write(meta.put, RULES_KEY, rules)
    if rows or in_folder:
        log.warning("rules.changed", count=rows, folder=in_folder)
    return rows


async def distrust(context: Context) -> None:
    """Forget which rules the stored rows went through, while somebody still writes some by older ones."""
    await context.ledger.write(meta.put, RULES_KEY, "")


async def _clean_all(context: Context, texts: Texts) -> int:
    changed, after = 0, 0
    while True:
        batch = await context.ledger.write(clean_rows, texts, context.redactor.clean, after=after, limit=BATCH_ROWS)
        changed += batch.changed
        if batch.last is None:
            return changed
        after = batch.last


def _holds_secret(context: Context) -> bool:
    texts = Folder.read(context.home.memories).files.values()
    return any(context.redactor.contains_secret(text) for text in texts)
