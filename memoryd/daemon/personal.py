"""What a person's word changes in the memory, here or asked for over the socket: undo, review of proposals, import.

Requests and answers are plain data, so that a command does the same with and without a daemon. What the person got
wrong is an answer too (`wrong`): over the socket an error would lose its exit code.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd.errors import UsageError
from memoryd.pipeline import review
from memoryd.pipeline.context import Context
from memoryd.pipeline.import_claude import import_claude
from memoryd.pipeline.import_codex import import_codex
from memoryd.pipeline.review import Reviewed
from memoryd.pipeline.undo import Undone, undo

REQUESTS = frozenset({"undo", "review", "import"})


async def answer(context: Context, request: Mapping[str, Any]) -> dict[str, object]:
    """Do what a request says.

    {do: undo, count}, {do: review, action: accept | reject, number, shown} or {do: import, agent, homes}.
    """
    try:
        if request["do"] == "undo":
            return _undone(await undo(context, int(request["count"])))
        if request["do"] == "import":
            bring = {"codex": import_codex, "claude": import_claude}[str(request["agent"])]
            return (await bring(context, [Path(str(home)) for home in request["homes"]])).as_json()
        act = {"accept": review.accept, "reject": review.reject}[str(request["action"])]
        shown = request.get("shown")
        return _reviewed(await act(context, int(request["number"]), str(shown) if shown else None))
    except UsageError as error:
        return {"wrong": error.message, "remedy": error.remedy}


def _undone(done: Undone | None) -> dict[str, object]:
    if done is None:
        return {"commit": None, "changes": [], "held": []}
    changes = [
        {"commit": entry.commit, "at": entry.at, "change": entry.change.value, "subject": entry.subject}
        for entry in done.changes
    ]
    return {"commit": done.commit, "changes": changes, "held": list(done.held)}


def _reviewed(done: Reviewed) -> dict[str, object]:
    proposal = done.proposal
    return {
        "number": proposal.id,
        "state": proposal.state.value,
        "commit": proposal.commit,
        "held": list(done.held),
    }
