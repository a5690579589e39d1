"""Serialized tensors: the values of tf.io.parse_tensor, on every road, and for any bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import elements, outcomes
from record_files import write_shard

tf = pytest.importorskip("tensorflow")
pb = pytest.importorskip("tensorflow.core.framework.tensor_pb2")

TYPES = (
    *(tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.bool),
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
)
STRING = tf.io.FixedLenFeature([], tf.string)
SPECS = {"x": STRING, "id": tf.io.FixedLenFeature([], tf.int64)}


def record(tensor: Any, number: int = 0) -> bytes:
    string = tensor if isinstance(tensor, bytes) else tf.io.serialize_tensor(tensor).numpy()
    return tfr.encode_example({"x": string, "id": number})


def some_tensor(number: int, shape: tuple[int, ...] = (2, 3), dtype: Any = tf.float32) -> Any:
    values = np.arange(np.prod(shape)).reshape(shape) + number
    return tf.cast(values % 2 if dtype == tf.bool else values, dtype)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write_shard(tmp_path / "tensors", [record(some_tensor(i), i) for i in range(40)])


@pytest.mark.parametrize("dtype", TYPES, ids=lambda each: each.name)
def test_values_are_tensorflows(dtype: Any) -> None:
    tensors = [some_tensor(i, (i, 3), dtype) for i in range(4)]
    batch = tfr.parse_example(map(record, tensors), {"x": tfr.SerializedTensor((None, 3), dtype)})
    assert batch["x"].values.dtype == dtype.as_numpy_dtype
    for row, tensor in zip(batch["x"], tensors, strict=True):
        np.testing.assert_array_equal(row, tensor.numpy())
    fixed = tfr.parse_example([record(tensors[3])], {"x": tfr.SerializedTensor((3, 3), dtype)})
    np.testing.assert_array_equal(fixed["x"], [tensors[3].numpy()])


def a_message(choice: random.Random) -> Any:
    """A tensor in any of its forms, perhaps none that TensorFlow takes."""
    dtype = choice.choice(TYPES)
    shape = choice.choice([[], [2], [2, 3], [0], [3, -1], [2, 3, 1]])
    count = choice.choice([0, 1, 3, 6, 7])
    made = pb.TensorProto(dtype=dtype.as_datatype_enum)
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    if choice.random() < 0.1:
        made.tensor_shape.unknown_rank = True
    if choice.random() < 0.5:
        made.tensor_content = choice.randbytes(count * dtype.size)
    for name in choice.sample(["half_val", "int_val", "int64_val", "bool_val", "uint32_val"], 2):
        getattr(made, name).extend(choice.randrange(2) for _ in range(count))
    for name in choice.sample(["float_val", "double_val", "uint64_val"], 1):
        getattr(made, name).extend([choice.randrange(200)] * count)
    return made


def test_any_bytes_give_what_tensorflow_gives_or_are_refused() -> None:
    choice, accepted, refused = random.Random(1), 0, 0
    for _ in range(3000):
        message = a_message(choice)
        string = bytearray(message.SerializeToString())
        for _ in range(choice.choice([0, 0, 1, 3])):
            if string:
                string[choice.randrange(len(string))] = choice.randrange(256)
        if choice.random() < 0.1:
            string += a_message(choice).SerializeToString()
        dtype = choice.choice([tf.as_dtype(message.dtype), choice.choice(TYPES)])
        try:
            expected = tf.io.parse_tensor(bytes(string), dtype)
        except tf.errors.InvalidArgumentError:
            expected = None
        shape = (2, 3) if expected is None else tuple(expected.shape)
        for asked in {shape, (None, *shape[1:]) if shape and 0 not in shape[1:] else shape}:
            try:
                features = {"x": tfr.SerializedTensor(asked, dtype)}
                found = tfr.parse_example([record(bytes(string))], features)["x"][0]
            except tfr.FeatureError:
                # Few values for a large shape, names of dimensions, and booleans of other bits.
                refused += expected is not None and None not in asked
                continue
            assert expected is not None
            assert np.asarray(found).tobytes() == expected.numpy().tobytes()
            accepted += 1
    assert accepted > 700 > 20 * refused


def test_a_tensor_of_any_length_holds_its_values() -> None:
    message = pb.TensorProto(dtype=tf.float32.as_datatype_enum, float_val=[1])
    message.tensor_shape.dim.add(size=1 << 40)
    with pytest.raises(tfr.FeatureError, match="holds 4 bytes of values, which its shape"):
        spec = tfr.SerializedTensor((None,), "float32")
        tfr.parse_example([record(message.SerializeToString())], {"x": spec})


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "why"),
    [
        ((3, 2), "float32", tfr.FeatureError, r"its shape is \(2, 3\), not \(3, 2\)"),
        ((None, 2), "float32", tfr.FeatureError, r"its shape is \(2, 3\), not \(any, 2\)"),
        ((2, 3), "int32", tfr.FeatureError, "its values are float32, not int32"),
        ((2, 3), "string", ValueError, "holds numbers or bool, not bytes"),
        ((2, 3), "complex64", ValueError, "holds numbers or bool, not complex64"),
        ((2, None), "int8", ValueError, "all dimensions of the shape have to be known"),
        ((None, 0), "int8", ValueError, "steps without values cannot be counted"),
    ],
)
def test_other_tensors_are_refused(shape: Any, dtype: str, error: Any, why: str) -> None:
    with pytest.raises(error, match=why):
        tfr.parse_example([record(some_tensor(1))], {"x": tfr.SerializedTensor(shape, dtype)})


def test_roads(path: str) -> None:
    features = {"x": tfr.SerializedTensor((2, 3), tf.float32)}
    expected = np.stack([some_tensor(i).numpy() for i in range(40)])
    loaded = tfr.Loader(path, 40, features=features, shuffle=False)
    np.testing.assert_array_equal(next(iter(loaded))["x"], expected)
    (batch,) = tfr.Loader(path, 40, features=features, shuffle=False).to_tf_dataset()
    np.testing.assert_array_equal(batch["x"], expected)
    (batch,) = tfr.TFRecordDataset(path).batch(40).parse_example(features)
    np.testing.assert_array_equal(batch["x"], expected)
    steps = {"x": tfr.SerializedTensor((None, 3), tf.float32)}
    (batch,) = tfr.TFRecordDataset(path).batch(40).parse_example(steps)
    assert isinstance(batch["x"], tf.RaggedTensor)
    np.testing.assert_array_equal(batch["x"].to_tensor(), expected)


def parsed(one: Any) -> Any:
    row = tf.io.parse_single_example(one, SPECS)
    return {"x": tf.io.parse_tensor(row["x"], tf.float32), "id": row["id"]}


def shaped(one: Any) -> Any:
    row = parsed(one)
    return tf.transpose(tf.ensure_shape(row["x"], [2, 3])) * 2, row["id"]


def used_twice(one: Any) -> Any:
    row = tf.io.parse_single_example(one, SPECS)
    x = tf.ensure_shape(tf.io.parse_tensor(row["x"], tf.float32), [2, 3])
    return x, tf.strings.length(row["x"])


@pytest.mark.parametrize("function", [parsed, shaped, used_twice])
def test_functions_parse_whole_batches(path: str, function: Any) -> None:
    theirs = tf.data.TFRecordDataset(path).map(function).batch(8)
    for ours in (tfr.accelerate(theirs), tfr.TFRecordDataset(path).map(function).batch(8)):
        assert ours.element_spec == theirs.element_spec
        assert elements(ours) == elements(theirs)
        (step,) = (each for each in tfr.explain(ours).steps if each.call.startswith("map("))
        assert step.fused
        assert ("ParseTensor" in step.why) == (function is used_twice)


@pytest.mark.parametrize("other", [(3, 3), ()])
def test_a_row_of_another_shape(tmp_path: Path, other: tuple[int, ...]) -> None:
    tensors = [some_tensor(i, other if i == 20 else (2, 3)) for i in range(32)]
    path = write_shard(tmp_path / "odd", map(record, tensors))
    theirs = tf.data.TFRecordDataset(path).map(parsed).batch(8)
    assert outcomes(tfr.accelerate(theirs)) == outcomes(theirs)
    alone = tf.data.TFRecordDataset(path).map(parsed).enumerate()
    assert outcomes(tfr.accelerate(alone)) == outcomes(alone)


@pytest.mark.parametrize("ending", ["enumerate", 1, 3, 8])
@pytest.mark.parametrize("empty", [{7}, set(range(20))])
def test_tensors_without_values(tmp_path: Path, ending: Any, empty: set[int]) -> None:
    tensors = [some_tensor(i, (0,) if i in empty else (2,)) for i in range(20)]
    path = write_shard(tmp_path / "empty", map(record, tensors))
    theirs = tf.data.TFRecordDataset(path).map(parsed)
    theirs = theirs.enumerate() if ending == "enumerate" else theirs.batch(ending)
    assert outcomes(tfr.accelerate(theirs)) == outcomes(theirs)


def test_the_order_of_bytes_is_the_machines() -> None:
    numbers = tf.constant([1, 2], tf.int64)
    parsed = tfr.parse_example([record(numbers)], {"x": tfr.SerializedTensor((2,), ">i8")})
    assert parsed["x"].tolist() == [[1, 2]]


def test_values_of_another_type_are_refused() -> None:
    wire = bytes.fromhex("0809320412020800")  # a packed field of floats that is cut short
    with pytest.raises(tfr.FeatureError, match="not a serialized tensor"):
        tfr.parse_example(
            [tfr.encode_example({"x": wire})], {"x": tfr.SerializedTensor((), "int64")}
        )
