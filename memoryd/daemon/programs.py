"""Where the programs of providers of kind `command` run in a house, and what is remembered of their confinement."""

from collections.abc import Mapping
from typing import Final

from memoryd import logs
from memoryd.ledger import meta
from memoryd.ledger.database import Ledger
from memoryd.llm.command.confinement import Confiner, Mechanism, Tools
from memoryd.llm.command.shell import Place
from memoryd.llm.providers import Programs
from memoryd.workspace.layout import Home

log = logs.get()

CONFINEMENT: Final = "confinement"
"""The key of the ledger's meta under which what was found is kept, for `status`."""


def programs_in(home: Home, ledger: Ledger, environ: Mapping[str, str]) -> Programs:
    """Return what open_client needs to run programs in this house; nothing is tried before the first run."""

    async def note(mechanism: Mechanism) -> None:
        await ledger.write(meta.put, CONFINEMENT, mechanism.value)
        if mechanism is Mechanism.NONE:
            log.warning("command.unconfined")
        else:
            log.info("command.confined", mechanism=mechanism.value)

    place = Place(home.staging, home.path, environ)
    return Programs(place, Confiner(Tools.found_in(environ), note=note))


async def is_unconfined(ledger: Ledger) -> bool:
    """Tell whether the last search found nothing that confines programs here."""
    return await ledger.read(meta.get, CONFINEMENT) == Mechanism.NONE
