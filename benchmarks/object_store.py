"""Times shards behind URLs beside bare requests of obstore, and a DiskCache beside local files.

python benchmarks/object_store.py [CASE ...] [--turns 7] [--megabytes 300] [--delay-ms 20]

A server in another process of this machine answers. In some cases it delays each answer. The
contenders of a case alternate. The output has medians of MB/s, of the seconds of processor time of
this process and of the server, and of the turns' ratios, with the range of the ratios. Bare requests
run with several numbers of concurrent requests, and the fastest number is the reference. Before an
epoch ends, a Loader reads the beginning of the next epoch. So its second epoch is measured. Cases:

  order       large records in order, beside bare requests for 8 MiB each
  shuffled    large records, exactly shuffled, each request delayed, beside bare requests for the
              same records; and the number of round trips before the first batch
  cache       epochs from a DiskCache beside local files, of small and of large records
  half        a DiskCache for half of the set: hits beside Belady's optimum and beside LRU's
  failures    1 of 100 requests fails, beside a server without failures; and a check that every
              record came once
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import heapq
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr
from tfrfast.bench.pipelines import import_tensorflow
from tfrfast.bench.shapes import SHAPES, write_shape

RECORD_BYTES = {"image": 110_000, "ctr": 274}
SHARDS = 8
_REQUEST_BYTES = 8 << 20
_BATCH = {"image": 32, "ctr": 4096}
_FIRST_DELAY_MS = 200
_CACHED_EPOCHS = 5

Ranges = list[tuple[str, int, int]]  # name, first byte, end
#: Prepares an epoch. Only the iteration over the epoch is timed.
Contender = Callable[[], contextlib.AbstractContextManager[Iterable[Any]]]
Contenders = dict[str, Contender]
Timings = list[tuple[float, float, float]]  # seconds, own and the server's processor time


@contextlib.contextmanager
def served(folder: Path, delay_ms: float = 0, fail_every: int = 0) -> Iterator[str]:
    """Serves a folder. Yields the URL."""
    program = Path(__file__).parent / "object_server.py"
    options = [f"--delay-ms={delay_ms}", f"--fail-every={fail_every}"]
    with subprocess.Popen(
        [sys.executable, program, folder, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


class Data:
    """The shards of one shape, in `folder`, and their records."""

    def __init__(self, folder: Path, shape: str, megabytes: int) -> None:
        self.folder, self.shape = folder, shape
        write_shape(shape, folder, megabytes * 1_000_000 // RECORD_BYTES[shape], SHARDS)
        self.names = sorted(path.name for path in folder.glob("train-*"))
        self.files = [str(folder / name) for name in self.names]
        self.num_bytes = sum(path.stat().st_size for path in folder.glob("train-*"))
        self.batch = _BATCH[shape]

    def urls(self, server: str) -> list[str]:
        return [f"{server}/{name}" for name in self.names]

    def chunks(self) -> Ranges:
        """Returns the ranges of all bytes, in requests for 8 MiB."""
        return [
            (name, at, min(at + _REQUEST_BYTES, size))
            for name in self.names
            for size in [(self.folder / name).stat().st_size]
            for at in range(0, size, _REQUEST_BYTES)
        ]

    def records_of(self, loader: tfr.Loader) -> Ranges:
        """Returns the ranges of an epoch's records, in the order of the epoch."""
        frames = [
            (name, int(at), int(at) + int(length) + 16)
            for name, shard in zip(self.names, loader.reader.shards, strict=True)
            for at, length in zip(shard.offsets, shard.lengths, strict=True)
        ]
        plan = loader.plan
        return [frames[n] for step in range(plan.steps) for n in plan.indices(0, step)]


def requests(server: str, ranges: Ranges, at_once: Sequence[int]) -> Contenders:
    """Returns a contender for each number of concurrent requests. The answers are dropped."""
    from obstore.store import HTTPStore

    store = HTTPStore.from_url(server, client_options={"allow_http": True})

    async def work_off(left: Iterator[tuple[str, int, int]]) -> None:
        for name, begin, end in left:
            await store.get_range_async(name, start=begin, end=end)

    async def all_of_them(number: int) -> None:
        left = iter(ranges)
        await asyncio.gather(*(work_off(left) for _ in range(number)))

    def epoch(number: int) -> Iterator[None]:
        yield asyncio.run(all_of_them(number))

    return {
        f"requests, {number}": lambda number=number: contextlib.nullcontext(epoch(number))
        for number in at_once
    }


def pipelines(
    data: Data,
    shards: list[str],
    shuffled: bool,
    cache: tfr.DiskCache | None = None,
    is_second: bool = True,
) -> Contenders:
    """Returns ways to read all records of files or URLs. `is_second` picks a Loader's second epoch."""
    tf = import_tensorflow()
    features = SHAPES[data.shape].features
    specs = {
        name: tf.io.FixedLenFeature(spec.shape, {"bytes": "string"}.get(spec.dtype, spec.dtype))
        for name, spec in features.items()
    }
    reader = tfr.Reader(shards, cache=cache)
    order: dict[str, Any] = {"shuffle": True, "seed": 1} if shuffled else {"shuffle": False}
    dataset = tfr.TFRecordDataset(shards, cache=cache)
    if shuffled:
        dataset = dataset.shuffle(1_000_000, seed=1)
    batches = dataset.batch(data.batch)
    parsed = batches.parse_example(features)
    mapped = dataset.map(
        lambda record: tf.io.parse_single_example(record, specs), tf.data.AUTOTUNE
    ).batch(data.batch)
    from_loader = tfr.Loader(reader, data.batch, **order).to_tf_dataset()

    @contextlib.contextmanager
    def loader(**options: Any) -> Iterator[tfr.Loader]:
        loader = tfr.Loader(reader, data.batch, **order, **options)
        if is_second:
            drain(loader)
        yield loader
        loader.close()

    def dataset_of(batches: Any) -> Contender:
        return lambda: contextlib.nullcontext(batches.prefetch(tf.data.AUTOTUNE))

    return {
        "Loader": loader,
        "Loader, features": lambda: loader(features=features),
        "TFRecordDataset": dataset_of(batches),
        "parse_example": dataset_of(parsed),
        "map(parse)": dataset_of(mapped),
        "to_tf_dataset": dataset_of(from_loader),
    }


def drain(batches: Iterable[Any]) -> None:
    collections.deque(batches, maxlen=0)


def take_turns(
    contenders: Contenders, turns: int, server: str, epochs: int = 1
) -> dict[str, Timings]:
    """Returns the timings of all contenders. One more turn comes first, and does not count."""
    timings: dict[str, Timings] = {name: [] for name in contenders}
    for turn in range(-1, turns):
        for name, contender in contenders.items():
            with contender() as epoch:
                served = counts(server)["processor_s"]
                began, used = time.perf_counter(), time.process_time()
                for _ in range(epochs):
                    drain(epoch)
                took, used = time.perf_counter() - began, time.process_time() - used
                served = counts(server)["processor_s"] - served
            if turn >= 0:
                timings[name].append((took, used, served))
    return timings


def report(timings: dict[str, Timings], references: Sequence[str], num_bytes: int) -> None:
    """Prints each contender beside the fastest reference."""
    medians = {
        name: [statistics.median(kind) for kind in zip(*each, strict=True)]
        for name, each in timings.items()
    }
    best = min(references, key=lambda name: medians[name][0])
    for name, (took, used, served) in medians.items():
        ratios = [b[0] / own[0] for b, own in zip(timings[best], timings[name], strict=True)]
        print(
            f"  {name:17} {num_bytes / 1e6 / took:6,.0f} MB/s  took {took:6.3f}, processor "
            f"{used:6.3f}, server {served:6.3f}  of {best} "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def in_order(given: Any, data: dict[str, Data]) -> None:
    image = data["image"]
    with served(image.folder) as url:
        bare = requests(url, image.chunks(), (8, 16, 32))
        ours = pipelines(image, image.urls(url), shuffled=False)
        report(take_turns(bare | ours, given.turns, url), list(bare), image.num_bytes)


def shuffled(given: Any, data: dict[str, Data]) -> None:
    image = data["image"]
    with served(image.folder, given.delay_ms) as url:
        loader = tfr.Loader(image.urls(url), image.batch, shuffle=True, seed=1)
        bare = requests(url, image.records_of(loader), (16, 32, 64, 128))
        ours = pipelines(image, image.urls(url), shuffled=True)
        report(take_turns(bare | ours, given.turns, url), list(bare), image.num_bytes)
    with served(image.folder, _FIRST_DELAY_MS) as url:
        for name, contender in pipelines(image, image.urls(url), True, is_second=False).items():
            took = []
            for _ in range(3):
                with contender() as epoch:
                    began = time.perf_counter()
                    iterator = iter(epoch)
                    next(iterator)
                    took.append(time.perf_counter() - began)
                    del iterator
            trips = statistics.median(took) * 1000 / _FIRST_DELAY_MS
            print(f"  {name:17} first batch after {trips:.1f} round trips", flush=True)


def cached(given: Any, data: dict[str, Data]) -> None:
    for each, is_shuffled in itertools.product(data.values(), (False, True)):
        print(f" {each.shape}, {'shuffled' if is_shuffled else 'in order'}")
        folder = each.folder.parent / f"cache-{each.shape}-{is_shuffled}"
        cache = tfr.DiskCache(folder, limit=10 * each.num_bytes)
        with served(each.folder) as url:
            near = pipelines(each, each.files, is_shuffled)
            far = pipelines(each, each.urls(url), is_shuffled, cache)
            for name in near:
                pair = {"files": near[name], name: far[name]}
                timings = take_turns(pair, given.turns, url, _CACHED_EPOCHS)
                report(timings, ["files"], _CACHED_EPOCHS * each.num_bytes)


def half(given: Any, data: dict[str, Data]) -> None:
    """Prints the hit rate of a cache that has space for half of the set, after the first epoch."""
    image = data["image"]
    epochs = 1 + given.turns
    with served(image.folder) as url:
        cache = tfr.DiskCache(image.folder.parent / "half", limit=image.num_bytes // 2)
        reader = tfr.Reader(image.urls(url), cache=cache)
        plan = tfr.Plan(tfr.Shuffle(1), image.batch, num_records=len(reader))
        orders = [
            np.concatenate([plan.indices(epoch, step) for step in range(plan.steps)])
            for epoch in range(epochs)
        ]
        asked = [counts(url)["bytes"]]
        for order in orders:  # without a Loader, whose memory would add hits
            for at in range(0, len(order), image.batch):
                reader.read(order[at : at + image.batch])
            asked.append(counts(url)["bytes"])
    hits = 1 - np.diff(asked)[1:].mean() / image.num_bytes
    uses = np.concatenate(orders)
    space = len(orders[0]) // 2
    print(
        f"  hit rate {hits:.3f}, Belady's optimum {optimum(uses, space, len(orders[0])):.3f}, "
        f"least recently used {least_recent(uses, space, len(orders[0])):.3f}",
        flush=True,
    )


def optimum(uses: np.ndarray[Any, Any], space: int, first: int) -> float:
    """Returns the best possible hit rate, after the first `first` uses. The cache always drops the
    record whose next use is farthest away, which may be the record that it has just read.
    """
    following = np.full(len(uses), len(uses))
    last: dict[int, int] = {}
    for at in range(len(uses) - 1, -1, -1):
        following[at] = last.get(uses[at], len(uses) + int(uses[at]))
        last[uses[at]] = at
    held: dict[int, int] = {}
    queue: list[tuple[int, int]] = []
    hits = 0
    for at, record in enumerate(uses.tolist()):
        hits += record in held and at >= first
        held[record] = int(following[at])
        heapq.heappush(queue, (-held[record], record))
        while len(held) > space:
            when, dropped = heapq.heappop(queue)
            if held.get(dropped) == -when:
                del held[dropped]
    return hits / (len(uses) - first)


def least_recent(uses: np.ndarray[Any, Any], space: int, first: int) -> float:
    held: collections.OrderedDict[int, None] = collections.OrderedDict()
    hits = 0
    for at, record in enumerate(uses.tolist()):
        hits += record in held and at >= first
        held[record] = None
        held.move_to_end(record)
        if len(held) > space:
            held.popitem(last=False)
    return hits / (len(uses) - first)


def counts(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/counts") as answer:
        found: dict[str, float] = json.load(answer)
        return found


def failures(given: Any, data: dict[str, Data]) -> None:
    image = data["image"]
    with contextlib.ExitStack() as stack:
        good = stack.enter_context(served(image.folder, given.delay_ms))
        bad = stack.enter_context(served(image.folder, given.delay_ms, fail_every=100))
        for is_shuffled in (False, True):
            print(" shuffled" if is_shuffled else " in order")
            well = pipelines(image, image.urls(good), is_shuffled)
            badly = pipelines(image, image.urls(bad), is_shuffled)
            for name in ("Loader", "TFRecordDataset"):
                pair = {"no failures": well[name], name: badly[name]}
                report(take_turns(pair, given.turns, bad), ["no failures"], image.num_bytes)
        loader = tfr.Loader(image.urls(bad), image.batch, shuffle=True, seed=1)
        numbers = np.concatenate([batch.indices for batch in loader])
        once = np.array_equal(np.sort(numbers), np.arange(len(loader.reader)))
        print(f"  {counts(bad)}; every record came {'once' if once else 'NOT ONCE'}")


CASES = {
    "order": in_order,
    "shuffled": shuffled,
    "cache": cached,
    "half": half,
    "failures": failures,
}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="by default all")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=600, help="of large records")
    parser.add_argument("--delay-ms", type=float, default=20)
    given = parser.parse_args(arguments)
    if unknown := set(given.cases) - set(CASES):
        parser.error(
            f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}."
        )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["TFRFAST_CACHE_DIR"] = str(folder / "indexes")
        sizes = {"image": given.megabytes, "ctr": given.megabytes // 10}
        data = {name: Data(folder / name, name, size) for name, size in sizes.items()}
        for name in given.cases or CASES:
            print(f"{name}; {given.turns} turns; load {os.getloadavg()[0]:.1f}", flush=True)
            CASES[name](given, data)


if __name__ == "__main__":
    main(sys.argv[1:])
