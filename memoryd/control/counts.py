"""Whole numbers on the command line, as argparse takes types: what is wrong is said in words."""

import argparse


def from_one(text: str) -> int:
    """Read a number from 1 on. Raises ArgumentTypeError."""
    return _number(text, least=1)


def from_zero(text: str) -> int:
    """Read a number from 0 on. Raises ArgumentTypeError."""
    return _number(text, least=0)


def _number(text: str, *, least: int) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
    return int(text)
