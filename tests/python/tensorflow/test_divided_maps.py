"""Maps of batches that parse and do other work: the parse is planned, and tf.data does the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import outcomes, write_examples

tf = pytest.importorskip("tensorflow")

SPECS: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "numbers": tf.io.VarLenFeature(tf.int64),
    "marks": tf.io.RaggedFeature(tf.int64),
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, True),
    "words": tf.io.VarLenFeature(tf.string),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = write_examples(tmp_path_factory.mktemp("examples"), [20, 0, 11])
    tfr.Reader(files).close()
    return files


def parsed(records: Any) -> Any:
    return tf.io.parse_example(records, SPECS)


def dense(records: Any) -> Any:
    row = parsed(records)
    numbers = tf.sparse.to_dense(row["numbers"])[:, :2]
    return {"numbers": numbers, "dense": row["dense"] * 2.0, "words": row["words"]}, row["id"]


def ragged(records: Any) -> Any:
    row = parsed(records)
    return row["marks"] * 3, row["marks"].row_lengths(), tf.reduce_sum(row["weights"], 1)


SCALE = tf.Variable(3, dtype=tf.int64)


@tf.function(autograph=False)
def nested(records: Any) -> Any:
    return parsed(records)["id"] * SCALE


def checked(records: Any) -> Any:
    ids = parsed(records)["id"]
    tf.debugging.assert_less(ids, tf.constant(24, tf.int64))
    return ids


CHAINS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda records: records.batch(8).map(dense, tf.data.AUTOTUNE).prefetch(2),
    "ragged": lambda records: records.batch(8, drop_remainder=True).map(ragged),
    "nested": lambda records: records.repeat(2).batch(9).map(nested).map(lambda ids: ids + 1),
    "checked": lambda records: records.batch(8).map(checked).enumerate(),
    "twice": lambda records: records.batch(8).map(dense).unbatch().batch(3),
}


@pytest.mark.parametrize("name", CHAINS)
def test_elements_are_tensorflows(files: list[str], name: str) -> None:
    theirs = CHAINS[name](tf.data.TFRecordDataset(files))
    expected = outcomes(theirs)
    for ours in (tfr.accelerate(theirs), CHAINS[name](tfr.TFRecordDataset(files))):
        assert ours.element_spec == theirs.element_spec
        assert outcomes(ours) == expected
        assert "its parse is taken out" in str(tfr.explain(ours))


def test_a_variable_is_read_when_it_is_needed(files: list[str]) -> None:
    ours = tfr.accelerate(tf.data.TFRecordDataset(files).batch(31).map(nested))
    before = next(iter(ours)).numpy().tolist()
    SCALE.assign(5)
    assert next(iter(ours)).numpy().tolist() == [number // 3 * 5 for number in before]
    SCALE.assign(3)


def test_what_needs_the_records_again_stays_tensorflows(files: list[str]) -> None:
    def both(records: Any) -> Any:
        return parsed(records)["id"] + 1, tf.strings.length(records)

    theirs = tf.data.TFRecordDataset(files).batch(8).map(both)
    ours = tfr.accelerate(theirs)
    assert outcomes(ours) == outcomes(theirs)
    assert "taken out" not in str(tfr.explain(ours))


INNER: dict[str, Any] = {
    "place": tf.io.FixedLenFeature([], tf.int64, -1),
    "score": tf.io.FixedLenFeature([2], tf.float32),
    "words": tf.io.VarLenFeature(tf.string),
    "marks": tf.io.RaggedFeature(tf.int64),
}


def lists_of_examples(records: Any) -> Any:
    """Like a reader of ranked documents: a feature has Examples of its own."""
    row = tf.io.parse_example(records, {"documents": tf.io.RaggedFeature(tf.string)})
    documents = row["documents"]
    inner = tf.io.parse_example(documents.flat_values, INNER)
    return documents.with_flat_values(inner["score"]).to_tensor(), inner


@pytest.mark.parametrize("bad", [None, b"no example", tfr.encode_example({"place": 1})])
def test_examples_in_examples_are_parsed_the_same(tmp_path: Path, bad: bytes | None) -> None:
    path = str(tmp_path / "shard")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(40):
            inner: list[Any] = [
                {"score": [place, 0.5], "words": [b"w"] * place, "marks": [place] * (number % 3)}
                for place in range(number % 4 if number >= 8 else 0)
            ]
            documents = [tfr.encode_example(each) for each in inner]
            if bad is not None and number == 21:
                documents[:1] = [bad]
            writer.write(tfr.encode_example({"documents": documents}))
    theirs = tf.data.TFRecordDataset(path).batch(8).map(lists_of_examples)
    ours = tfr.accelerate(theirs)
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)
    assert "its parse is taken out" in str(tfr.explain(ours))
    if bad is not None:  # our error names the record, which shows that tfrfast has parsed
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Record \d"):
            list(ours)
