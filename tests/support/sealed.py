"""memoryd in a process that may not open a connection: `python -m tests.support.sealed COMMAND ...`.

Any attempt to connect, send or look up a name ends the process at once with exit code 99, before anything leaves it.
"""

import os
import sys

from memoryd.control.main import main

LEAVING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"})
BROKEN_SEAL = 99


def judge(event: str, args: tuple[object, ...]) -> None:
    if event in LEAVING:
        os.write(2, f"the seal was broken: {event} {args[1:]!r}\n".encode())
        os._exit(BROKEN_SEAL)


if __name__ == "__main__":
    sys.addaudithook(judge)
    sys.exit(main())
