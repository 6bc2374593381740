"""Lingering: without it a user's services stop when the last session ends, and start at the first login."""

from memoryd.control.service.calling import call
from memoryd.control.service.ground import Ground
from memoryd.errors import MemorydError, ServiceError

UNKNOWN_USER = "not logged in or lingering"


def lingers(ground: Ground) -> bool | None:
    """Tell whether the user lingers; None where nobody knows (no logind)."""
    try:
        answer = call(["loginctl", "show-user", ground.user, "--property=Linger"], ground.environ)
    except MemorydError:
        return None
    if answer.code == 0:
        return answer.out.strip() == "Linger=yes"
    return False if UNKNOWN_USER in answer.err else None


def enable_linger(ground: Ground) -> None:
    """Let the user's services go on without a session. Raises ServiceError where the system does not allow it."""
    answer = call(["loginctl", "enable-linger", ground.user], ground.environ)
    if answer.code != 0:
        raise ServiceError(
            f"lingering could not be enabled: {answer.complaint}", remedy=f"sudo loginctl enable-linger {ground.user}"
        )
