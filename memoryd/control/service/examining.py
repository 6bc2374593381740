"""Looks at the service once and says what is wrong with it: for `service status`, and for `doctor` of one home."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from memoryd.control.checked import Checked
from memoryd.control.service.checking import judge
from memoryd.control.service.ground import Ground
from memoryd.control.service.managers import ServiceManager, manager_of
from memoryd.control.service.state import State
from memoryd.control.service.wishing import USUAL_HOME
from memoryd.errors import ServiceError


def examine(manager: ServiceManager, ground: Ground, *, home: Path | None) -> tuple[State, list[Checked]]:
    """Return how the service stands and what there is to say of it; `home` is who asks, None: its own."""
    state, usual = manager.look(ground), ground.home / USUAL_HOME
    serves = home or (Path(state.home) if state.home else usual)
    return state, judge(state, manager.read_installed(ground), serves, usual)


def findings(home: Path, environ: Mapping[str, str]) -> list[Checked]:
    """Return what `doctor` has to say of the service of one home, at least one finding; changes nothing."""
    try:
        return examine(manager_of(sys.platform), Ground.of(environ, os.getuid()), home=home)[1]
    except ServiceError as error:
        return [Checked("service", "ok", f"{error.message}: memoryd runs while `memoryd run` does")]
