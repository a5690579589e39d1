"""Measures ten fields of messages of 500 KB beside protobuf's own C code and TensorFlow's decode_proto.

    python benchmarks/messages.py      # a minute

The contenders decode the same records in turns, on one thread, to the same numbers. Rates are by
processor time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tfrfast as tfr

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from waymo_like import NAME, PATHS, scenario_set, scenario_type, scenarios

RECORDS = 16
ROUNDS = 15
_STATE = [path.rpartition(".")[2] for path in PATHS if path.startswith("tracks.states.")]


def by_tfrfast() -> Callable[[list[bytes]], Any]:
    features = tfr.Message(scenario_set(), NAME).features(PATHS)
    return lambda records: float(
        tfr.parse_example(records, features)["tracks.states.center_x"].values.values.sum()
    )


def by_protobuf() -> Callable[[list[bytes]], Any]:
    """Parses with upb, and collects the fields in lists, of which arrays are made."""
    kind = scenario_type()

    def decode(records: list[bytes]) -> float:
        total = 0.0
        for record in records:
            scenario = kind.FromString(record)
            tracks = scenario.tracks
            states = [state for track in tracks for state in track.states]
            columns = [
                np.array([scenario.scenario_id]),
                np.array(scenario.timestamps_seconds),
                np.array([track.id for track in tracks]),
                np.array([track.object_type for track in tracks]),
                np.array([len(track.states) for track in tracks]),
                *(np.array([getattr(state, name) for state in states]) for name in _STATE),
            ]
            total += float(columns[5].sum())
        return total

    return decode


def by_decode_proto() -> Callable[[list[bytes]], Any]:
    """An op for each level of messages."""
    source = b"bytes://" + scenario_set()
    package = NAME.rpartition(".")[0]
    types = {"heading": tf.float32, "velocity_x": tf.float32, "velocity_y": tf.float32}
    state_types = [types.get(name, tf.float64) for name in _STATE[:-1]] + [tf.bool]

    def level(data: Any, name: str, fields: list[str], kinds: list[Any]) -> list[Any]:
        sizes, values = tf.io.decode_proto(data, f"{package}.{name}", fields, kinds, source)
        return [
            tf.boolean_mask(each, tf.sequence_mask(sizes[:, at], tf.shape(each)[1]))
            for at, each in enumerate(values)
        ]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[misc]
    def decode(records: Any) -> Any:
        wanted = ["scenario_id", "timestamps_seconds", "tracks"]
        *_, tracks = level(records, "Scenario", wanted, [tf.string, tf.float64, tf.string])
        kinds = [tf.int32, tf.int32, tf.string]
        *_, states = level(tracks, "Track", ["id", "object_type", "states"], kinds)
        return tf.reduce_sum(level(states, "ObjectState", _STATE, state_types)[0])

    return lambda records: float(decode(tf.constant(records)))


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    records = scenarios(RECORDS)
    size = sum(map(len, records))
    contenders = {
        "tfrfast": by_tfrfast(),
        "protobuf (upb)": by_protobuf(),
        "tf.io.decode_proto": by_decode_proto(),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    sums = {name: decode(records) for name, decode in contenders.items()}
    assert np.allclose(list(sums.values()), sums["tfrfast"]), sums
    for _ in range(ROUNDS):
        for name, decode in contenders.items():
            begin = time.process_time()
            decode(records)
            times[name].append(time.process_time() - begin)
    print(f"{RECORDS} messages of {size / RECORDS / 1000:.0f} KB, {len(PATHS)} fields\n")
    print("| decoder | ms a message | MB/s | times tfrfast's time: median (quartiles) |")
    print("|---|---:|---:|---:|")
    for name, each in times.items():
        ratios = [a / b for a, b in zip(each, times["tfrfast"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        best = statistics.median(each)
        print(
            f"| {name} | {1000 * best / RECORDS:.3f} | {size / best / 1e6:,.0f} "
            f"| {middle:.1f} ({low:.1f} to {high:.1f}) |"
        )


if __name__ == "__main__":
    main()
