"""The `tfrfast` command.

Each subcommand is a module in `commands`: its docstring is the description that --help shows,
`add_arguments` adds its arguments, and `run` returns the exit code.

Exit codes: 0 done; 1 done, with damage; 2 failed; 130 interrupted.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with `arguments`, or, as the program, with the process's arguments."""
    # Ctrl-C is handled before any other import.
    from tfrfast.cli.interruption import EXIT_CODE, end_at_once, raised

    if arguments is None:
        end_at_once()
    from tfrfast.cli.subcommands import parse, run

    options = parse(arguments)
    try:
        with raised():
            return run(options)
    except KeyboardInterrupt:  # just before the command, or just after it
        return EXIT_CODE
