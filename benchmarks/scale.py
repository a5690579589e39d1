"""Measures calls whose time does not grow with the data, and draws docs/scale.svg.

python benchmarks/scale.py        # takes about a minute

Up to ten billion records. The index is generated: all frames have one length. One sparse file
stands for all shards. No record is read. The rest is as with real data.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tfrfast as tfr
from benchmarks.svg import Colour, Svg
from tfrfast import _native

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "scale.svg"
SHARD_RECORDS = 1_000_000
FRAME_BYTES = 274
SIZES = [10**power for power in range(6, 11)]
BATCH = 1024
ROUNDS = 7

COLOURS: dict[str, Colour] = {
    "locate": "series0",
    "a step of a Plan": "series1",
    "save and load a state": "series2",
}


def index_of_regular_frames(count: int, facts: bytes) -> bytes:
    """Returns an index of version 4 (docs/index-format.md). Its blocks have no residuals."""
    entries = count + 1
    bases = np.arange(-(-entries // 128), dtype="<i8") * 128 * FRAME_BYTES
    blocks = np.zeros(len(bases), [("base_and_width", "<i8"), ("slope", "<u4"), ("at", "<u4")])
    blocks["base_and_width"] = bases << 8
    blocks["slope"] = FRAME_BYTES * 256
    if entries % 128 == 1:
        blocks["slope"][-1] = 0  # the last block has a single offset
    pages = [blocks[first : first + 32].tobytes() for first in range(0, len(blocks), 32)]
    pages[-1] += bytes(8)
    crcs = b"".join(struct.pack("<I", _native.crc32c(page)) for page in pages)
    crcs += bytes(-len(crcs) % 8)
    section = crcs + b"".join(pages)
    entry = facts + struct.pack("<QQQQ", count * FRAME_BYTES, count, 160, len(section))
    entry += struct.pack("<QQQQ", 160, 0, 0, 0) + struct.pack(
        "<IIII", _native.crc32c(crcs), 0, 0, 0
    )
    head = b"TFRFIDX\n" + struct.pack("<IIQ", 4, 0, 160 + len(section)) + entry + bytes(4)
    return head + struct.pack("<I", _native.crc32c(head)) + section


def make_shard(folder: Path) -> str:
    shard = folder / "data" / "shard"
    shard.parent.mkdir()
    header = _native.frame(bytes(FRAME_BYTES - 16))[:12]
    with open(shard, "wb") as file:
        file.truncate(SHARD_RECORDS * FRAME_BYTES)
        for sample in range(4):  # opening compares these frames with the index
            file.seek((SHARD_RECORDS - 1) * sample // 3 * FRAME_BYTES)
            file.write(header)
    os.utime(shard, ns=(0, 10**18))
    (built,) = tfr.build_index(shard, progress=False)
    facts = Path(built.path).read_bytes()[24:72]
    Path(built.path).write_bytes(index_of_regular_frames(SHARD_RECORDS, facts))
    return str(shard)


def microseconds(action: Callable[[int], object], times: int) -> float:
    """Returns the processor time of one call, in the median round."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for turn in range(times):
            action(turn)
        rounds.append((time.process_time() - begin) / times * 1e6)
    return statistics.median(rounds)


def measure(shard: str, records: int) -> dict[str, float]:
    reader = tfr.Reader([shard] * (records // SHARD_RECORDS), index="require")
    assert len(reader) == records
    random = np.random.default_rng(1)
    numbers = random.integers(0, records, 20_000).tolist()
    assert reader.locate(numbers[0]).offset == numbers[0] % SHARD_RECORDS * FRAME_BYTES
    plan = tfr.Plan(tfr.Shuffle(1), BATCH, num_records=records)
    steps = random.integers(0, plan.steps, 200).tolist()
    with contextlib.closing(tfr.Loader(reader, BATCH, seed=1)) as loader:

        def round_trip(turn: int) -> None:
            there = loader.state_dict() | {"epoch": turn, "position": steps[turn] * BATCH}
            loader.load_state_dict(json.loads(json.dumps(there)))

        return {
            "locate": microseconds(lambda turn: reader.locate(numbers[turn]), len(numbers)),
            "a step of a Plan": microseconds(lambda turn: plan.indices(0, steps[turn]), len(steps)),
            "save and load a state": microseconds(round_trip, len(steps)),
        }


def draw(measured: dict[int, dict[str, float]]) -> None:
    left, top, width, height = 70.0, 50.0, 560.0, 260.0
    values = [value for each in measured.values() for value in each.values()]
    lowest = 10.0 ** math.floor(math.log10(min(values)))
    highest = 10.0 ** math.ceil(math.log10(max(values)))

    def x_of(records: int) -> float:
        return left + width * (math.log10(records) - 6) / 4

    def y_of(value: float) -> float:
        return top + height * math.log10(highest / value) / math.log10(highest / lowest)

    svg = Svg(left + width + 40, top + height + 50)
    svg.text(12, 24, "Microseconds of processor time, by the number of records", bold=True)
    for power in range(round(math.log10(lowest)), round(math.log10(highest)) + 1):
        svg.line(left, y_of(10.0**power), left + width, y_of(10.0**power), "faint")
        svg.text(left - 8, y_of(10.0**power) + 4, f"{10.0**power:g}", "end", colour="quiet")
    for records in measured:
        svg.text(
            x_of(records),
            top + height + 20,
            f"10^{round(math.log10(records))}",
            "middle",
            colour="quiet",
        )
    sizes = list(measured)
    for name, colour in COLOURS.items():
        for here, there in itertools.pairwise(sizes):
            y, next_y = y_of(measured[here][name]), y_of(measured[there][name])
            svg.line(x_of(here), y, x_of(there), next_y, colour, 1.6)
        for records in sizes:
            svg.rectangle(x_of(records) - 3, y_of(measured[records][name]) - 3, 6, 6, colour)
        above = -8 if name != "a step of a Plan" else 18
        svg.text(left + 10, y_of(measured[sizes[0]][name]) + above, name)
    svg.save(PICTURE)


def main() -> int:
    measured = {}
    with tempfile.TemporaryDirectory() as folder:
        shard = make_shard(Path(folder))
        for records in SIZES:
            measured[records] = measure(shard, records)
            print(f"{records:>14,}", {name: round(us, 2) for name, us in measured[records].items()})
    draw(measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
