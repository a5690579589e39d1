"""Write all records in a uniformly random order to new shards, in bounded memory. After an
interruption, the same command resumes where it stopped.
"""

from __future__ import annotations

import argparse

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import (
    add_common,
    add_max_memory,
    add_output,
    add_writing,
    print_json,
    writing_arguments,
)
from tfrfast.cli.damage import left_out
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.shuffling.resumable_folder import can_resume
from tfrfast.jobs.shuffling.shuffle import Shuffled, shuffle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, on_corruption=True)
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
    add_max_memory(parser, "about how much memory to use")
    parser.add_argument("--work", metavar="FOLDER", help="where intermediate files go")
    add_writing(parser)
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    try:
        made = _shuffle(options)
    except KeyboardInterrupt:
        if can_resume(options.out, options.work):
            raise KeyboardInterrupt("The same command goes on where this one stopped.") from None
        raise
    if options.json:
        print_json(made)
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
        executor=executor_of(options),
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
