"""Waiting for another thread with an end to it."""

import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.005


def wait_on(condition: threading.Condition, holds: Callable[[], bool], seconds: float) -> bool:
    """Wait, with the condition held, until something holds; False when it does not within so many seconds.

    It looks again and again: a timed wait of a thread may never end in a process whose clock a library shifts.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= deadline:
            return False
        condition.release()
        try:
            time.sleep(POLL_SECONDS)
        finally:
            condition.acquire()
    return True
