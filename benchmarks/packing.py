"""Packing: how full rows are, how fast they come, and who meets whom again.

Compares tfr.Packed with Grain's first fit and with a greedy packer, and a packed with an unpacked
Loader by processor time, in turns.

python -m benchmarks.packing [--records 400000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr

IDS: dict[str, Any] = {"ids": tfr.VarLen("int64")}
CASES = ((200, 2048), (200, 8192), (4000, 32768), (900, 2048))
ROWS = 40


def log_normal(records: int, median: int, tokens: int) -> Any:
    drawn = np.random.default_rng(0).lognormal(np.log(median), 1, records)
    return drawn.astype(np.int64).clip(1, tokens)


def greedy_fill(lengths: Any, tokens: int) -> float:
    """Fills row after row in the order of a shuffle; a record that does not fit begins a row."""
    rows, used = 1, 0
    for length in np.random.default_rng(1).permutation(lengths).tolist():
        if used + length > tokens:
            rows, used = rows + 1, 0
        used += length
    return float(lengths.sum() / (rows * tokens))


def meet_again(plan: tfr.Plan, records: int) -> float:
    """Returns the share of pairs of a pack that share a pack in the next epoch, too."""
    packs = [[plan.packs(epoch, step)[0] for step in range(plan.steps)] for epoch in (0, 1)]
    pack = np.empty(records, np.int64)
    for number, members in enumerate(packs[1]):
        pack[members] = number
    pairs = again = 0
    for members in packs[0]:
        counts = np.unique(pack[members], return_counts=True)[1]
        pairs += len(members) * (len(members) - 1)
        again += int((counts * (counts - 1)).sum())
    return again / pairs


def tell_fill() -> None:
    print("| median | tokens | tfr.Packed | greedy | meet again |\n|---:|---:|---:|---:|---:|")
    for median, tokens in CASES:
        lengths = log_normal(30_000, median, tokens)
        plan = tfr.Plan(
            tfr.Shuffle(), tfr.Packed(tokens, rows=1, lengths=lengths), num_records=30_000
        )
        shares = f"{plan.fill.share:.2%} | {greedy_fill(lengths, tokens):.2%}"
        print(f"| {median} | {tokens} | {shares} | {meet_again(plan, 30_000):.2%} |")
    for records in (10**6, 10**7):
        lengths = log_normal(records, 200, 2048)
        plan = tfr.Plan(
            tfr.Shuffle(), tfr.Packed(2048, rows=1, lengths=lengths), num_records=records
        )
        began = time.process_time()
        plan.indices(1, 0)
        print(
            f"{records} records: {plan.fill.share:.2%}, {time.process_time() - began:.3f} s an epoch"
        )


def grain_rows(path: str, tokens: int) -> Iterator[Any] | None:
    try:
        import grain

        import tfrfast.grain
    except ImportError:
        return None
    source = tfrfast.grain.Source(path, features=IDS)
    dataset = grain.MapDataset.source(source).shuffle(seed=1).to_iter_dataset()
    packed = grain.experimental.FirstFitPackIterDataset(
        dataset, length_struct={"ids": tokens}, num_packing_bins=64
    )
    return iter(packed)


def seconds(run: Callable[[], Any]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def tell_speed(records: int, turns: int = 5) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = str(Path(temporary, "data"))
        source = np.random.default_rng(2)
        with tfr.Writer(path) as writer:
            for length in log_normal(records, 200, 2048):
                writer.write(tfr.encode_example({"ids": source.integers(0, 32_000, length)}))
        packs = tfr.Packed(2048, rows=ROWS, lengths="ids")
        packed = tfr.Loader(path, packs, features=IDS, threads=1)
        rows = packed.plan.positions
        plain = tfr.Loader(path, round(records * ROWS / rows), features=IDS, threads=1)

        def drain(batches: Any) -> None:
            for _ in batches:
                pass

        drain(plain)
        ratios, rates = [], []
        for _ in range(turns):
            unpacked, taken = seconds(lambda: drain(plain)), seconds(lambda: drain(packed))
            ratios.append(unpacked / taken)
            rates.append(rows / taken)
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"packed: {statistics.median(ratios):.2f} ({spread}) of the speed of the same Loader")
        rate = statistics.median(rates)
        print(
            f"{rate:,.0f} rows a second of processor time, {rate * 2048 / 1e6:,.0f} million tokens"
        )
        theirs = grain_rows(path, 2048)
        if theirs is not None:
            some = 300
            used = [0]

            def take() -> None:
                for _ in range(some):
                    used[0] += int((np.asarray(next(theirs)["ids_segment_ids"]) > 0).sum())

            slower = some / seconds(take)
            fill = used[0] / (some * 2048)
            print(
                f"Grain's first fit: {slower:,.0f} rows a second, {fill:.2%} full; {rate / slower:.0f} times"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=400_000)
    options = parser.parse_args()
    tell_fill()
    tell_speed(options.records)


if __name__ == "__main__":
    main()
