"""What a daemon answers to the commands that ask it over the control socket, since it holds the lock."""

from memoryd.daemon import control_socket, personal
from memoryd.daemon.duty import Duty
from memoryd.daemon.passes import PassReport, as_json, run_pass
from memoryd.daemon.probing import probe
from memoryd.daemon.progress import Step
from memoryd.daemon.recalling import keep_recall_ready
from memoryd.daemon.storage import Storage
from memoryd.daemon.wakeup import Wakeups
from memoryd.ledger import jobs
from memoryd.ledger.sessions import UserMode
from memoryd.ledger.states import JobKind
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import choose_mode
from memoryd.pipeline.edits import notice_edits
from memoryd.pipeline.forget import forget, reset


class Answering:
    """Answers in one context; whatever was done, who may have work now is asked to look again."""

    def __init__(self, context: Context, duty: Duty, wakeups: Wakeups, storage: Storage) -> None:
        self._context = context
        self._duty = duty
        self._wakeups = wakeups
        self._storage = storage

    async def answer(self, request: control_socket.Request, tell: control_socket.Tell) -> dict[str, object]:
        """Do what a request says, and return what came of it. Raises MemorydError, ValueError, KeyError."""
        context = self._context
        match request.get("do"):
            case "sync":
                report = await self._pass(request, tell)
                return as_json(report)
            case "health":
                troubles = [trouble.as_json() for trouble in self._duty.troubles_at(context.clock.monotonic())]
                return {"paused": self._storage.reason, "since": self._storage.since, "troubles": troubles}
            case "probe":
                model = context.extract if request.get("stage") == "extract" else context.consolidate
                return (await probe(model, str(request.get("stage")))).as_json()
            case "retry":
                revived = await context.ledger.write(
                    jobs.retry,
                    kind=JobKind(str(request["kind"])),
                    job_key=str(request["key"]),
                    now=context.clock.now(),
                    max_attempts=context.settings.ledger.max_attempts,
                )
                await context.look_at_providers(asked=True)
                self._wakeups.work()
                return {"revived": revived}
            case word if word in personal.REQUESTS:
                async with self._duty.passing:
                    result = await personal.answer(context, request)
                self._wakeups.all()
                return result
            case "set-mode":
                row = await choose_mode(context, str(request["thread"]), UserMode(str(request["mode"])))
                await keep_recall_ready(context)
                self._wakeups.all()
                return {"thread_id": row.thread_id}
            case "forget" | "reset" | "note":
                return await self._forget(request)
            case other:
                return {"error": f"this memoryd does not know the request {other!r}"}

    async def _forget(self, request: control_socket.Request) -> dict[str, object]:
        """Forget as asked, or look at what a new note asks for; jobs are looked at again afterwards."""
        try:
            match request.get("do"):
                case "reset":
                    await reset(self._context, relearn=bool(request.get("relearn")))
                    return {}
                case "note":
                    return {"noticed": await notice_edits(self._context)}
            named = request["threads"]
            threads = [str(name) for name in named] if isinstance(named, list) else []
            done = await forget(self._context, threads, purge=bool(request.get("purge")))
            return done.as_json()
        finally:
            self._wakeups.all()

    async def _pass(self, request: control_socket.Request, tell: control_socket.Tell) -> PassReport:
        def progress(step: Step) -> None:
            tell({"stage": step.stage, "done": step.done, "total": step.total, "note": step.note})

        thread, backfill = request.get("thread"), request.get("backfill")
        try:
            async with self._duty.passing:
                while self._context.held:
                    await self._duty.settled.wait(self._context.clock)
                return await run_pass(
                    self._context,
                    now=bool(request.get("now")),
                    thread=str(thread) if thread else None,
                    backfill=str(backfill) if backfill else None,
                    progress=progress,
                )
        finally:
            self._wakeups.all()
