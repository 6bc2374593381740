"""sd_notify: tells systemd what the daemon is doing, in one datagram; silent when nobody listens."""

import socket

LONGEST_SECONDS = 0.2
"""A manager that takes nothing must not hold up the event loop."""


def notify(address: str | None, *lines: str) -> bool:
    """Send `lines` (`READY=1`, `STATUS=...`) to NOTIFY_SOCKET's address; a leading @ means an abstract socket.

    Returns whether it was sent. A broken notify socket must never stop the daemon.
    """
    if not address:
        return False
    target = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as client:
            client.settimeout(LONGEST_SECONDS)
            client.connect(target)
            client.sendall("\n".join(lines).encode())
    except OSError:
        return False
    return True
