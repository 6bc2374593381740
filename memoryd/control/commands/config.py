"""`memoryd config show | check`: the settings that hold, where each comes from, and whether they are right."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from memoryd import config
from memoryd.control.console import print_json
from memoryd.control.example_config import toml_value
from memoryd.daemon.house import check_settings
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
        check_settings(settings, config.environ())
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
    origins = {**settings.origins, **_origin_of_home(args.home)}
    for key, value in _flat(shown):
        told = f"# {key} is not set" if value is None else f"{key} = {toml_value(value)}"
        print(f"{told}  # {_origin(origins, key)}")
    return 0


def _origin_of_home(given: Path | None) -> dict[str, str]:
    """Say where the home's own place comes from, which stands in no file."""
    if given is not None:
        return {"home": "command line"}
    return {"home": config.HOME_VARIABLE} if config.environ().get(config.HOME_VARIABLE) else {}


def _origin(origins: Mapping[str, str], key: str) -> str:
    """Say where a value comes from: the file may have given the key itself or the table that holds it."""
    parts = key.split(".")
    candidates = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((origins[candidate] for candidate in candidates if candidate in origins), "default")


def _flat(values: object, prefix: str = "") -> list[tuple[str, object]]:
    if isinstance(values, dict) and values:
        return [pair for key, value in values.items() for pair in _flat(value, f"{prefix}.{key}" if prefix else key)]
    return [(prefix, values)]
