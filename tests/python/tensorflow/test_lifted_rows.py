"""Features with any number of values, used whole: cut, padded, joined, summed, reshaped. Results on
whole batches equal TensorFlow's results for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tfrfast as tfr
from example_files import until_error
from record_files import write_shard

tf = pytest.importorskip("tensorflow")

from map_functions import is_lifted  # noqa: E402

FEATURES: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "line": tf.io.FixedLenFeature([], tf.string),
    "words": tf.io.VarLenFeature(tf.string),
    "numbers": tf.io.VarLenFeature(tf.int64),
    "pairs": tf.io.VarLenFeature(tf.float32),
    "three": tf.io.VarLenFeature(tf.float32),
    "steps": tf.io.FixedLenSequenceFeature([], tf.int64, True),
}
LINES = ["a b", "", "  x ", "one,two three", ",", "a--b-", "é ü ,ß", "1,2,3,4,5,6,7"]


def record(number: int) -> bytes:
    count = number % 5
    return tfr.encode_example(
        {
            "id": number,
            "line": LINES[number % len(LINES)] * (number % 3),
            "words": [f"w{place}" * place for place in range(count)],
            "numbers": [(-1) ** place * (number + place) for place in range(count)],
            "pairs": [number + place / 4 for place in range(2 * count)],
            "three": [number, 0.5, -number],
            "steps": [number + place for place in range(2 * count + 2)],
        }
    )


def padded(parsed: Any) -> Any:
    numbers = tf.sparse.to_dense(parsed["numbers"])[:3]
    numbers = tf.pad(numbers, [[0, 3 - tf.size(numbers)]], constant_values=-9)
    numbers.set_shape([3])
    return numbers


def framed(parsed: Any) -> Any:
    words = parsed["words"].values
    words = tf.pad(words, [[1, 6 - tf.shape(words)[0]]], constant_values="?")
    return tf.ensure_shape(words, [7])


def with_shape(tensor: Any, shape: list[int]) -> Any:
    tensor.set_shape(shape)
    return tensor


def split_line(parsed: Any) -> Any:
    return tf.strings.split(parsed["line"])


#: Functions of a parsed record that run on whole batches.
WHOLE: dict[str, Callable[[Any], Any]] = {
    "to dense": lambda parsed: tf.size(tf.sparse.to_dense(parsed["words"])),
    "all but the first": lambda parsed: tf.reshape(parsed["three"].values[1:], [2]),
    "the last two": lambda parsed: tf.reshape(parsed["three"].values[-2:], [2]),
    "between": lambda parsed: tf.reshape(parsed["three"].values[-3:-1], [1, 2]),
    "those there are": lambda parsed: tf.size(parsed["numbers"].values[-3:-1]),
    "none": lambda parsed: tf.size(parsed["numbers"].values[2:1]),
    "of three": lambda parsed: tf.reshape(tf.sparse.to_dense(parsed["three"]), [3, 1]) * 2.0,
    "a number": lambda parsed: tf.reshape(parsed["three"].values[:1], []),
    "some steps": lambda parsed: tf.shape(parsed["steps"][1:3]),
    "steps in a row": lambda parsed: tf.reshape(parsed["steps"][:2], [1, 2]),
}


#: Functions of all values of a row that run row by row.
BY_ROW: dict[str, Callable[[Any], Any]] = {
    "padded": padded,
    "framed": framed,
    "joined": lambda parsed: tf.strings.reduce_join(parsed["words"].values, separator="-"),
    "sum": lambda parsed: tf.reduce_sum(parsed["numbers"].values[-3:-1]),
    "marks of steps": lambda parsed: tf.reduce_max(tf.one_hot(parsed["steps"], 4, 9, -9), axis=0),
    "pairs": lambda parsed: tf.shape(tf.reshape(parsed["pairs"].values, [-1, 2])),
    "of three, ensured": lambda parsed: tf.ensure_shape(parsed["three"].values, [3])[1:] / 3.0,
    "of three, set": lambda parsed: with_shape(parsed["three"].values * 2.0, [3])[::-1],
    "a step": lambda parsed: parsed["steps"][0] * 2 + parsed["steps"][-1],
    "parts of both": lambda parsed: tf.strings.reduce_join(
        tf.concat([split_line(parsed), parsed["words"].values[:2]], 0), separator="/"
    ),
    "those that are positive": lambda parsed: tf.size(
        tf.boolean_mask(parsed["numbers"].values, parsed["numbers"].values > 0)
    ),
}


def before(parsed: Any) -> Any:
    """Compares the values of a feature with the values after the first, which differ in number."""
    numbers = parsed["numbers"].values
    return tf.reduce_sum(numbers[1:] - numbers[:-1])


#: Functions that fail for some rows or for all, with the error.
FAILING: dict[str, Callable[[Any], Any]] = {
    "a part that is missing": lambda parsed: split_line(parsed)[1],
    "a value that is missing": lambda parsed: parsed["numbers"].values[-3],
    "another shape": lambda parsed: tf.reshape(parsed["numbers"].values, [2]),
    "another shape ensured": lambda parsed: tf.ensure_shape(parsed["words"].values, [0]),
    "too long": lambda parsed: tf.size(
        tf.pad(parsed["numbers"].values, [[0, 2 - tf.size(parsed["numbers"].values)]])
    ),
    "different lengths": split_line,
    "no first of none": before,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = write_shard(tmp_path_factory.mktemp("rows") / "rows", map(record, range(30)))
    tfr.Reader(path).close()
    return path


def both(path: str, make: Callable[[Any], Any], rows: int) -> tuple[Any, Any]:
    def function(text: Any) -> Any:
        parsed = tf.io.parse_single_example(text, FEATURES)
        return make(parsed), parsed["id"]

    ours, theirs = (
        reader(path).map(function).batch(rows)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert is_lifted(ours)
    return ours, theirs


@pytest.mark.parametrize("name", WHOLE)
def test_whole_batches(path: str, name: str) -> None:
    ours, theirs = both(path, WHOLE[name], 7)
    assert "row by row" not in str(tfr.explain(ours))
    assert until_error(ours) == until_error(theirs)


@pytest.mark.parametrize("name", BY_ROW)
def test_row_by_row(path: str, name: str) -> None:
    ours, theirs = both(path, BY_ROW[name], 1)
    assert "row by row" in str(tfr.explain(ours))
    assert until_error(ours) == until_error(theirs)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("name", FAILING)
def test_errors_come_where_tensorflow_has_them(path: str, name: str, rows: int) -> None:
    ours, theirs = both(path, FAILING[name], rows)
    assert until_error(ours) == until_error(theirs)
