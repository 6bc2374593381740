"""`memoryd mcp`: the memory's tools for agents, over the Model Context Protocol on standard input and output.

Agents start it; it ends with them. Needs the extra `memoryd[mcp]`, which no other command imports.
"""

import argparse
import asyncio
import functools
import importlib.metadata
import logging
import sys
from pathlib import Path
from typing import Any

from memoryd import config, logs
from memoryd.control.connecting.mcp_extra import missing
from memoryd.control.console import start_logging
from memoryd.control.memory_tools import Desk, answer
from memoryd.errors import MemorydError, StorageError, UsageError
from memoryd.recall.tools import TOOLS

log = logs.get()


def configure(parser: argparse.ArgumentParser) -> None:
    """Take where the agent works."""
    parser.add_argument(
        "--cwd",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="where the agent works (default: here, as agents start it)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends, or SIGTERM comes.

    Raises UsageError where the extra is missing, or a way to talk.
    """
    settings = config.load(args.home, environ=config.environ())
    if (reason := missing()) is not None:
        raise UsageError(reason.what, remedy=reason.remedy)
    if sys.stdin is None or sys.stdout is None:
        raise UsageError(
            "`memoryd mcp` needs a standard input and output", remedy="agents start it; `memoryd connect AGENT`"
        )
    from memoryd.recall.mcp_server import serve

    if sys.stdin.isatty():
        print(
            "memoryd: waiting for an agent that speaks MCP; `memoryd connect AGENT` has one start this", file=sys.stderr
        )
    start_logging(settings)
    logging.getLogger("mcp").setLevel(logging.WARNING)
    desk = Desk(settings, str(args.cwd.absolute()))
    asyncio.run(serve(functools.partial(answered, desk), version=importlib.metadata.version("memoryd")))
    return 0


def answered(desk: Desk, name: str, arguments: dict[str, Any], client: str) -> str:
    """Carry out a call; a fault of ours is logged, and told as an error of ours, so that the server goes on."""
    try:
        return answer(desk, name, arguments, client)
    except MemorydError:
        raise
    except Exception as error:
        log.error("tool.failed", tool=name if name in TOOLS else "unknown", detail=type(error).__name__)
        raise StorageError(f"a fault in memoryd itself: {type(error).__name__}: {error}") from error
