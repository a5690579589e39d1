"""Turns Python arguments in error messages into flags of the command line."""

from __future__ import annotations

import argparse
import re

# `storage` has no flag: commands take its options from the environment.
_BY_ENVIRONMENT = {
    ", or pass storage={...}.": ", and the environment's variables that name them.",
    ", or pass storage={'region': ...}.": ".",
    ", or allow more with storage={'retries': ...}.": ".",
    "Pass accounts and credentials as storage={...}.": "Name accounts and credentials in the "
    "environment.",
    'pass storage={"token": ...} or storage={"headers": {...}}.': "read it in Python, with "
    'storage={"token": ...} or storage={"headers": {...}}.',
}


def in_flags(message: str, options: argparse.Namespace) -> str:
    """Returns the message with the command's flags: `--max-memory 1GiB` for `max_memory="1GiB"`."""
    flags = {name: f"--{name.replace('_', '-')}" for name in vars(options)}
    for advice, instead in _BY_ENVIRONMENT.items():
        message = message.replace(advice, instead)
    message = re.sub(r"leaves this record out of [^.]*\.", "leaves it out.", message)

    def flag_of(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"] or ""
        if name not in flags:
            return match[0]
        return flags[name] if value in ("", "True") else f"{flags[name]} {value}"

    # A word after a quote or a slash belongs to a file name.
    message = re.sub(r"""(?<![\w/'"-])(?P<name>[a-z_]+)="?(?P<value>[\w.]*)"?""", flag_of, message)
    # A word with an underscore is an argument, and so is the first word before "must" or "is".
    return re.sub(
        r"""(?<![\w/'"-])(?P<name>[a-z]+_[a-z_]+|^[a-z]+(?= must | is ))(?P<value>)(?![\w/'"=-])""",
        flag_of,
        message,
    )
