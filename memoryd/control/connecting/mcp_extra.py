"""Is the official package of the Model Context Protocol here, in a version that we speak? Nothing of it is imported."""

import importlib.metadata
from dataclasses import dataclass
from typing import Final

PACKAGE: Final = "mcp"
MAJOR: Final = 2
EXTRA: Final = "memoryd[mcp]"
INSTALL: Final = (
    "install it where memoryd is: `pipx inject memoryd 'mcp>=2,<3'`, or `pip install 'mcp>=2,<3'` beside it"
)


@dataclass(frozen=True, slots=True)
class Missing:
    """What is missing, and what to do about it."""

    what: str
    remedy: str


def missing() -> Missing | None:
    """Say what keeps `memoryd mcp` from running, None when nothing does."""
    try:
        version = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return Missing(f"the MCP server needs the extra {EXTRA}, and the package {PACKAGE} is not installed", INSTALL)
    if version.split(".")[0] != str(MAJOR):
        return Missing(f"the MCP server speaks {PACKAGE} {MAJOR}.x, and {version} is installed", INSTALL)
    return None
