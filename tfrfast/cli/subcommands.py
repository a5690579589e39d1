"""The subcommands. Only the requested subcommand is imported."""

from __future__ import annotations

import argparse
import importlib
import keyword
import os
import sys
import traceback
from collections.abc import Sequence

from tfrfast import __version__
from tfrfast.cli.interruption import EXIT_CODE
from tfrfast.cli.ray import joined_addresses

_COMMANDS = {
    "index": "build and save indexes",
    "info": "count records, sizes, damage",
    "count": "count records",
    "verify": "check every CRC",
    "cat": "show records: the first, chosen ones, or some drawn at random",
    "schema": "infer the features of Examples",
    "stats": "show statistics of features",
    "view": "show records and statistics in a browser",
    "where": "show the file and the byte of a record, a key or a training step",
    "diff": "show which records of two data sets differ",
    "shuffle": "shuffle, merge and split",
    "copy": "write chosen records to new shards",
    "delete": "delete records from the shards that hold them",
    "keys": "build the file by which records are found by key",
    "export": "write features to Parquet",
    "import": "write Parquet as Examples",
    "cache": "show or empty caches",
    "doctor": "describe this machine, and causes of slowness",
    "run": "run a program, with its datasets accelerated",
    "bench": "time these files beside TensorFlow",
    "demo": "show tfrfast at work on this machine",
}
_ALIASES = {
    "head": ["cat"],
    "sample": ["cat", "--sample"],
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Exits with code 2 if the arguments make no sense."""
    parser = argparse.ArgumentParser(
        prog="tfrfast",
        description="Index, inspect, verify, shuffle and time TFRecord files.",
        epilog="Exit codes: 0 done; 1 done, and damage was found; 2 could not be done; "
        "130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"tfrfast {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    given = joined_addresses(sys.argv[1:] if arguments is None else arguments)
    if not given:
        given = ["--help"]
    if given[0] in _ALIASES:
        given = [*_ALIASES[given[0]], *given[1:]]
    chosen = next((each for each in given if not each.startswith("-")), None)
    if chosen is not None and chosen not in _COMMANDS:
        import difflib

        alike = difflib.get_close_matches(chosen, _COMMANDS, 1)
        meant = f" Did you mean {alike[0]}?" if alike else ""
        parser.exit(2, f"tfrfast: There is no command {chosen!r}.{meant} `tfrfast` lists all.\n")
    program: list[str] = []
    if chosen == "run":
        from tfrfast.cli.commands.run import split

        given, program = split(given)
    for name, help in _COMMANDS.items():
        subparser = subparsers.add_parser(name, help=help)
        if name == chosen:
            command = importlib.import_module(f"tfrfast.cli.commands.{_module_of(name)}")
            subparser.description = command.__doc__
            subparser.set_defaults(run=command.run)
            command.add_arguments(subparser)
    options, unknown = parser.parse_known_args(given)
    if unknown and chosen is not None:
        # Reported as the command's own error, which shows the usage.
        subparsers.choices[chosen].error(f"unrecognized arguments: {' '.join(unknown)}")
    options.program = program
    return options


def _module_of(command: str) -> str:
    return f"{command}_" if keyword.iskeyword(command) else command


def run(options: argparse.Namespace) -> int:
    """Returns the exit code. Errors are one line on stderr."""
    if sys.stdout is None:  # stdout is closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        try:
            status: int = options.run(options)
        finally:
            _flush_output()
    except BrokenPipeError:
        return 0  # the reader of the output, such as `head`, has closed it
    except KeyboardInterrupt as interruption:
        advice = "".join(f". {each}" for each in interruption.args)
        print(f"tfrfast: interrupted{advice}", file=sys.stderr)
        return EXIT_CODE
    except Exception as error:
        from tfrfast._native import printable

        lines = _text_of(error, options).split("\n")
        print("tfrfast: " + "\n".join(map(printable, lines)), file=sys.stderr)
        return 2
    return status


def _flush_output() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        # The interpreter must not try the failed write again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _text_of(error: Exception, options: argparse.Namespace) -> str:
    """Returns the text for the user. Prints a traceback first for an unforeseen error."""
    from tfrfast.cli.advice import in_flags
    from tfrfast.errors import RecordError

    if isinstance(error, OSError) and error.strerror:
        # str() adds `[Errno 2]`. Texts of tfrfast name the file, and texts of the system do not.
        is_own = error.errno is None or error.strerror != os.strerror(error.errno)
        named = "" if is_own or error.filename is None else f"{os.fsdecode(error.filename)!r}: "
        return in_flags(f"{named}{error.strerror}", options)
    expected = (RecordError, OSError, ValueError, IndexError, ImportError, MemoryError)
    if not isinstance(error, (*expected, AssertionError)):
        traceback.print_exception(error)
        return f"{type(error).__name__}: {error}"
    return in_flags(str(error), options)
