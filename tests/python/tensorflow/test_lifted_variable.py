"""Features with any number of values in each record, in functions whose parse is lifted: sparse and
ragged tensors, and rows of different lengths, beside TensorFlow's own class.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import outcomes, some_example, write_examples
from record_files import flip_payload_byte, write_shard

tf = pytest.importorskip("tensorflow")

from map_functions import Function, is_lifted, with_lifting  # noqa: E402

WORDS: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "words": tf.io.VarLenFeature(tf.string),
}
SEQUENCES: dict[str, Any] = {
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, True),
    "dense": tf.io.FixedLenSequenceFeature([], tf.float32, True),
    "missing": tf.io.FixedLenSequenceFeature([], tf.int64, True),
}
DIVIDED: dict[str, Any] = {
    "divided": tf.io.RaggedFeature(
        tf.int64,
        "numbers",
        [tf.io.RaggedFeature.RowLengths("lengths")],
        row_splits_dtype=tf.int32,
    )
}
PLACED: dict[str, Any] = {"placed": tf.io.SparseFeature("positions", "marks", tf.int64, 10)}


def parser(features: dict[str, Any]) -> Function:
    return lambda record: tf.io.parse_single_example(record, features)


def with_values(sparse: Any, values: Any) -> Any:
    return tf.SparseTensor(sparse.indices, values, sparse.dense_shape)


def hashed(record: Any) -> Any:
    words = parser(WORDS)(record)["words"]
    buckets = tf.strings.to_hash_bucket_fast(tf.strings.lower(words.values), 100)
    return with_values(words, buckets * 2 + 1), tf.size(buckets), tf.shape(words)


def sequences(record: Any) -> Any:
    parsed = parser(SEQUENCES)(record)
    return parsed["dense"] * 2.0, parsed["missing"], tf.shape(parsed["weights"])


def counted(record: Any) -> Any:
    parsed = parser(SEQUENCES)(record)
    return tf.size(parsed["dense"]), tf.shape(parsed["missing"], tf.int64)


def to_dense(record: Any) -> Any:
    parsed = parser(WORDS)(record)
    words = tf.sparse.to_dense(parsed["words"])[:3]
    return tf.pad(words, [[0, 3 - tf.size(words)]]), parsed["id"]


def summed(record: Any) -> Any:
    parsed = parser(SEQUENCES)(record)
    return tf.reduce_sum(parsed["weights"]), tf.reduce_sum(parsed["dense"], axis=0)


def indices(record: Any) -> Any:
    words = parser(WORDS)(record)["words"]
    return tf.reduce_sum(words.indices), words.dense_shape, words


def half(record: Any) -> Any:
    """Some results are as parsed, and others are not."""
    parsed = parser({**WORDS, **DIVIDED, **PLACED})(record)
    return parsed["divided"], {"label": parsed["id"] + 1, "words": parsed["words"]}


def chosen(record: Any) -> Any:
    parsed = parser({**WORDS, **SEQUENCES})(record)
    return tf.cond(
        tf.size(parsed["weights"]) > 1, lambda: tf.size(parsed["words"].values), lambda: -1
    )


#: Functions whose results are put together row by row.
PACKED = ["ragged", "placed", "some of each"]
#: Functions, and the first op that runs row by row.
FUNCTIONS: dict[str, tuple[Function, str]] = {
    "sparse": (parser(WORDS), ""),
    "values of sparse": (hashed, ""),
    "sequences": (sequences, ""),
    "lengths": (counted, ""),
    "sparse to dense": (to_dense, "Pad"),
    "sums": (summed, "Sum"),
    "indices": (indices, "Sum"),
    "ragged": (parser(DIVIDED), ""),
    "placed": (parser(PLACED), ""),
    "some of each": (half, ""),
    "tf.cond": (chosen, "StatelessIf"),
    "tf.function": (tf.function(hashed), ""),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = write_examples(tmp_path_factory.mktemp("examples"), [20, 0, 11])
    tfr.Reader(files).close()
    return files


def both(files: Any, apply: Callable[[Any], Any], **options: Any) -> tuple[Any, Any]:
    ours, theirs = (
        apply(tfr.TFRecordDataset(files, **options)),
        apply(tf.data.TFRecordDataset(files)),
    )
    assert ours.element_spec == theirs.element_spec
    return ours, theirs


@pytest.mark.parametrize(
    ("function", "drop"),
    [*((function, False) for function in FUNCTIONS), ("values of sparse", True), ("placed", True)],
)
def test_batches_are_tensorflows(files: list[str], function: str, drop: bool) -> None:
    f, op = FUNCTIONS[function]
    ours, theirs = both(files, lambda source: source.map(f).batch(4, drop_remainder=drop))
    assert outcomes(ours) == outcomes(theirs)
    assert is_lifted(ours)
    text = str(tfr.explain(ours))
    assert f"row by row from {op}" in text if op else function in PACKED or "row by row" not in text


@pytest.mark.parametrize("rows", [1, 4])
def test_rows_of_different_lengths_make_the_same_batches_and_errors(
    files: list[str], rows: int
) -> None:
    def f(record: Any) -> Any:
        features = {"numbers": tf.io.RaggedFeature(tf.int64), "words": WORDS["words"]}
        parsed = tf.io.parse_single_example(record, features)
        return parsed["numbers"], parsed["words"].indices

    ours, theirs = both(files, lambda source: source.map(f).batch(rows, drop_remainder=True))
    found, expected = outcomes(ours), outcomes(theirs)
    assert is_lifted(ours)
    if rows == 1:
        assert found == expected
    else:
        first = next(i for i, each in enumerate(expected) if isinstance(each, type))
        assert found[: first + 1] == expected[: first + 1]


def test_shuffled_rows_are_the_rows_in_another_order(files: list[str]) -> None:
    batches = tfr.TFRecordDataset(files).map(parser(WORDS)).shuffle(31, seed=5).batch(4)
    assert is_lifted(batches)
    known = {
        element["id"]: element
        for element in outcomes(tf.data.TFRecordDataset(files).map(parser(WORDS)))
    }
    found = outcomes(batches.unbatch())
    assert sorted(element["id"] for element in found) == sorted(known)
    for element in found:
        assert element["words"][1] == known[element["id"]]["words"][1]


@pytest.mark.parametrize("function", ["values of sparse", "some of each"])
def test_records_without_values(tmp_path: Path, function: str) -> None:
    records = [tfr.encode_example({"id": number, "words": []}) for number in range(5)]
    records += [tfr.encode_example({"id": 5}), some_example(6), tfr.encode_example({"id": 7})]
    path = write_shard(tmp_path / "empty", records)
    tfr.Reader(path).close()
    f, _ = FUNCTIONS[function]
    ours, theirs = both(path, lambda source: source.map(f).batch(3))
    assert is_lifted(ours)
    assert outcomes(ours) == outcomes(theirs)


class TestErrors:
    @pytest.fixture(params=["another type", "damage"])
    def bad(self, request: pytest.FixtureRequest, tmp_path: Path) -> str:
        records = [some_example(number) for number in range(31)]
        if request.param == "another type":
            records[10] = tfr.encode_example({"id": 10, "words": [1], "dense": [1]})
        path = write_shard(tmp_path / "bad", records)
        if request.param == "damage":
            flip_payload_byte(path, records, 10)
        tfr.Reader(path).close()
        return path

    @pytest.mark.parametrize(("by_element", "drop"), [(False, False), (False, True), (True, False)])
    def test_come_after_the_good_batches(self, bad: str, drop: bool, by_element: bool) -> None:
        def f(record: Any) -> Any:
            parsed = parser({**WORDS, **SEQUENCES})(record)
            steps = parsed["dense"]
            total = tf.reduce_max(steps, axis=0) if by_element else tf.shape(steps)
            return parsed["words"], total

        ours, theirs = both(bad, lambda source: source.map(f).batch(4, drop_remainder=drop))
        assert is_lifted(ours)
        found, expected = outcomes(ours)[:3], outcomes(theirs)[:3]
        assert found == expected
        assert isinstance(found[2], type)
        left = [
            outcomes(with_lifting(tfr.TFRecordDataset(bad).map(f).batch(4).ignore_errors(), lifts))
            for lifts in (True, False)
        ]
        assert left[0] == left[1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (parser(WORDS), lambda row: row["words"]),
        (lambda record: parser(WORDS)(record)["words"].values, tf.size),
    ],
)
def test_rows_of_different_lengths_pass_from_map_to_map(
    files: list[str], first: Function, second: Function
) -> None:
    ours, theirs = both(files, lambda source: source.map(first).map(second).batch(4))
    assert is_lifted(ours)
    assert outcomes(ours) == outcomes(theirs)
