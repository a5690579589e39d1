"""`tfrfast shuffle`: shuffles, reshards, merges and splits data sets larger than memory."""

from __future__ import annotations

import argparse

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import Subparsers, add_command, parse_size, print_json
from tfrfast.cli.damage import left_out
from tfrfast.cli.new_shards import add_output, add_writing, writing_arguments
from tfrfast.jobs.shuffling.resumable_folder import can_resume
from tfrfast.jobs.shuffling.shuffle import Shuffled, shuffle


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "shuffle",
        run,
        help=help,
        description="Write all records in a uniformly random order to new shards, in bounded "
        "memory. After an interruption, the same command resumes where it stopped.",
        on_corruption=True,
    )
    add_output(
        parser,
        "out/train makes out/train-00000-of-00064",
        num_shards="shards, of all splits together",
        required=True,
    )
    parser.add_argument("--seed", type=int, default=0, help="determines the order (default: 0)")
    parser.add_argument(
        "--splits",
        type=_splits,
        metavar="NAME=SHARE,...",
        help="for each split its share, as in train=0.9,test=0.1; they add up to 1",
    )
    parser.add_argument(
        "--max-memory",
        type=parse_size,
        default=1 << 30,
        metavar="BYTES",
        help="about how much memory to use (default: 1GiB)",
    )
    parser.add_argument("--work", metavar="FOLDER", help="where intermediate files go")
    add_writing(parser)


def run(options: argparse.Namespace) -> int:
    try:
        made = _shuffle(options)
    except KeyboardInterrupt:
        if can_resume(options.out, options.work):
            raise KeyboardInterrupt("The same command goes on where this one stopped.") from None
        raise
    if options.json:
        print_json({**made._asdict(), "skipped": [each._asdict() for each in made.skipped]})
        return left_out(made.skipped)
    for name, paths in made.splits.items():
        print(f"{name}: {counted(len(paths), 'shards')}")
    print(
        f"{counted(made.num_records, 'records')}, {format_bytes(made.num_bytes)}, "
        f"{counted(len(made.paths), 'shards')}, "
        f"content hash {made.content_hash} before and after"
    )
    return left_out(made.skipped)


def _shuffle(options: argparse.Namespace) -> Shuffled:
    return shuffle(
        options.paths,
        options.out,
        seed=options.seed,
        splits=options.splits,
        max_memory=options.max_memory,
        work=options.work,
        on_corruption=options.on_corruption,
        **writing_arguments(options),
    )


def _splits(text: str) -> dict[str, float]:
    pairs = [each.partition("=") for each in text.split(",")]
    try:
        shares = {name: float(share) for name, _, share in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=SHARE,..., not {text!r}") from None
    if len(shares) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r} names a split twice")
    return shares
