"""Steps equal the values of TensorFlow's parser for the episode, cut into steps."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfrfast as tfr
from step_choices import COUNT, choosing, row_of, write_choices
from step_choices import FEATURES as CHOSEN


def field(number: int, content: bytes) -> bytes:
    length, size = b"", len(content)
    while size >= 0x80:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def packed_floats(values: Any) -> bytes:
    return field(2, field(1, b"".join(struct.pack("<f", each) for each in values)))


def floats(values: Any) -> bytes:
    return field(2, b"".join(b"\x0d" + struct.pack("<f", each) for each in values))


def packed_ints(values: Any) -> bytes:
    return field(3, field(1, b"".join(map(varint, values))))


def ints(values: Any) -> bytes:
    return field(3, b"".join(b"\x08" + varint(each) for each in values))


def strings(values: Any) -> bytes:
    return field(1, b"".join(field(1, each) for each in values))


def entry(name: str, feature: bytes) -> bytes:
    return field(1, field(1, name.encode()) + field(2, feature))


def example(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


def write(path: Path, records: list[bytes]) -> tfr.Steps:
    with tfr.Writer(str(path)) as writer:
        for record in records:
            writer.write(record)
    return tfr.Steps(str(path), along="steps/")


def parse(record: bytes, kinds: dict[str, Any]) -> dict[str, Any]:
    specs = {name: tf.io.VarLenFeature(kind) for name, kind in kinds.items()}
    parsed = tf.io.parse_single_example(record, specs)
    return {name: tf.sparse.to_dense(value).numpy().tolist() for name, value in parsed.items()}


KINDS = {
    "steps/f": tf.float32,
    "steps/i": tf.int64,
    "steps/s": tf.string,
    "steps/bool": tf.int64,
    "episode/id": tf.string,
    "episode/n": tf.int64,
}
VALUES_A_STEP = {"steps/f": 3, "steps/i": 2, "steps/s": 1, "steps/bool": 1}


def check(steps: tfr.Steps, records: list[bytes]) -> None:
    """Each step has its part of each list along the axis, and all other features whole."""
    number = 0
    for record, count in zip(records, steps.episodes.lengths, strict=True):
        whole = parse(record, KINDS)
        for step in range(count):
            wanted = dict(whole)
            for name, values in VALUES_A_STEP.items():
                wanted[name] = whole[name][step * values : (step + 1) * values]
            assert parse(steps[number], KINDS) == wanted
            number += 1
    assert number == len(steps)


@pytest.mark.parametrize("put_floats", [packed_floats, floats])
@pytest.mark.parametrize("put_ints", [packed_ints, ints])
def test_every_form_of_a_list(
    tmp_path: Path, put_floats: Callable[[Any], bytes], put_ints: Callable[[Any], bytes]
) -> None:
    rng = np.random.default_rng(1)
    records = []
    for count in (3, 0, 70, 1, 9):
        fields = [
            entry("steps/f", put_floats(rng.random(3 * count, np.float32))),
            entry("steps/i", put_ints(rng.integers(-3, 1 << 33, 2 * count).tolist())),
            entry("steps/s", strings([rng.bytes(int(n)) for n in rng.integers(0, 300, count)])),
            entry("steps/bool", put_ints(rng.integers(0, 2, count).tolist())),
            entry("episode/id", strings([b"e%d" % count])),
            entry("episode/n", put_ints([count, -1])),
        ]
        rng.shuffle(fields)
        records.append(example(*fields))
    check(write(tmp_path / "data", records), records)


def test_forms_and_widths_differ_between_episodes(tmp_path: Path) -> None:
    records = [
        example(
            entry("steps/f", put(range(6))),
            entry("steps/i", ints([1, 2, 3, 4])),
            entry("steps/bool", packed_ints([1, 0])),
            entry("steps/s", strings(texts)),
            entry("episode/id", strings([b"x"])),
        )
        for put, texts in (
            (floats, [b"a", b"b"]),
            (packed_floats, [b"c", b"d"]),
            (floats, [b"", b"eeee"]),
        )
    ]
    records.insert(1, example(entry("steps/bool", ints([1, 0, 300])), entry("episode/n", b"")))
    steps = write(tmp_path / "data", records)
    assert steps.episodes.lengths.tolist() == [2, 3, 2, 2]
    check(steps, records)


def test_odd_records_that_tensorflow_accepts(tmp_path: Path) -> None:
    """Lists after the first, keys given twice, and Examples that were concatenated."""
    good = [entry("steps/bool", ints([1, 0])), entry("steps/s", strings([b"a", b"b"]))]
    records = [
        example(*good, entry("steps/bool", ints([0, 0]))),
        example(*good) + example(entry("episode/id", strings([b"two"]))),
        example(*good, entry("steps/f", floats(range(6)) + floats([9.0]))),
        example(*good, entry("episode/n", ints([1])), entry("episode/n", ints([2]))),
        example(*good, entry("steps/i", packed_ints([1, 2, 3, 4]) + packed_ints([5]))),
        # A list in several packed runs, and a run before single values.
        example(*good, entry("steps/i", field(3, field(1, b"\1\2\3\4") + field(1, b"\5\6")))),
        example(*good, entry("steps/i", field(3, field(1, b"\1\2\3\4") + b"\x08\x05"))),
        example(
            *good, entry("steps/f", floats(range(6))), entry("steps/f", packed_floats([0] * 6))
        ),
    ]
    check(write(tmp_path / "data", records), records)


def test_ragged_features_are_cut_by_their_row_lengths(tmp_path: Path) -> None:
    lengths, inner = [2, 0, 3], [1, 2, 0, 4, 1]
    record = example(
        entry("steps/i", ints([1, 2, 3])),
        entry("steps/r/ragged_row_lengths_0", ints(lengths)),
        entry("steps/r/ragged_row_lengths_1", packed_ints(inner)),
        entry("steps/r/ragged_flat_values", packed_floats(range(8))),
    )
    steps = write(tmp_path / "data", [record])
    spec = tf.io.RaggedFeature(
        tf.float32,
        "steps/r/ragged_flat_values",
        [
            tf.io.RaggedFeature.RowLengths("steps/r/ragged_row_lengths_0"),  # type: ignore[attr-defined]
            tf.io.RaggedFeature.RowLengths("steps/r/ragged_row_lengths_1"),  # type: ignore[attr-defined]
        ],
    )
    whole = tf.io.parse_single_example(record, {"r": spec})["r"].to_list()
    each = [tf.io.parse_single_example(step, {"r": spec})["r"].to_list() for step in steps]
    assert [rows[0] if rows else [] for rows in each] == whole


def test_each_epoch_draws_anew(tmp_path: Path) -> None:
    steps = choosing(write_choices(tmp_path / "choices.tfrecord"))
    dataset = tfr.Loader(steps, 9, features=CHOSEN, seed=1).to_tf_dataset(epochs=2)
    seen = 0
    for batch in dataset:
        rows = (batch[name].numpy().tolist() for name in ("steps/n", "camera", "text"))
        for step, camera, text in zip(*rows, strict=True):
            assert (camera, text) == row_of(seen // COUNT, step)
            seen += 1
    assert seen == 2 * COUNT


def test_each_iteration_draws_anew(tmp_path: Path) -> None:
    steps = choosing(write_choices(tmp_path / "choices.tfrecord"))
    dataset = tfr.Loader(steps, 9, features=CHOSEN, seed=1).to_tf_dataset()
    drawn = [
        {
            step: text
            for batch in dataset
            for step, text in zip(batch["steps/n"].numpy(), batch["text"].numpy(), strict=True)
        }
        for _ in range(3)
    ]
    assert all(drawn[0][step] == row_of(0, step)[1] for step in range(COUNT))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        same = sum(drawn[one][step] == drawn[other][step] for step in range(COUNT))
        assert COUNT / 10 < same < 2 * COUNT / 3
