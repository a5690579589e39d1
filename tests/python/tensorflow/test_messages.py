"""Fields of protobuf messages as tensors of tf.data, and TensorFlow's own event files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.util import event_pb2

import tfrfast as tfr


def events(count: int) -> list[bytes]:
    records = []
    for step in range(count):
        event = event_pb2.Event(wall_time=step + 0.5, step=step)
        for number in range(step % 3):
            value = event.summary.value.add(tag=f"t{number}")
            value.tensor.float_val.extend([0.5] * (number + 1))
        records.append(event.SerializeToString())
    return records


FEATURES = {
    "step": "step",
    "time": "wall_time",
    "tag": "summary.value.tag",
    "values": "summary.value.tensor.float_val",
}


@pytest.fixture
def shard(tmp_path: Path) -> str:
    path = str(tmp_path / "events")
    with tf.io.TFRecordWriter(path) as writer:
        for record in events(10):
            writer.write(record)
    return path


def _lists(batch: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy().tolist()
        for name, value in batch.items()
    }


def _roads(shard: str, features: dict[str, Any]) -> dict[str, Any]:
    loader = tfr.Loader(shard, 4, features=features, shuffle=False)
    return {
        "parse_message": tfr.TFRecordDataset(shard).batch(4).parse_message(features),
        "to_tf_dataset": loader.to_tf_dataset(epochs=1),
    }


@pytest.mark.parametrize("road", ["parse_message", "to_tf_dataset"])
def test_levels_of_repeated_fields_are_levels_of_ragged_tensors(shard: str, road: str) -> None:
    features = tfr.Message.event().features(FEATURES)
    dataset = _roads(shard, features)[road]
    assert dataset.element_spec["values"].ragged_rank == 2
    batches = list(dataset)
    with tfr.Reader(shard) as reader:
        expected = tfr.parse_example(reader[:], features)
    found = [_lists(batch) for batch in batches]
    for name in features:
        assert [row for batch in found for row in batch[name]] == expected[name].tolist()
    assert batches[0]["time"].dtype == tf.float64


@pytest.mark.parametrize(
    ("before", "features", "message"),
    [
        (lambda records: records, None, r"call batch\(\) before it"),
        (lambda records: records.batch(4).map(lambda each: {"x": each}), None, "elements are {'x'"),
        (lambda records: records.batch(4), {"step": tf.io.VarLenFeature(tf.int64)}, "Examples"),
        (lambda records: records.batch(4), ["step"], "Examples"),
    ],
    ids=["single records", "a dict", "specs of Examples", "names"],
)
def test_parse_message_refuses_what_it_does_not_parse(
    shard: str, before: Any, features: Any, message: str
) -> None:
    records = before(tfr.TFRecordDataset(shard))
    with pytest.raises(TypeError, match=message):
        records.parse_message(features or tfr.Message.event().features(["step"]))


def test_the_built_in_event_is_tensorflows(shard: str) -> None:
    """Every field that the built-in description has reads as by TensorFlow's own descriptor."""
    ours, theirs = tfr.Message.event(), tfr.Message(event_pb2.Event)
    with tfr.Reader(shard) as reader:
        records = reader[:]
        for path in ours.features():
            assert ours[path].dtype == theirs[path].dtype, path
            one, other = (tfr.parse_example(records, {"x": each[path]}) for each in (ours, theirs))
            assert one["x"].tolist() == other["x"].tolist(), path


def test_the_built_in_sequence_example_is_tensorflows() -> None:
    ours = tfr.Message.sequence_example()
    theirs = tfr.Message(tf.train.SequenceExample)
    record = tf.train.SequenceExample()
    record.context.feature["label"].int64_list.value.extend([1, 2])
    for step in range(3):
        steps = record.feature_lists.feature_list["x"].feature
        steps.add().float_list.value.extend([step] * step)
    records = [record.SerializeToString()]
    paths = set(ours.features())
    assert paths == set(theirs.features())
    for path in paths:
        one, other = (tfr.parse_example(records, {"x": each[path]}) for each in (ours, theirs))
        assert one["x"].tolist() == other["x"].tolist(), path
    values = tfr.parse_example(
        records, {"x": ours["feature_lists.feature_list.value.feature.float_list.value"]}
    )
    assert values["x"].tolist() == [[[[], [1.0], [2.0, 2.0]]]]
    assert np.asarray(values["x"].values.values.values).dtype == np.float32
