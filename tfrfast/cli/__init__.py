"""The `tfrfast` command. Each subcommand is a module with `add_parser` and `run`.

Exit codes: 0 done; 1 done, and damage was found; 2 could not be done; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tfrfast import __version__
from tfrfast.cli import bench, cache, cat, demo, index, info, schema, shuffle, verify
from tfrfast.errors import RecordError

_COMMANDS = (index, info, verify, cat, schema, shuffle, cache, bench, demo)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tfrfast",
        description="Index, inspect, verify, shuffle and time TFRecord files.",
        epilog="Exit codes: 0 done; 1 damage was found; 2 could not be done; 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"tfrfast {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(subparsers)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except (RecordError, OSError, ValueError, IndexError, ImportError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output, such as `head`, has seen enough. Stay silent at exit, too.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"tfrfast: {_text_of(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tfrfast: interrupted", file=sys.stderr)
        return 130


def _text_of(error: Exception) -> str:
    """The message without the `[Errno 2]` before it and the file name, which it has, after it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
