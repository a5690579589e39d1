"""Steps of SequenceExamples, against TensorFlow: each is an Example of that step's Features."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
import wire_examples as wire

tf = pytest.importorskip("tensorflow")

LENGTHS = [3, 0, 70, 1]
CONTEXT = {"id": tf.io.FixedLenFeature((), tf.string), "labels": tf.io.VarLenFeature(tf.int64)}
LISTS = {
    "rgb": tf.io.FixedLenSequenceFeature((), tf.string),
    "audio": tf.io.FixedLenSequenceFeature((4,), tf.float32),
    "tick": tf.io.FixedLenSequenceFeature((), tf.int64),
    "words": tf.io.RaggedFeature(tf.string),
    "far": tf.io.RaggedFeature(tf.int64),
}
TFR: Any = {
    "id": tfr.FixedLen((), "bytes"),
    "labels": tfr.VarLen("int64"),
    "rgb": tfr.FixedLen((), "bytes"),
    "audio": tfr.FixedLen((4,), "float32"),
    "tick": tfr.FixedLen((), "int64"),
    "words": tfr.VarLen("bytes"),
    "far": tfr.VarLen("int64"),
}


def video(number: int, steps: int) -> Any:
    rng = np.random.default_rng(number)

    def feature(values: list[Any], name: str = "") -> Any:
        if name in ("id", "rgb", "words"):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if name == "audio":
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    lists: dict[str, list[list[Any]]] = {
        "rgb": [[rng.bytes(1024)] for _ in range(steps)],
        "audio": [rng.random(4, np.float32).tolist() for _ in range(steps)],
        "tick": [[int(each)] for each in rng.integers(-3, 1 << 40, steps)],
        "words": [[b"w" * int(n) for n in rng.integers(0, 300, step % 3)] for step in range(steps)],
        "far": [rng.integers(0, 9, step % 90).tolist() for step in range(steps)],
        "other": [[1]] * (steps + 1),
    }
    return tf.train.SequenceExample(
        context=tf.train.Features(
            feature={"id": feature([b"video %d" % number], "id"), "labels": feature([number, 7])}
        ),
        feature_lists=tf.train.FeatureLists(
            feature_list={
                name: tf.train.FeatureList(feature=[feature(each, name) for each in values])
                for name, values in lists.items()
            }
        ),
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    name = str(tmp_path / "videos")
    with tfr.Writer(name) as writer:
        for number, steps in enumerate(LENGTHS):
            writer.write(video(number, steps).SerializeToString())
    return name


def test_a_step_is_what_tensorflow_parses_and_cuts(path: str, io: Any) -> None:
    steps = tfr.Steps(path, along=list(LISTS), io=io)
    assert steps.episodes.lengths.tolist() == LENGTHS
    batch = tfr.parse_example(steps[:], TFR)
    row = 0
    for number, count in enumerate(LENGTHS):
        record = steps.records[number]
        context, lists, _ = tf.io.parse_sequence_example([record], CONTEXT, LISTS)
        for step in range(count):
            for name in LISTS:
                wanted = np.asarray(lists[name][0][step].numpy()).tolist()
                found = batch[name][row]
                assert np.array_equal(np.asarray(found, object), np.asarray(wanted, object)), name
            assert batch["id"][row] == context["id"][0].numpy()
            assert batch["labels"][row].tolist() == [number, 7]
            parsed = tf.io.parse_single_example(
                steps[row], {**CONTEXT, "rgb": tf.io.FixedLenFeature((), tf.string)}
            )
            assert parsed["rgb"] == lists["rgb"][0][step]
            row += 1
    assert row == len(steps)


def test_windows_and_later_steps_join_the_features(path: str) -> None:
    windows: Any = {
        "audio": tfr.Window(before=1, after=1, pad="zeros"),
        "words": tfr.Window(after=2, stride=2),
        "tick": tfr.Window(before=2),
        "last": tfr.Later("rgb", seed=1, min_steps=1 << 20),
    }
    steps = tfr.Steps(path, along=list(LISTS), windows=windows, rename={"far": "near"})
    specs: Any = {
        "audio": tfr.FixedLen((3, 4), "float32"),
        "tick": tfr.FixedLen((3,), "int64"),
        "tick/valid": tfr.FixedLen((3,), "int64"),
        "words": tfr.VarLen("bytes"),
        "words/valid": tfr.FixedLen((3,), "int64"),
        "near": tfr.VarLen("int64"),
        "last": tfr.FixedLen((), "bytes"),
    }
    batch = tfr.parse_example(steps[:], specs)
    row = 0
    for number, count in enumerate(LENGTHS):
        _, lists, _ = tf.io.parse_sequence_example([steps.records[number]], CONTEXT, LISTS)
        audio = np.pad(lists["audio"][0].numpy(), ((1, 1), (0, 0)))
        for step in range(count):
            assert np.array_equal(batch["audio"][row], audio[step : step + 3])
            ticks = [lists["tick"][0][max(0, step + j)].numpy() for j in (-2, -1, 0)]
            assert batch["tick"][row].tolist() == ticks
            at = [min(count - 1, step + j) for j in (0, 2, 4)]
            words = [word for i in at for word in lists["words"][0][i].numpy().tolist()]
            assert batch["words"][row].tolist() == words
            assert batch["words/valid"][row].tolist() == [int(step + j < count) for j in (0, 2, 4)]
            assert batch["near"][row].tolist() == lists["far"][0][step].numpy().tolist()
            assert batch["last"][row] == lists["rgb"][0][count - 1]
            row += 1


def test_lists_that_cannot_be_cut_are_named(tmp_path: Path) -> None:
    path = str(tmp_path / "videos")

    def refused(record: bytes, along: Any, says: str) -> None:
        with tfr.Writer(path, overwrite=True) as writer:
            writer.write(record)
        with pytest.raises(tfr.FeatureError, match=f"Record 0 .*{says}"):
            tfr.Steps(path, along=along, index="memory")

    whole = video(0, 3).SerializeToString()
    refused(whole, ["rgb", "other"], "has 4 steps in feature 'other' and 3 in feature 'rgb'")
    refused(whole, {"audio": 5}, "has 4 values in a Feature of feature 'audio' instead of 5")
    twice = video(0, 2)
    twice.context.feature["rgb"].CopyFrom(twice.context.feature["id"])
    refused(twice.SerializeToString(), "rgb", "both called 'rgb'")
    refused(whole[:-3], "rgb", "is not a SequenceExample: it breaks off")

    def listed(*features: bytes) -> bytes:
        return wire.field(2, wire.entry(b"x", wire.strings(*features)))

    one, two = wire.packed_ints(1), wire.packed_ints(2)
    refused(listed(wire.ints(1), wire.floats(1)), "x", "of two forms")
    unpacked = wire.int_feature(wire.unpacked_ints(1, 2))
    refused(listed(wire.ints(1), unpacked), "x", "of two forms")
    refused(listed(wire.ints(1) + wire.ints(1)), "x", "of an unusual form")
    refused(listed(wire.int_feature(one + two)), "x", "of an unusual form")
    refused(listed(b"\x1a\x83\x00" + one), "x", "of an unusual form")
    none = wire.int_feature(wire.packed_ints())
    refused(listed(none, unpacked), "x", "of an unusual form")
    refused(listed(none, wire.bytes_feature(b"")), "x", "of an unusual form")
    refused(listed(wire.int_feature(wire.field(1, b"\x81"))), "x", "cut off")
    refused(listed(wire.ints(1)) * 2, "x", "two lists")
