"""Print the file, the number in the file and the byte of records: by their numbers, by a key, or of
a training step.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any

from tfrfast.base.sizes import counted
from tfrfast.cli.common import add_common, parse_record_number, print_json, print_table
from tfrfast.order import InOrder, Order, Plan, Shuffle
from tfrfast.reader import Reader

_ORDER = re.compile(r"order version=1 shuffle=(?:none|exact seed=(-?\d+)) records=(\d+)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--record",
        type=parse_record_number,
        action="append",
        metavar="I",
        help="record I; may be given several times",
    )
    which.add_argument("--key", help="all records with this key; needs --by")
    which.add_argument(
        "--step", type=int, metavar="S", help="the records of step S of a shuffled epoch"
    )
    parser.add_argument(
        "--by", metavar="FEATURE", help="the feature whose key file `tfrfast keys` has built"
    )
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="a Loader's state as JSON: --step 0 is then the first step after it",
    )
    for name, usual, what in (
        ("--seed", 0, "the seed of the shuffle"),
        ("--epoch", 0, "the epoch"),
        ("--batch-size", 32, "rows of a batch"),
        ("--rank", 0, "the worker's number"),
        ("--world", 1, "how many workers"),
    ):
        parser.add_argument(name, type=int, metavar="N", help=f"{what} (default: {usual})")


def run(options: argparse.Namespace) -> int:
    if (options.key is None) != (options.by is None):
        raise ValueError("--key and --by go together: a key, and the feature that has it.")
    if options.step is None and _of_steps(options):
        raise ValueError(f"{_of_steps(options)[0]} says which step: give --step, too.")
    with Reader(options.paths, progress=options.progress) as reader:
        numbers = _numbers(reader, options)
        rows = [_place(reader, number) for number in numbers]
    if options.json:
        print_json(rows)
    elif rows:
        header = ["record", "in the shard", "byte", "bytes", "shard"]
        print_table(header, [tuple(row.values()) for row in rows])
    else:
        print("No record has this key.")
    return 0


def _numbers(reader: Reader, options: argparse.Namespace) -> Sequence[int]:
    if options.record is not None:
        count = len(reader)
        return [each + count if -count <= each < 0 else each for each in options.record]
    if options.key is not None:
        keyed = reader.by_key(options.by)
        found: list[int] = keyed.all(keyed._parse(options.key)).indices.tolist()
        return found
    order, epoch, start = _order_of(reader, options)
    plan = Plan(
        order,
        32 if options.batch_size is None else options.batch_size,
        num_records=len(reader),
        rank=options.rank or 0,
        world=1 if options.world is None else options.world,
        start=start,
    )
    records: list[int] = plan.indices(epoch, options.step).tolist()
    return records


def _order_of(reader: Reader, options: argparse.Namespace) -> tuple[Order, int, int]:
    """Returns the order, the epoch, and the position of its step 0."""
    if options.state is None:
        return Shuffle(options.seed or 0), options.epoch or 0, 0
    if options.seed is not None or options.epoch is not None:
        raise ValueError("--state says the seed and the epoch: leave --seed and --epoch out.")
    state = _state_in(options.state)
    described = _ORDER.fullmatch(str(state["order"]))
    if described is None:
        raise ValueError(
            f"{options.state!r} is of another order than a shuffle of single records: "
            f"{state['order']!r}. In Python, a Plan of that order gives its records."
        )
    seed, records = described.groups()
    if int(records) != len(reader):
        raise ValueError(
            f"{options.state!r} is of {counted(int(records), 'records')}, and here are "
            f"{len(reader):,}. Give the shards of that run."
        )
    order: Order = InOrder() if seed is None else Shuffle(int(seed))
    return order, int(state["epoch"]), int(state["position"])


def _state_in(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        try:
            state = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path!r} is not JSON: {error}.") from None
    if not isinstance(state, dict) or not {"order", "epoch", "position"} <= state.keys():
        raise ValueError(f"{path!r} is not a state of a Loader: json.dump(loader.state_dict(), f).")
    return state


def _of_steps(options: argparse.Namespace) -> list[str]:
    """Returns the given options that say which step."""
    names = ("state", "seed", "epoch", "batch_size", "rank", "world")
    return [f"--{n.replace('_', '-')}" for n in names if getattr(options, n) is not None]


def _place(reader: Reader, number: int) -> dict[str, Any]:
    place = reader.locate(number)
    first = sum(shard.num_records for shard in reader.shards[: place.shard])
    return {
        "record": number,
        "number": number - first,
        "byte": place.offset,
        "bytes": place.length,
        "path": reader.shards[place.shard].path,
    }
