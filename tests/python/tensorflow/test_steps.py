"""Steps equal the values of TensorFlow's parser for the episode, cut into steps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfrfast as tfr
from step_choices import COUNT, choosing, row_of, write_choices
from step_choices import FEATURES as CHOSEN
from wire_examples import (
    byte_strings,
    entry,
    example,
    field,
    float_feature,
    floats,
    int_feature,
    ints,
    unpacked_floats,
    unpacked_ints,
)


def lists(**features: bytes) -> bytes:
    """An Example of features along the axis: steps/f, steps/i, ..."""
    return example(*(along(name, feature) for name, feature in features.items()))


def along(name: str, feature: bytes) -> bytes:
    return entry(b"steps/" + name.encode(), feature)


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


def unpacked(*values: float) -> bytes:
    return float_feature(unpacked_floats(*values))


def unpacked_integers(*values: int) -> bytes:
    return int_feature(unpacked_ints(*values))


@pytest.mark.parametrize("put_floats", [floats, unpacked])
@pytest.mark.parametrize("put_ints", [ints, unpacked_integers])
def test_every_form_of_a_list(
    tmp_path: Path, put_floats: Callable[..., bytes], put_ints: Callable[..., bytes]
) -> None:
    rng = np.random.default_rng(1)
    records = []
    for count in (3, 0, 70, 1, 9):
        texts = [rng.bytes(int(n)) for n in rng.integers(0, 300, count)]
        fields = [
            along("f", put_floats(*rng.random(3 * count, np.float32).tolist())),
            along("i", put_ints(*rng.integers(-3, 1 << 33, 2 * count).tolist())),
            along("s", byte_strings(*texts)),
            along("bool", put_ints(*rng.integers(0, 2, count).tolist())),
            entry(b"episode/id", byte_strings(b"e%d" % count)),
            entry(b"episode/n", put_ints(count, -1)),
        ]
        rng.shuffle(fields)
        records.append(example(*fields))
    check(write(tmp_path / "data", records), records)


def test_forms_and_widths_differ_between_episodes(tmp_path: Path) -> None:
    records = [
        lists(
            f=put(*range(6)),
            i=unpacked_integers(1, 2, 3, 4),
            bool=ints(1, 0),
            s=byte_strings(*texts),
        )
        for put, texts in (
            (unpacked, [b"a", b"b"]),
            (floats, [b"c", b"d"]),
            (unpacked, [b"", b"eeee"]),
        )
    ]
    odd = example(along("bool", unpacked_integers(1, 0, 300)), entry(b"episode/n", b""))
    records.insert(1, odd)
    steps = write(tmp_path / "data", records)
    assert steps.episodes.lengths.tolist() == [2, 3, 2, 2]
    check(steps, records)


def test_odd_records_that_tensorflow_accepts(tmp_path: Path) -> None:
    """Lists after the first, keys given twice, and Examples that were concatenated."""
    good = [along("bool", unpacked_integers(1, 0)), along("s", byte_strings(b"a", b"b"))]
    run = field(1, b"\1\2\3\4")
    records = [
        example(*good, along("bool", unpacked_integers(0, 0))),
        example(*good) + example(entry(b"episode/id", byte_strings(b"two"))),
        example(*good, along("f", unpacked(*range(6)) + unpacked(9.0))),
        example(*good, *(entry(b"episode/n", unpacked_integers(n)) for n in (1, 2))),
        example(*good, along("i", ints(1, 2, 3, 4) + ints(5))),
        # A list in several packed runs, and a run before single values.
        example(*good, along("i", int_feature(run + field(1, b"\5\6")))),
        example(*good, along("i", int_feature(run + b"\x08\x05"))),
        example(*good, along("f", unpacked(*range(6))), along("f", floats(*[0] * 6))),
    ]
    check(write(tmp_path / "data", records), records)


def test_ragged_features_are_cut_by_their_row_lengths(tmp_path: Path) -> None:
    record = example(
        along("i", unpacked_integers(1, 2, 3)),
        along("r/ragged_row_lengths_0", unpacked_integers(2, 0, 3)),
        along("r/ragged_row_lengths_1", ints(1, 2, 0, 4, 1)),
        along("r/ragged_flat_values", floats(*range(8))),
    )
    steps = write(tmp_path / "data", [record])
    lengths = [
        tf.io.RaggedFeature.RowLengths(f"steps/r/ragged_row_lengths_{n}")  # type: ignore[attr-defined]
        for n in range(2)
    ]
    spec = tf.io.RaggedFeature(tf.float32, "steps/r/ragged_flat_values", lengths)
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
