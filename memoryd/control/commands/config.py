"""`memoryd config show | check`: the settings that hold, where each comes from, and whether they are right."""

import argparse

from memoryd import config
from memoryd.control.console import print_json
from memoryd.workspace.layout import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the actions of `config`."""
    parser.add_argument("action", nargs="?", choices=["show", "check"], default="show")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print or check; wrong settings end with exit 2 and say what is wrong."""
    settings = config.load(args.home, environ=config.environ())
    file = Home(settings.home).config_file
    if args.action == "check":
        for stage in ("extract", "consolidate"):
            settings.provider_for(stage)
        if args.json:
            print_json({"ok": True, "file": str(file), "exists": file.exists()})
        else:
            print(f"{file}: {'right' if file.exists() else 'not there; the defaults hold'}")
        return 0
    shown = settings.public()
    if args.json:
        print_json(shown)
        return 0
    print(f"# {file}{'' if file.exists() else ' (not there: defaults)'}")
    for key, value in _flat(shown):
        print(f"{key} = {value}  # {settings.origins.get(key, 'default')}")
    return 0


def _flat(values: object, prefix: str = "") -> list[tuple[str, object]]:
    if isinstance(values, dict) and values:
        return [pair for key, value in values.items() for pair in _flat(value, f"{prefix}.{key}" if prefix else key)]
    return [(prefix, values)]
