"""Work that is seen to its end though its caller is cancelled: spend that must be recorded, files half in place."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Coroutine[object, object, T] | asyncio.Future[T]) -> T:
    """Await `work` to its end even when cancelled, and be cancelled only then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # taken note of: what ended the wait is the cancellation
        raise cancelled
    return task.result()
